#include "app/main/acceptor.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/main/acceptor_session.h"
#include "core/base/log.h"

namespace ccixfer::program {

Acceptor::Acceptor(const SessionServices& services, session::Hub& hub, const AcceptorOptions& options)
    : services_(services),
      hub_(hub),
      options_(options),
      turns_(std::make_shared<session::PoolTurns>(services.pool.count(), options.sessions_max == 1)),
      receive_rates_(std::make_shared<recv::RateAllowance>(options.rate_bytes_per_s)),
      send_rates_(std::make_shared<send::RateCap>(options.rate_bytes_per_s)) {
  hub_.set_accept_handler(this);
}
Acceptor::~Acceptor() { hub_.set_accept_handler(nullptr); }

void Acceptor::set_rate(uint64_t bytes_per_s, Instant now) {
  receive_rates_.process()->set(bytes_per_s, now);
  send_rates_.process()->set(bytes_per_s, now);
}

// In the order in which they came, so that nobody waits for who came later.
void Acceptor::admit(Instant now) {
  size_t running = 0;
  for (const auto& session : sessions_) running += session->has_role() ? 1u : 0u;
  uint32_t before = 0;
  for (const auto& session : sessions_) {
    if (!session->waits()) continue;
    const bool is_full = running >= (options_.once ? 1 : options_.sessions_max);
    if (is_full) supersede_lost(*session, now);
    const bool earlier_self = std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& other) {
      if (session->team() != nullptr && other->leads(*session->team())) return other->role() == nullptr;  // it ends
      return other->superseded() && other->has_role() && (other->is_of(session->link().transfer_key()) || other->is_like(*session));
    });  // it still holds the names that this one wants
    const bool joins =
        session->team() != nullptr && (leader_of(*session->team()) != nullptr || (ending_ && ending_->team == *session->team()));
    if (options_.once && !joins && (first_end_ || ending_ || (running > 0 && !earlier_self))) {
      session->send_away({ErrorKind::network, words_of_busy}, now);
    } else if (running < options_.sessions_max && !earlier_self && !waits_for_its_part(*session, now)) {
      session->admit(now);
      running += session->has_role() ? 1u : 0u;
    } else {
      session->tell_place(before++, now);
    }
  }
}

bool Acceptor::someone_got_on(Instant since) const {
  return std::any_of(sessions_.begin(), sessions_.end(), [since](const auto& session) { return session->last_progress() > since; });
}

Acceptor::Transfer& Acceptor::transfer(const session::TransferId& id, bool is_of_team) {
  const auto known = std::find_if(transfers_.begin(), transfers_.end(), [&id](const Transfer& one) { return one.id == id; });
  if (known != transfers_.end()) return *known;
  if (transfers_.size() >= transfers_remembered_max) {
    const auto oldest = std::find_if(transfers_.begin(), transfers_.end(), [](const Transfer& one) { return one.sessions == 0; });
    if (oldest != transfers_.end()) {
      add(forgotten_, oldest->tally);
      transfers_.erase(oldest);
    }
  }
  Transfer& transfer = transfers_.emplace_back();
  transfer.id = id;
  // Of a team nobody else knows it all: the process that leads it may be lost.
  transfer.record = std::make_shared<session::TransferRecord>(is_of_team ? session::TransferRecord::files_max_of_dialler
                                                                         : session::TransferRecord::files_max_of_acceptor);
  return transfer;
}

Result<void> Acceptor::check_hello(const session::Hello& hello) const {
  const auto wanted = options_.receives() ? session::Direction::push : session::Direction::pull;
  if (stopped_) return fail(ErrorKind::network, "the peer is going down");
  if (hello.sealed && !options_.seal) {
    return fail(ErrorKind::authentication, "the peer runs with --insecure: start both sides with it, or both without it");
  }
  if (!hello.sealed && options_.seal) {
    return fail(ErrorKind::authentication, "the peer wants encryption: start both sides without --insecure, or both with it");
  }
  if (hello.direction != wanted) {
    return fail(ErrorKind::usage, options_.receives() ? "the peer receives (recv --root): send to it"
                                                      : "the peer serves (send --serve): pull from it");
  }
  return {};
}

std::list<std::unique_ptr<Acceptor::Session>>::iterator Acceptor::supersede(const session::TransferId& transfer, const Session* by,
                                                                            Instant now) {
  auto place = sessions_.end();
  for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
    if (at->get() == by || (*at)->ended() || !(*at)->is_of(transfer)) continue;
    (*at)->supersede(now);
    place = std::next(at);
  }
  return place;
}

// A command that was killed left its session behind, which waits for it. Where all places are taken, whoever runs the command once
// more need not wait until nobody has come back to that one for a minute: it makes room.
void Acceptor::supersede_lost(const Session& by, Instant now) {
  const auto is_lost = [&by](const auto& other) { return other->is_given_up() && !other->superseded() && other->is_like(by); };
  const auto lost = std::find_if(sessions_.begin(), sessions_.end(), is_lost);
  if (lost != sessions_.end()) (*lost)->supersede(now, true);
}

// Strangers are many and cost nothing to be, and neither do the keys that they prove: they keep nobody out.
bool Acceptor::make_room_for_stranger(Instant now) {
  size_t strangers = 0;
  Session* oldest = nullptr;
  for (const auto& session : sessions_) {
    if (!session->is_stranger() || session->is_dismissed()) continue;
    ++strangers;
    if (oldest == nullptr || session->came() < oldest->came()) oldest = session.get();
  }
  if (strangers < strangers_max) return true;
  if (now < after(oldest->came(), stranger_kept)) return false;
  oldest->dismiss({ErrorKind::network, "it did not say in time who it is and what it wants"}, now);
  return true;
}

Result<session::Link*> Acceptor::on_new_session(const session::Hello& hello, Instant now) {
  if (auto fits = check_hello(hello); !fits) return refused(fits.error());
  auto place = sessions_.end();
  if (hello.sealed) {
    if (!make_room_for_stranger(now)) return refused({ErrorKind::network, words_of_busy});
  } else {
    place = supersede(hello.transfer, nullptr, now);
  }
  const auto others = static_cast<size_t>(std::count_if(sessions_.begin(), sessions_.end(), [&hello](const auto& session) {
    return !session->ended() && !session->superseded() && !session->is_given_up() && (!hello.sealed || session->counts());
  }));
  const bool may_be_of_team =
      std::any_of(sessions_.begin(), sessions_.end(), [](const auto& one) { return one->team() != nullptr; });
  const auto let_in =
      std::count_if(sessions_.begin(), sessions_.end(), [](const auto& session) { return !session->is_stranger(); });
  if ((options_.once && others > 0 && !may_be_of_team) ||
      static_cast<size_t>(let_in) >= options_.sessions_max + sessions_waiting_max) {
    return refused({ErrorKind::network, words_of_busy});
  }
  return &(*sessions_.insert(place, std::make_unique<Session>(*this, hello, now)))->link();
}

// A sender that was killed left its session behind, which waits for it. Its ticket is all that tells that the next one is the same.
void Acceptor::end_abandoned(const trust::TicketNumber& ticket, Instant now) {
  for (const auto& session : sessions_) {
    if (session->is_abandoned(ticket)) session->stop({ErrorKind::network, "another transfer came with its ticket"}, now);
  }
}

// A proved peer that begins its transfer anew has the place of the session that it lost.
void Acceptor::take_over_transfers(Instant now) {
  std::vector<std::list<std::unique_ptr<Session>>::iterator> taking;
  for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
    if ((*at)->takes_over()) taking.push_back(at);
  }
  for (const auto at : taking) {
    const auto place = supersede((*at)->link().transfer_key(), at->get(), now);
    if (place != sessions_.end()) sessions_.splice(place, sessions_, at);
  }
}

// One that has come to its summary leads nobody any more.
Acceptor::Session* Acceptor::leader_of(const session::TransferId& team) const {
  const auto leads = [&team](const auto& session) {
    return session->leads(team) && session->role() != nullptr && session->role()->team_ended() == nullptr;
  };
  const auto found = std::find_if(sessions_.begin(), sessions_.end(), leads);
  return found == sessions_.end() ? nullptr : found->get();
}

// Two processes that were given the same part are a mistake, which is told. One that was started anew, because the first one's node
// is gone, is none: the first one gives no sign any more, and is taken for gone when its connections end or the patience does.
bool Acceptor::waits_for_its_part(const Session& session, Instant now) {
  if (session.team() == nullptr || now >= after(session.came(), part_patience)) return false;
  for (const auto& other : sessions_) {
    if (other.get() == &session || !other->is_of_team(*session.team()) || other->role() == nullptr) continue;
    const bool is_another = other->wish().part == session.wish().part && other->wish().member != session.wish().member;
    if (!is_another || !other->is_connected() || other->gave_a_sign_since(session.came())) continue;
    other->ask_for_a_sign(now);
    return true;
  }
  return false;
}

// A process that begins a new session has the place of the one that it lost.
Result<Teams::Place> Acceptor::seat_of(const Session& session, Instant now) {
  bool part_is_here = false;
  for (const auto& other : sessions_) {
    const bool is_of_it = other.get() != &session && other->team() != nullptr && *other->team() == *session.team();
    if (is_of_it && other->was_open()) teams_.is_here(*session.team(), now);  // also one that is lost, and has not ended yet
    if (other.get() == &session || !other->is_of_team(*session.team()) || other->role() == nullptr) continue;
    if (other->wish().part != session.wish().part) continue;
    const bool is_same = other->wish().member == session.wish().member;
    if (is_same || !other->is_connected() || !other->gave_a_sign_since(session.came())) {
      other->supersede(now, !is_same);
    } else {
      part_is_here = true;
    }
  }
  const auto is_led = [this](const session::TransferId& team) { return leader_of(team) != nullptr; };
  return teams_.admit(*session.team(), session.wish(), is_led, part_is_here, now);
}

// The processes of a team that are here do not wait for one that is gone.
void Acceptor::give_up_lost_leaders(Instant now) {
  for (const auto& session : sessions_) {
    if (session->team() == nullptr || !session->leads(*session->team()) || !session->is_given_up()) continue;
    const bool has_others = std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& other) {
      return (other->helps() || other->waits()) && other->is_of_team(*session->team()) && other->is_connected();
    });
    if (has_others)
      session->stop({ErrorKind::network, "the process that led this transfer is gone: another one leads from now on"}, now);
  }
}

session::Link* Acceptor::find_session(const session::Hello& hello) {
  for (const auto& session : sessions_) {
    const session::Link& link = session->link();
    if (!session->ended() && link.session() == hello.session && hello.session != 0 && session->same_transfer(hello))
      return &session->link();
  }
  return nullptr;
}

// Who that is, is what its connection has proved: the session's own handshake has not begun.
void Acceptor::on_refused(const session::Hello* hello, const ports::PeerIdentity& who, const Error& why) {
  if (!options_.audit) return;
  policy::AuditRecord record;
  record.event = policy::AuditRecord::Event::refused;
  record.peer = who.id;
  record.address = who.address;
  if (hello != nullptr) {
    record.direction = hello->direction == session::Direction::push ? "push" : "pull";
    record.transfer = transfer_name(hello->transfer);
  }
  record.outcome = why.kind;
  record.reason = why.message;
  options_.audit(record);
}

void Acceptor::turn(Instant now) {
  // Each is the first in its turn, so that what they share (the cap, the pool) is nobody's more than the others'.
  if (!sessions_.empty()) {
    first_ = (first_ + 1) % sessions_.size();
    const auto middle = std::next(sessions_.begin(), static_cast<std::ptrdiff_t>(first_));
    for (auto at = middle; at != sessions_.end(); ++at) (*at)->turn(now);
    for (auto at = sessions_.begin(); at != middle; ++at) (*at)->turn(now);
  }
  take_over_transfers(now);
  give_up_lost_leaders(now);
  admit(now);
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    Session& session = **at;
    if (!session.ended()) {
      ++at;
      continue;
    }
    const Error& result = session.result();
    const LogLevel level = result.kind == ErrorKind::ok ? LogLevel::info : LogLevel::warning;
    if (session.helps()) {
      log(level, "session {}: helped with {} MB: {}", session.name(), session.tally().bytes / 1'000'000,
          error_row(result.kind).name);
    } else if (session.was_open()) {
      session.report_end(now);
      if ((session.counts() || session.is_cut_off()) && !session.is_dry()) session.report_transfer();
    } else if (session.counts() || result.kind != ErrorKind::ok) {
      if (result.kind != ErrorKind::ok) static_cast<void>(refused(result));
      log(level, "session {}: {}{}{}", session.name(), error_row(result.kind).name, result.message.empty() ? "" : ": ",
          result.message);
    }
    const bool knocked = !session.was_open() && !session.counts() && result.kind == ErrorKind::ok;
    if (options_.audit && !knocked) options_.audit(session.audit_record(now));
    if (session.counts()) note_end(session, now);
    if (session.team() != nullptr && session.was_open()) teams_.is_here(*session.team(), now);
    at = sessions_.erase(at);
  }
  settle_end(now);
}

// With --once: a dry run is no transfer, and comes before the one that is meant. A team has ended when all of its parts have heard
// so. One that lost its leader goes on under another one.
void Acceptor::note_end(const Session& session, Instant now) {
  if (first_end_ || session.is_dry()) return;
  const ErrorKind kind = session.result().kind;
  if (session.team() == nullptr) {
    first_end_ = session.result();
  } else if (kind == ErrorKind::network || kind == ErrorKind::timeout || kind == ErrorKind::interrupted ||
             teams_.awaits_parts(*session.team())) {
    ending_ = Ending{session.result(), *session.team(), after(now, once_patience)};
  } else {
    ending_ = Ending{session.result(), *session.team(), now};
  }
}

void Acceptor::settle_end(Instant now) {
  if (!ending_) return;
  const bool is_led = leader_of(ending_->team) != nullptr;
  const bool is_complete = teams_.has_ended(ending_->team) && !teams_.awaits_parts(ending_->team);
  if (is_led) {
    ending_.reset();
  } else if (is_complete || now >= ending_->until || stopped_) {
    first_end_ = std::exchange(ending_, std::nullopt)->result;
  }
}

Instant Acceptor::next_deadline() const {
  Instant deadline = never;
  if (ending_) deadline = ending_->until;
  for (const auto& session : sessions_) deadline = std::min(deadline, session->next_deadline());
  return deadline;
}

bool Acceptor::take_completion(const rvma::Completion& completion) {
  return std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& session) { return session->take_completion(completion); });
}

void Acceptor::stop(const Error& why, Instant now) {
  stopped_ = true;
  for (const auto& session : sessions_) session->stop(why, now);
}

bool Acceptor::idle() const { return sessions_.empty() && *writing_ == 0; }
size_t Acceptor::sessions() const { return sessions_.size(); }
std::vector<report::StatusTransfer> Acceptor::show(Instant now, size_t most, size_t& more) const {
  std::vector<report::StatusTransfer> shown;
  more = 0;
  for (const auto& session : sessions_) {
    if (!session->is_shown()) continue;
    shown.size() < most ? shown.push_back(session->view(now)) : static_cast<void>(++more);
  }
  return shown;
}
size_t Acceptor::unfinished() const {
  return static_cast<size_t>(
      std::count_if(sessions_.begin(), sessions_.end(), [](const auto& session) { return session->under_way(); }));
}
const std::optional<Error>& Acceptor::first_end() const { return first_end_; }

Tally Acceptor::tally() const {
  Tally sum = forgotten_;
  for (const Transfer& transfer : transfers_) add(sum, transfer.tally);
  return sum;
}

}  // namespace ccixfer::program
