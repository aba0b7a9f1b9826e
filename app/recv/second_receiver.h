// The session of a second receiver: it writes pieces of shared files into the staged files of the receiver that owns them
// (app/session/README.md, "Several receivers of one file system"). It has no tree, no ledger and no results: a piece that is
// durable is told, and then it is the owner's. In: the places that the source names, and segments with pieces of them. Out: whether
// a place can be written to, and what is placed. A piece is opened and hashed in memory before any of it is written. Errors of a
// file close its place, and the source sends what was not placed to the owner; what makes no sense ends the session. Life: it must
// not be destroyed before idle(). Protocol thread; files are touched by jobs. Bounds: places_open_max places; the session's part of
// the pool.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/recv/inbox.h"
#include "app/recv/lanes.h"
#include "app/recv/outbox.h"
#include "app/recv/second_root.h"
#include "app/recv/session_jobs.h"
#include "app/recv/shared_place.h"
#include "app/session/compression.h"
#include "app/session/data_seal.h"
#include "app/session/link.h"
#include "app/session/liveness.h"
#include "app/session/wake.h"

namespace ccixfer::recv {

inline constexpr size_t places_open_max = 64;
inline constexpr uint64_t place_sync_bytes = 64u << 20;  // written and not synced, of a file: then it is due
inline constexpr Duration place_sync_interval = std::chrono::milliseconds(250);  // or after so long
inline constexpr uint32_t damaged_segments_max = 100;  // in a row: then something on the path damages all, and the session ends

struct SecondReceiverParts {
  session::Link& link;
  rvma::MailboxTable& mailboxes;
  memory::Pool& pool;
  ports::WorkPool& work;
  ports::Entropy& entropy;
  std::shared_ptr<session::PoolTurns> turns;
  std::shared_ptr<RateAllowance> rate;
  std::shared_ptr<SecondRoot> root;
};

class SecondReceiver final : public session::LinkHandler {
 public:
  explicit SecondReceiver(const SecondReceiverParts& parts);
  ~SecondReceiver() override;  // CHECKs idle()

  void start(Instant now);
  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] bool owns_mailbox(uint64_t mailbox) const { return lanes_.owns(mailbox); }
  void on_completion(const rvma::Completion& completion);
  [[nodiscard]] bool finished() const { return error_ || is_bye_said_; }
  [[nodiscard]] bool idle() const { return lanes_.idle() && inbox_.held() == 0 && jobs_.running() == 0; }
  [[nodiscard]] bool in_disk() const { return jobs_.running() > 0; }
  [[nodiscard]] const Error* error() const { return error_ ? &*error_ : nullptr; }
  [[nodiscard]] uint64_t bytes_placed() const { return bytes_placed_; }
  [[nodiscard]] Instant last_progress() const { return liveness_.last_progress(); }
  void abort(const Error& error);  // tells the peer

  void on_lane_up(session::LaneIndex lane) override;
  void on_lane_down(session::LaneIndex lane) override;
  void on_lane_message(session::LaneIndex lane, const session::Message& message) override;
  void on_message(const session::Message& message) override;
  void on_put(session::LaneIndex, uint64_t, Status) override {}  // it puts nothing
  void on_link_lost(const Error& error) override;

 private:
  struct Piece {
    uint64_t number = 0;
    Hash128 hash;
    uint64_t bytes = 0;
  };
  struct Place {
    uint64_t size_bytes = 0;
    std::shared_ptr<JoinedShare> share;  // none: it is being opened
    std::set<uint64_t> busy;  // pieces that are being written, or wait for their sync: one that comes once more is passed over
    std::vector<Piece> unsynced;
    uint64_t unsynced_bytes = 0;
    Instant unsynced_since = never;
    uint32_t writing = 0;
    bool is_syncing = false;
    bool is_ended = false;  // nothing more comes
  };
  struct Writing;
  void open_place(const session::SharedPlace& wanted);
  void opened(uint64_t index, const std::shared_ptr<JoinedShare>& share, int error);
  void close_place(uint64_t index, int error);
  static void leave(Place& place);  // gives up the share; pieces that are written and not told of count for nobody
  void forget_if_done(uint64_t index);
  void receive(ReceivedSegment arrival);
  void write(Place& place, ReceivedSegment arrival, const session::SegmentHeader& header);
  void write_in_job(Writing& job);
  void written(const Writing& job);
  void sync_those_due();
  void sync(uint64_t index, Place& place);
  void synced(uint64_t index, const std::vector<Piece>& pieces, int error);
  void tell_placed(uint64_t index, std::vector<Piece> pieces);
  void reject(std::string_view why);

  session::Link& link_;
  const std::unique_ptr<session::DataOpener> opener_;  // none: --insecure
  const uint32_t buffers_max_;
  const std::shared_ptr<SecondRoot> root_;
  session::Workspaces workspaces_;
  session::Wake wake_;
  SessionJobs jobs_;
  Outbox outbox_;
  Lanes lanes_;
  Inbox inbox_;
  session::Liveness liveness_;
  std::map<uint64_t, Place> places_;  // by the index of the file
  uint64_t bytes_placed_ = 0;
  uint32_t damaged_in_a_row_ = 0;
  bool is_bye_said_ = false;
  Instant now_{};
  std::optional<Error> error_;
};

}  // namespace ccixfer::recv
