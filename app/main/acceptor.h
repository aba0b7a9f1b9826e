// The listening side: turns hellos into sessions and runs them, several at once: a Destination each (recv --root), or a Source each
// (send --serve). They share the buffer pool (session::PoolTurns) and the cap of --bwlimit. At most sessions_max run at a time; the
// others wait in the order in which they came, and are told their place (session::Queued). A dialler that begins its transfer anew
// has the place of the session that it lost, and waits until that one has ended.
// The sessions of a team (--stripe) are one that leads and others that help it (app/main/teams, recv::Team).
// Errors of a session are the peer's (told by Abort) and the log's; the first ended transfer's is kept for --once.
// Bounds: sessions_max and sessions_waiting_max, besides them strangers_max; a session that is not opened within open_timeout ends.
#pragma once
#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "app/main/forwarder.h"
#include "app/main/peer_gate.h"
#include "app/main/peer_rates.h"
#include "app/main/receipts.h"
#include "app/main/teams.h"
#include "app/main/transfer_role.h"
#include "app/metrics/activity.h"
#include "app/report/status.h"
#include "app/session/hub.h"
#include "app/session/link.h"
#include "app/session/link_seal.h"
#include "app/trust/audit_record.h"

namespace ccixfer::program {

inline constexpr uint32_t sessions_max_default = 64;
inline constexpr size_t sessions_waiting_max = 1024;                 // beyond them a dialler is refused, and tries again
inline constexpr Duration place_interval = std::chrono::seconds(5);  // how often a session that waits hears that others get on
inline constexpr size_t transfers_remembered_max = 64;               // besides those that have a session
inline constexpr Duration lost_patience = std::chrono::seconds(5);   // others wait for a process without a connection so long
inline constexpr Duration part_patience =
    std::chrono::seconds(30);  // and for one without a sign, when another process says that it is the same part
inline constexpr Duration once_patience =
    std::chrono::seconds(60);  // so long recv --once waits for parts of a team that have not come
inline constexpr Duration open_timeout = std::chrono::seconds(30);
// The most sessions of strangers: peers with encryption whose keys nobody knows and whom nobody has let in. When one more comes,
// the oldest of them ends; if even that came less than stranger_kept ago, the new one is refused.
inline constexpr size_t strangers_max = 256;
inline constexpr Duration stranger_kept = std::chrono::milliseconds(250);

struct AcceptorOptions {
  recv::Root* root = nullptr;                  // recv --root: accept pushes
  std::shared_ptr<recv::SecondRoot> second{};  // recv --root --shares-root: accept pieces for the receiver that owns the root
  int served_root = -1;                        // send --serve: accept pulls
  [[nodiscard]] bool receives() const { return root != nullptr || second != nullptr; }
  uint64_t rate_bytes_per_s = 0;
  uint16_t lanes_max = session::lanes_max;
  uint32_t sessions_max = sessions_max_default;  // at a time
  bool once = false;
  recv::TeamLimits team{};
  std::function<session::SealSetup()> seal;                    // asked for each session; empty: --insecure
  PeerGate* gate = nullptr;                                    // there is one exactly with a seal
  bool keeps_history = false;                                  // of recv --root: what ended is noted below the root
  std::function<int64_t()> wall_time_s{};                      // since 1970; empty: nobody is told when
  std::function<void(const std::string& result)> completed{};  // of each transfer that ended, report::transfer_result; may be empty
  ListenerReceipts receipts{};                                 // where those of its transfers go
  metrics::Activity* activity = nullptr;                       // may be
  std::function<void(const policy::AuditRecord&)> audit;       // of each session, and each attempt that was refused; may be empty
};

class Acceptor final : public session::AcceptHandler {
 public:
  Acceptor(const SessionServices& services, session::Hub& hub, const AcceptorOptions& options);
  ~Acceptor() override;
  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;
  bool take_completion(const rvma::Completion& completion);
  void set_rate(uint64_t bytes_per_s, Instant now);  // the cap of all sessions together; 0: none
  void stop(const Error& why, Instant now);          // ends all sessions, takes no new ones
  [[nodiscard]] bool idle() const;                   // no session left
  [[nodiscard]] size_t sessions() const;
  // For the status page: at most `most` transfers, and how many more there are. Rates are not known here.
  [[nodiscard]] std::vector<report::StatusTransfer> show(Instant now, size_t most, size_t& more) const;
  [[nodiscard]] size_t unfinished() const;  // transfers under way: their result does not stand yet
  [[nodiscard]] Tally tally() const;
  [[nodiscard]] const std::optional<Error>& first_end() const;  // kind ok when it went well

  Result<session::Link*> on_new_session(const session::Hello& hello, Instant now) override;
  session::Link* find_session(const session::Hello& hello) override;
  void on_refused(const session::Hello* hello, const ports::PeerIdentity& who, const Error& why) override;

 private:
  class Session;
  // A transfer that has a session, or had one lately: a later one goes on with its counts.
  struct Transfer {
    session::TransferId id{};
    std::shared_ptr<session::TransferRecord> record;
    Tally tally;            // of this process
    unsigned sessions = 0;  // that there are now
  };
  // How a team's transfer ended, until it is known that nobody goes on with it.
  struct Ending {
    Error result;
    session::TransferId team{};
    Instant until{};
  };
  [[nodiscard]] Transfer& transfer(const session::TransferId& id, bool is_of_team);
  void note_end(const Session& session, Instant now);
  void settle_end(Instant now);
  [[nodiscard]] Result<void> check_hello(const session::Hello& hello) const;
  // The sessions of the same transfer end: their peer begins it anew. Gives the place behind the last of them, or the end.
  std::list<std::unique_ptr<Session>>::iterator supersede(const session::TransferId& transfer, const Session* by, Instant now);
  void supersede_lost(const Session& by, Instant now);
  [[nodiscard]] bool make_room_for_stranger(Instant now);
  void take_over_transfers(Instant now);
  // Another session says that it is the same part of its team, and it is not known yet whether that session still lives.
  [[nodiscard]] bool waits_for_its_part(const Session& session, Instant now);
  [[nodiscard]] Session* leader_of(const session::TransferId& team) const;  // nullptr: nobody leads it now
  [[nodiscard]] Result<Teams::Place> seat_of(const Session& session, Instant now);
  void give_up_lost_leaders(Instant now);
  void end_abandoned(const trust::TicketNumber& ticket, Instant now);
  void admit(Instant now);
  [[nodiscard]] tl::unexpected<Error> refused(const Error& why) const {  // counts it
    if (options_.activity != nullptr) options_.activity->session_refused(why.kind);
    return tl::unexpected<Error>(why);
  }
  [[nodiscard]] bool someone_got_on(Instant since) const;

  const SessionServices services_;
  session::Hub& hub_;
  const AcceptorOptions options_;
  const std::shared_ptr<session::PoolTurns> turns_;
  PeerRates<recv::RateAllowance> receive_rates_;
  PeerRates<send::RateCap> send_rates_;
  size_t first_ = 0;  // whose turn is the first of this turn: what they share goes to each in turn
  bool stopped_ = false;
  Teams teams_;
  std::list<Transfer> transfers_;
  Tally forgotten_;  // of transfers that are in the list no more
  std::list<std::unique_ptr<Session>> sessions_;
  std::optional<Error> first_end_;
  std::optional<Ending> ending_;
  const std::shared_ptr<size_t> writing_ = std::make_shared<size_t>(0);  // jobs: receipts, history
};

}  // namespace ccixfer::program
