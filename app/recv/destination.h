// The destination of one session: mailbox -> open -> write -> ledger -> commit.
// Guarantees: a final name appears only with bytes that were verified and synced, and the old file
// stays whole until the rename. Nothing outside the root and its staging directory is touched. A
// FileResult ok is sent only when a power cut right after it loses nothing of the file.
// Memory: the buffers lent from `pool`, and a constant for each outstanding entry.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "app/receipt/entry.h"
#include "app/recv/aside.h"
#include "app/recv/asked.h"
#include "app/recv/budget.h"
#include "app/recv/observer.h"
#include "app/recv/rate_allowance.h"
#include "app/recv/team_work.h"
#include "app/session/bottleneck.h"
#include "app/session/link.h"
#include "app/session/open.h"
#include "app/session/pool_turns.h"
#include "app/session/tally.h"
#include "app/session/transfer_record.h"
#include "app/session/tweaks.h"
#include "core/cci/endpoint.h"
#include "core/memory/pool.h"
#include "core/ports/entropy.h"
#include "core/ports/work_pool.h"

namespace ccixfer::recv {

class Root;    // app/recv/root.h
class Helper;  // app/recv/helper.h

struct DestinationOptions {
  uint32_t options = 0;              // session::Option bits, from Open (push) or from the user (pull)
  std::string path;                  // below the root
  uint64_t rate_bytes_per_s = 0;     // 0: no cap. Where `rate` is not given
  uint32_t buffers_max = 0;          // of the pool that this session may hold; 0: as `turns` says
  Duration disk_patience = forever;  // the longest that a disk, ours or the peer's, may take for one step and count as progress
  std::shared_ptr<session::TransferRecord> record = {};  // of the transfer's earlier sessions; none: this is the only one
  std::optional<Asked> asked = std::nullopt;             // of a pull: what its peer may send
  bool is_new = false;                                   // the directory at `path` was made for this transfer
  std::optional<DeleteWish> deletes{};                   // --delete
  Aside aside{};
  Limits limits{};
  // Shared by the sessions of a process; without them the session is the only one.
  std::shared_ptr<session::PoolTurns> turns{};
  std::shared_ptr<RateAllowance> rate{};
  receipt::Sink* receipt = nullptr;  // hears of each entry that ends well, with its digest; none: nobody reads them again
  std::string peer = {};             // who it is, for whoever looks at what stands staged
  session::TweaksRef tweaks = {};    // of a pull
  bool tries_changed_again = false;  // as of send::SourceOptions, of a pull
  session::FirstEntries first{};     // that came with the Open, of a push
  std::optional<TeamLimits> team{};  // several processes send: the source of this session leads, others help
};

class Destination final : public session::LinkHandler {
 public:
  Destination(const DestinationOptions& options, Root& root, session::Link& link, cci::Endpoint& endpoint, ports::WorkPool& work,
              memory::Pool& pool, ports::Entropy& entropy, DestinationObserver& observer, Counters& counters);
  ~Destination() override;

  // A further process of the team, whose source helps from now on. False: the session is over, or is no team's.
  [[nodiscard]] bool add_helper(std::shared_ptr<Helper> helper);

  void start(Instant now);
  void turn(Instant now);  // takes completed buffers, posts free ones, grants credit, commits
  // A completed mailbox buffer of one of our lanes. The owner of the endpoint's MailboxTable hands
  // completions out by the number of the mailbox.
  [[nodiscard]] bool owns_mailbox(uint64_t mailbox) const;
  void on_completion(const rvma::Completion& completion);
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] bool finished() const;  // Summary delivered and Bye came (or the link went after the summary), or error() is set
  // The session may have ended while buffers or jobs are outstanding. The object must not be destroyed
  // before idle().
  [[nodiscard]] bool idle() const;
  [[nodiscard]] bool in_disk() const;  // jobs are in the work pool: idle() waits for them, however long one call takes
  [[nodiscard]] const Error* error() const;
  [[nodiscard]] const session::Tally& tally() const;
  // Of a team, once its transfer has come to its summary: what the team hears. nullptr: not yet, or it is none.
  [[nodiscard]] const session::TeamEnded* team_ended() const;
  [[nodiscard]] Instant last_progress() const;
  // Which disk has not answered for longer than disk_patience; empty: none.
  [[nodiscard]] std::string stuck_disk() const;
  [[nodiscard]] session::Bottleneck bottleneck(Instant now) const;  // what it waited for lately
  void abort(const Error& error);                                   // tells the peer; what is durable stays resumable

  void on_lane_up(session::LaneIndex lane) override;
  void on_lane_down(session::LaneIndex lane) override;
  void on_lane_message(session::LaneIndex lane, const session::Message& message) override;
  void on_message(const session::Message& message) override;
  void on_put(session::LaneIndex lane, uint64_t context, Status status) override;
  void on_link_lost(const Error& error) override;

 private:
  class Impl;  // in destination.cc alone
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::recv
