// One session of the listening side, from its hello to its end: it waits for what the peer wants, for its turn, and runs the role
// that belongs to it. Of a team (--stripe) it leads, or it helps the session that does. Inner to the Acceptor, which includes this
// file.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "app/main/acceptor.h"
#include "app/main/farewell.h"
#include "app/recv/aside.h"
#include "core/base/log.h"

namespace ccixfer::program {

inline constexpr const char* words_of_busy = "the peer is busy with other transfers: try again later";
inline constexpr const char* words_of_unreadable_tickets = "the peer cannot look at its tickets: its log says why: ask who runs it";

class Acceptor::Session {
 public:
  Session(Acceptor& acceptor, const session::Hello& hello, Instant now);
  ~Session();

  session::Link& link() { return link_; }
  bool under_way() const { return state_ == State::running; }
  bool ended() const { return state_ == State::ended; }
  bool is_proved() const { return link_.is_secured(); }
  // Of a peer that is not proved, the transfer is not known: its id may be somebody else's.
  bool is_of(const session::TransferId& transfer) const { return is_proved() && link_.transfer_key() == transfer; }
  // --- Of a team. What names its team here; nullptr: it is none's, or has not said so yet.
  const session::TransferId* team() const { return team_ ? &*team_ : nullptr; }
  bool is_of_team(const session::TransferId& team) const { return team_ && *team_ == team && !ended(); }
  bool leads(const session::TransferId& team) const { return is_of_team(team) && role_ != nullptr && !helps_; }
  bool helps() const { return helps_; }
  TransferRole* role() { return state_ == State::running ? role_.get() : nullptr; }
  const session::TeamWish& wish() const { return *forwarder_.open()->team; }
  bool is_connected() const { return !link_.live_lanes().empty(); }
  // A process that is there takes a message within moments; one whose node lost its power seems to be connected for a while.
  // Nothing else proves it: what comes may have been on its way, in a router or in a network, since before the process was gone.
  void ask_for_a_sign(Instant now);
  [[nodiscard]] bool gave_a_sign_since(Instant when) const { return sign_given_ >= when; }
  // It has had no connection for so long that its peer seems to be gone: another one of its team leads, or another one has its
  // place.
  bool is_given_up() const { return is_given_up_; }
  // It seems to be the same command, run once more: of the same peer and to the same path, or with the same ticket.
  [[nodiscard]] bool is_like(const Session& other) const;

  bool same_transfer(const session::Hello& hello) const { return link_.hello().transfer == hello.transfer; }
  Instant came() const { return came_; }
  // It holds a use of this ticket, and whoever began it is gone.
  [[nodiscard]] bool is_abandoned(const trust::TicketNumber& ticket) const;
  // Once, when a proved peer has said what it wants: the sessions that it lost are this one's now.
  bool takes_over() { return std::exchange(takes_over_, false); }
  bool has_role() const { return role_ != nullptr; }
  bool waits() const { return state_ == State::queued && !link_.live_lanes().empty(); }  // one that is cut off keeps its place
  bool superseded() const { return superseded_; }
  // Nobody that the configuration knows, and not let in: who proves a key that it has just made is nobody too.
  [[nodiscard]] bool is_stranger() const;
  bool is_dismissed() const { return is_dismissed_; }
  Instant last_progress() const { return role_ ? role_->last_progress() : Instant::min(); }
  Tally tally() const { return helps_ ? own_ : transfer_ != nullptr ? transfer_->tally : Tally{}; }
  const Error& result() const { return result_; }
  bool was_open() const { return reported_; }
  bool is_dry() const { return is_dry_; }
  // For log lines: which transfer it is, and whose.
  [[nodiscard]] std::string name() const;
  void report_end(Instant now) const;
  void report_transfer() const;
  [[nodiscard]] policy::AuditRecord audit_record(Instant now) const;
  bool is_shown() const { return has_role() || waits(); }
  [[nodiscard]] report::StatusTransfer view(Instant now) const;  // for the status page
  bool counts() const { return counts_; }                        // it was a transfer, not a mere knock at the door
  bool is_cut_off() const { return is_cut_off_; }
  bool take_completion(const rvma::Completion& completion);

  void stop(const Error& why, Instant now);
  void send_away(const Error& why, Instant now);  // it was no transfer: with --once it ends nothing
  void dismiss(const Error& why, Instant now);    // a stranger: it is over in its next turn, whether the peer has heard why or not
  // `by_another_process`: this one is over for good, and its transfer is told as cut off.
  void supersede(Instant now, bool by_another_process = false);

  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;

  // Its turn has come.
  void admit(Instant now);
  // It has to wait: it hears its place when that changes, and now and then while those before it get on.
  void tell_place(uint32_t before, Instant now);

 private:
  enum class State : uint8_t { waiting, queued, running, farewell, ended };

  void listen();

  void note_connection(Instant now);

  void turn_waiting(Instant now);

  [[nodiscard]] Result<void> may_wait();
  [[nodiscard]] Result<void> may_look_aside() const;
  [[nodiscard]] tl::unexpected<Error> not_let_in(const Error& why);

  [[nodiscard]] Result<void> begin(Instant now);

  // Its work counts in the session that leads; it is no transfer of its own.
  [[nodiscard]] Result<void> help(const Teams::Place& place, Instant now);

  void report_session();

  void turn_running(Instant now);

  void tell_team_end(Instant now);

  [[nodiscard]] std::string receipt_name() const;
  void write_receipt();

  void count();

  void leave(Instant now);

  void turn_farewell(Instant now);

  Acceptor& acceptor_;
  Forwarder forwarder_;
  session::Link link_;
  std::shared_ptr<receipt::Book> book_;  // of its receipt; none: nobody wants one
  std::unique_ptr<TransferRole> role_;
  State state_ = State::waiting;
  Farewell farewell_;
  const Instant came_;
  Instant opened_by_;
  std::optional<uint32_t> place_;  // as the peer was told
  Instant place_told_ = Instant::min(), place_due_ = never;
  bool counts_ = false;
  bool superseded_ = false;
  bool is_cut_off_ = false;
  bool takes_over_ = false;
  bool is_let_in_ = false;  // it may wait for its turn
  bool is_dismissed_ = false;
  std::optional<policy::Grant> grant_;  // of an admitted peer; none: --insecure
  bool reported_ = false;
  std::string peer_, path_;  // for people
  recv::Aside aside_;        // of a push
  ports::PeerIdentity who_;
  Transfer* transfer_ = nullptr;
  std::optional<session::TransferId> team_;
  bool helps_ = false;
  Instant cut_off_at_ = never;
  bool is_given_up_ = false;
  bool is_team_end_told_ = false;
  Instant sign_given_ = Instant::min();  // when it was asked for
  struct Sign {
    uint64_t message = 0;
    Instant asked_at{};
  };
  std::optional<Sign> sign_;  // asked for, and it has not taken that yet
  Tally own_;                 // of a helper
  Tally earlier_;             // of the transfer, before this session
  int64_t began_s_ = 0;       // since 1970
  bool is_dry_ = false;
  Error result_{ErrorKind::ok, ""};
  std::optional<Error> told_;  // to the peer in place of the result, which is for the operator
};

}  // namespace ccixfer::program
