// The source of one session: walk -> read -> segment -> seal -> put, and the books until every entry
// has ended. It never waits: the walk, reads and digests are jobs in the work pool, and this object
// turns on the protocol thread.
// Memory: the buffer pool, and a constant for each outstanding entry, whatever the size of the tree.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/filter/path_list.h"
#include "app/filter/rules.h"
#include "app/receipt/entry.h"
#include "app/send/observer.h"
#include "app/send/rate_cap.h"
#include "app/send/second_path.h"
#include "app/session/bottleneck.h"
#include "app/session/link.h"
#include "app/session/open.h"
#include "app/session/pool_turns.h"
#include "app/session/tally.h"
#include "app/session/transfer_record.h"
#include "app/session/tweaks.h"
#include "core/cci/endpoint.h"
#include "core/memory/pool.h"
#include "core/ports/work_pool.h"

namespace ccixfer::send {

struct SourceOptions {
  std::vector<std::string> sources;  // as the user typed them (push), or below `served_root` (pull). "-": standard input (fd 0)
  int served_root = -1;              // pull: descriptor of the served directory; sources are opened beneath it
  std::function<bool(std::string_view)> may_be_served = {};  // WalkOptions
  uint32_t options = 0;                                      // session::Option bits
  uint64_t rate_bytes_per_s = 0;                             // 0: no cap. Where `rate` is not given
  std::string spool_directory;                               // WalkOptions, as the next four
  std::optional<filter::PathList> list = {};
  bool tells_listed = false;
  filter::Rules rules = {};
  std::string working_directory = {};
  std::optional<uint8_t> compress{};  // as of session::Open
  Duration disk_patience = forever;   // the longest that a disk, ours or the peer's, may take for one step and count as progress
  std::shared_ptr<session::TransferRecord> record;  // of the transfer's earlier sessions; none: this is the only one
  // Shared by the sessions of a process; without them the session is the only one.
  std::shared_ptr<session::PoolTurns> turns{};
  std::shared_ptr<RateCap> rate{};
  receipt::Sink* receipt = nullptr;  // hears of each entry that ends well, with its digest; none: nobody reads them again
  bool is_root = false;              // this process is: it may read what is not its own
  session::TweaksRef tweaks = {};    // of a push
  // Whoever dialled begins another session where files changed while they were read: then nobody is told of them, and the session
  // ends with `vanished` when all else is done. Of a push.
  bool tries_changed_again = false;
  // Of a push that several processes share: this one leads, so it lists and is answered; or it helps, and sends what it is told to.
  enum class Seat : uint8_t { alone, leader, helper } seat = Seat::alone;
  std::shared_ptr<SecondPath> second =
      {};  // of a helper: where pieces of shared files may go instead; none: all go to the receiver
};

class Source final : public session::LinkHandler {
 public:
  // `pool` has segment_bytes_max buffers and is registered with the endpoint's memory as `pool_region`.
  Source(const SourceOptions& options, session::Link& link, ports::WorkPool& work, memory::Pool& pool, ports::Handle pool_region,
         SourceObserver& observer, Counters& counters);
  ~Source() override;  // waits for no job: jobs hold shared state and find it closed

  // Before start(), of one that lists: begins to list. turn() goes on with it. Nothing is said to the peer.
  void list_ahead();
  [[nodiscard]] bool has_listed_ahead() const;  // first_entries() has what there is, or listing has failed: error()
  [[nodiscard]] session::FirstEntries first_entries(size_t bytes_max);  // once. The peer gets them in another way than from here
  void start(Instant now);                                              // the session is open (Opened came, or was sent)
  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] bool finished() const;  // Summary came and Bye is delivered, or error() is set
  [[nodiscard]] bool said_all() const;  // Summary came and Bye is on its way
  // The source may have ended while puts are in the air. The transport still reads their buffers, which
  // the source holds, so it must not be destroyed before idle(). Every put ends by its acknowledgement
  // or with its connection.
  [[nodiscard]] bool idle() const;
  [[nodiscard]] const Error* error() const;
  [[nodiscard]] session::Tally tally() const;
  // Of a helper whose team has ended: how, and what all of it did.
  [[nodiscard]] const std::optional<session::TeamEnded>& team_ended() const;
  // Standard input was read in part, or whole: no other session can send it.
  [[nodiscard]] bool input_is_spent() const;
  [[nodiscard]] Instant last_progress() const;  // when the receiver last confirmed anything (for --timeout)
  // Which disk has not answered for longer than disk_patience; empty: none.
  [[nodiscard]] std::string stuck_disk() const;
  [[nodiscard]] session::Bottleneck bottleneck(Instant now) const;  // what it waited for lately
  void abort(const Error& error);                                   // tells the peer; resumable

  void on_lane_up(session::LaneIndex lane) override;
  void on_lane_down(session::LaneIndex lane) override;
  void on_lane_message(session::LaneIndex lane, const session::Message& message) override;
  void on_message(const session::Message& message) override;
  void on_put(session::LaneIndex lane, uint64_t context, Status status) override;
  void on_link_lost(const Error& error) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::send
