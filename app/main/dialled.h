// The dialling side: one transfer from its first dial to its end, over as many sessions as that takes. A push has a Source, a pull
// a Destination; the rest is the same. A lost link, or a peer that no longer knows the session, begins a new session of the same
// transfer id with a new role; what is at the receiver already is found there. It ends when the role ends, when the peer
// refuses, or after `timeout` without progress: then with timeout (30) when the peer was ever reached, else with what the dialler
// found (no answer 35, no route 43, network 10). Progress is what the receiver has or said that no earlier session of the transfer
// reached, that the queue at the peer moves, and that a session came to its end. Signs of life keep a session, but do not count
// beyond it: a peer that dies in each session is given up, and so is one whose lanes die again and again. What cannot be sent again
// (standard input) gets no second session. Files that changed while they were read get another session too, twice at most: its walk
// lists them as they are then.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/main/forwarder.h"
#include "app/main/transfer_role.h"
#include "app/session/dialler.h"
#include "app/session/hub.h"
#include "app/session/link.h"
#include "app/session/link_seal.h"
#include "core/trust/ticket.h"

namespace ccixfer::program {

inline constexpr uint32_t losses_in_vain_max = 10;
inline constexpr uint32_t changed_sessions_max = 2;  // sessions that are followed by another one because files had changed

[[nodiscard]] bool is_passing(ErrorKind kind);  // a new session may mend it

struct RoleWish {
  bool tries_changed_again = false;  // as of SourcePart and DestinationPart
  bool helps = false;                // the acceptor says so, of a team
};

struct DialPlan {
  std::string uri;                  // without a path
  std::vector<std::string> uris{};  // where there are several: they are tried in turn until one of them was reached
  session::Hello hello;
  session::Open open;
  uint16_t lanes = 0;  // 0: chosen from the path (LaneCount), and no fewer than routers when it is routed
  size_t routers = 1;  // of our device
  Duration timeout = std::chrono::seconds(60);
  std::optional<uint32_t> retries;  // new sessions at most, or new rounds of `uris`; none: as many as the timeout allows
  std::function<std::unique_ptr<TransferRole>(session::Link&, const RoleWish&)> make_role;
  // Of a push whose process is no team's: it lists before the session is open, so that its first entries travel with the Open. The
  // role is made then; when the acceptor does not take them, it goes, and another one begins with what is there by then.
  bool lists_ahead = false;
  std::optional<session::SealSetup> seal;  // none: --insecure. Then there is judge_peer too
  // Whether the peer that was reached is the one that is meant. It may ask a person and block for as long. authentication: it is
  // not
  std::function<Result<void>(const trust::ProvedPeer&, const std::string& uri)> judge_peer;
  // How often a person was asked so far, here or of a connection. The time until the answer is not the peer's.
  std::function<uint64_t()> answers = {};
  std::optional<trust::Ticket> ticket;
  std::function<void(uint64_t bytes_per_s, Instant now)> set_rate = {};  // another cap holds from now on
  std::string name = {};  // in front of what is told of lost sessions; empty: the transfer needs no name
};

class DialledTransfer {
 public:
  DialledTransfer(const SessionServices& services, session::Hub& hub, DialPlan plan, Instant now);
  ~DialledTransfer();
  DialledTransfer(const DialledTransfer&) = delete;
  DialledTransfer& operator=(const DialledTransfer&) = delete;

  void turn(Instant now);
  void stood_still();  // until the next turn: the time says nothing of the peer
  [[nodiscard]] Instant next_deadline() const;
  bool take_completion(const rvma::Completion& completion);
  void stop(const Error& why);                        // tells the peer; the transfer stays resumable
  [[nodiscard]] bool moving() const;                  // a session is open: there is progress to show
  [[nodiscard]] Duration stalled(Instant now) const;  // since the last progress
  [[nodiscard]] Duration timeout() const { return plan_.timeout; }
  [[nodiscard]] report::Waiting waiting(Instant now) const;  // for what, while moving()
  [[nodiscard]] std::string transfer() const { return transfer_name(plan_.hello.transfer); }
  [[nodiscard]] std::string identity() const { return peer_ ? trust::to_string(peer_->id) : std::string(); }
  [[nodiscard]] std::optional<uint32_t> place() const;  // it waits at the peer, with so many before it
  [[nodiscard]] bool ended() const;
  // The result stands, and the transfer only waits for puts that a silent peer does not take, or for a disk that does not answer.
  // A caller that turns the endpoint no more and destroys it next need not wait for the puts.
  [[nodiscard]] bool may_be_left() const;
  // It may be left, but must not be destroyed: jobs in the disk, or a put that comes, still use it. The process may end now without
  // running destructors: nothing that was promised to anybody is lost, as nothing is when it is killed.
  [[nodiscard]] bool is_in_use() const;
  [[nodiscard]] const Error& result() const;  // when ended, or when it may be left; kind ok: done and durable
  [[nodiscard]] Tally tally() const;

 private:
  struct Attempt;
  void begin_attempt(Instant now);
  void turn_attempt(Instant now);
  [[nodiscard]] bool may_choose_address() const;
  [[nodiscard]] bool has_further_address() const;
  void choose_address();
  void ask_for_session();
  [[nodiscard]] Result<void> judge_peer();
  [[nodiscard]] bool is_ready_to_ask(Instant now);
  [[nodiscard]] RoleWish wish() const;
  void open_session(Instant now);
  void tell_trouble();
  void judge(Instant now);
  [[nodiscard]] bool may_leave(Instant now);
  void end_attempt(Instant now, Error why, bool again);
  void got_further(Instant now);
  void watch_progress(Instant now);
  void look_at_lanes(Instant now);
  [[nodiscard]] Error told_with_place(const Error& why, bool by_peer) const;
  void turn_farewell(Instant now);
  void look_for_answers();
  [[nodiscard]] Error late() const;
  [[nodiscard]] Instant give_up_at() const;
  [[nodiscard]] Instant listing_deadline() const;

  const SessionServices services_;
  session::Hub& hub_;
  DialPlan plan_;
  std::unique_ptr<Attempt> attempt_;
  Tally earlier_;
  Instant last_sign_{};      // of progress, or of life in the session that runs
  Instant counted_until_{};  // the last such sign before the sessions in a row that made no progress
  Instant begin_at_{};
  Reached reached_most_;
  uint64_t answers_seen_ = 0;
  bool stood_still_ = false;               // until this turn: a person was asked, or the process was stopped
  std::optional<trust::ProvedPeer> peer_;  // of the session before; later sessions are with it, though its key may be new
  uint32_t attempts_ = 0;
  size_t addresses_tried_ = 0;
  uint32_t changed_sessions_ = 0;  // sessions that ended because files had changed
  uint32_t fruitless_ = 0;  // sessions in a row without progress: longer and longer pauses, and their signs of life do not count
  uint32_t losses_in_vain_ = 0;  // of all lanes, in a row without progress: from losses_in_vain_max on signs of life do not count
  bool reached_ = false;         // a lane was up once
  bool ended_ = false;
  std::optional<Error> stop_why_;
  Error result_{ErrorKind::ok, ""};
  std::string told_trouble_;  // why the last dial failed, as far as it was told
};

}  // namespace ccixfer::program
