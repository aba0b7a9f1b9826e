// One face for the two roles of a session: the program turns, ends and counts a Source and a Destination alike.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/recv/destination.h"
#include "app/recv/helper.h"
#include "app/recv/root.h"
#include "app/recv/second_root.h"
#include "app/report/reporter.h"
#include "app/report/status.h"
#include "app/send/source.h"
#include "app/session/disk_watch.h"
#include "app/session/tally.h"
#include "app/session/transfer_record.h"
#include "core/cci/endpoint.h"
#include "core/memory/pool.h"
#include "core/ports/entropy.h"
#include "core/ports/work_pool.h"

namespace ccixfer::program {

// What all sessions of a process share. Owned by the command, outlives its sessions.
struct SessionServices {
  cci::Endpoint& endpoint;
  ports::FileSystem& files;
  ports::WorkPool& work;
  memory::Pool& pool;
  ports::Handle pool_region;
  ports::Entropy& entropy;
  Counters& counters;
  report::Reporter& reporter;
};

using session::Tally;

// What the transfer waits for, for the progress: `hops` are those of its path, of which the slowest is named when it is known.
[[nodiscard]] report::Waiting waiting_for(session::Bottleneck what, const std::vector<report::Hop>& hops);
// The end of a transfer that ran to its summary: ok, or how many files failed and deletions were left out; 23 before 25 before 24.
[[nodiscard]] Error end_of_tally(const Tally& tally);
// The same as the last line of an output that has a line for each failure above it. Histories, events and the peer have none.
[[nodiscard]] Error below_its_lines(Error end);
[[nodiscard]] report::Counts counts_of(const Tally& tally);  // what vanished has failed too
[[nodiscard]] session::TransferId make_transfer_id(ports::Entropy& entropy);
[[nodiscard]] std::string transfer_name(const session::TransferId& transfer);  // 32 hexadecimal digits
[[nodiscard]] std::vector<report::Hop> report_hops(const std::vector<ports::HopInfo>& hops);

// How far a transfer came, by what the receiver has or said: the same things count in a later session of it, so that only what no
// earlier session reached is progress.
struct Reached {
  uint64_t entries_answered = 0;
  uint64_t files_ended = 0;
  uint64_t bytes_there = 0;  // durable at the receiver, by this session or found there
};
[[nodiscard]] Reached reached_by(const Tally& tally);  // a file that ended badly has ended too
// Takes over what is further; false: nothing is.
bool advance(Reached& most, const Reached& now);

class TransferRole {
 public:
  virtual ~TransferRole() = default;
  virtual session::LinkHandler& handler() = 0;
  // A source may begin to list before start(). turn() goes on with that, and what is found first travels with the Open.
  virtual void list_ahead() {}
  [[nodiscard]] virtual bool has_listed_ahead() const { return true; }
  [[nodiscard]] virtual session::FirstEntries first_entries(size_t bytes_max) {
    static_cast<void>(bytes_max);
    return {};
  }
  virtual void start(Instant now) = 0;
  virtual void turn(Instant now) = 0;
  [[nodiscard]] virtual Instant next_deadline() const = 0;
  [[nodiscard]] virtual bool finished() const = 0;
  // Nothing more can be learned from the peer. A process that ends now only has to wait until its last words have left.
  [[nodiscard]] virtual bool may_leave() const { return finished(); }
  [[nodiscard]] virtual bool idle() const = 0;  // may be destroyed
  // True: the role is not idle, because something still uses it or its buffers: jobs in the work pool, which end when the disk
  // answers, or a put that has begun to come. False: the role may be destroyed once the endpoint is turned no more.
  [[nodiscard]] virtual bool in_use() const = 0;
  [[nodiscard]] virtual const Error* error() const = 0;
  [[nodiscard]] virtual Tally tally() const = 0;
  [[nodiscard]] virtual Instant last_progress() const = 0;   // a sign that this session lives
  [[nodiscard]] virtual bool repeatable() const = 0;         // a later session can do all of it again
  [[nodiscard]] virtual std::string stuck_disk() const = 0;  // words for a disk that has not answered for too long; empty: none
  [[nodiscard]] virtual session::Bottleneck bottleneck(Instant now) const {
    static_cast<void>(now);
    return session::Bottleneck::none;
  }
  // How it ended, once it is finished without an error.
  [[nodiscard]] virtual Error end() const { return end_of_tally(tally()); }
  [[nodiscard]] virtual bool is_peer_told() const { return false; }  // of a helper at the receiver: how its team ended
  // Of a team's leading session at the receiver that has come to its summary: what the team hears. nullptr: it is none.
  [[nodiscard]] virtual const session::TeamEnded* team_ended() const { return nullptr; }
  // Of a team's leading session at the receiver: a further process helps from now on. False: too late, or it is none.
  virtual bool add_helper(const std::shared_ptr<recv::Helper>& helper) {
    static_cast<void>(helper);
    return false;
  }
  virtual void abort(const Error& error) = 0;
  virtual bool take_completion(const rvma::Completion& completion) = 0;  // false: not a mailbox of ours
};

// For the status page. The session came at `came`.
void show_role(report::StatusTransfer& view, const TransferRole& role, const Tally& all, const session::Link& link, Instant came,
               Instant now);

class FailedList;

// What make_source gives to a source, but for `is_root` and `spool_directory`, which are those of this process.
struct SourcePart : send::SourceOptions {
  std::shared_ptr<FailedList> failed = {};  // none: nobody wants it
};
[[nodiscard]] std::unique_ptr<TransferRole> make_source(const SessionServices& services, session::Link& link,
                                                        const SourcePart& part);

struct DestinationPart : recv::DestinationOptions {
  recv::Root* root = nullptr;
  std::shared_ptr<FailedList> failed = {};  // none: nobody wants it
};
[[nodiscard]] std::unique_ptr<TransferRole> make_destination(const SessionServices& services, session::Link& link,
                                                             const DestinationPart& part);

// The receiver's end of a helper: its segments go into the files of `leader`, which outlives it or has let it go. nullptr: the
// leader's session is over.
[[nodiscard]] std::unique_ptr<TransferRole> make_helper(const SessionServices& services, session::Link& link, TransferRole& leader,
                                                        const DestinationPart& part);
// Of several receivers of one file system (app/session/README.md): what a helper's session with a second receiver needs.
struct SecondPart {
  std::shared_ptr<send::SecondPath> path;
  std::shared_ptr<send::RateCap> rate;
  std::optional<uint8_t> compress = {};  // as of session::Open
  Duration disk_patience = forever;
};
[[nodiscard]] std::unique_ptr<TransferRole> make_second_source(const SessionServices& services, session::Link& link,
                                                               const SecondPart& part);
// The other end. Of `part` the turns and the rate, which are there.
[[nodiscard]] std::unique_ptr<TransferRole> make_second_receiver(const SessionServices& services, session::Link& link,
                                                                 const std::shared_ptr<recv::SecondRoot>& root,
                                                                 const DestinationPart& part);
// Of a member that comes when its team's transfer has ended: it only hears how.
[[nodiscard]] std::unique_ptr<TransferRole> make_late_helper(const SessionServices& services, session::Link& link,
                                                             const session::TeamEnded& how);

}  // namespace ccixfer::program
