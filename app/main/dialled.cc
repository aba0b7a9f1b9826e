#include "app/main/dialled.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/main/farewell.h"
#include "app/main/flow_watch.h"
#include "app/main/lane_count.h"
#include "app/report/outcome.h"
#include "app/session/session_keys.h"
#include "core/base/check.h"
#include "core/base/log.h"

namespace ccixfer::program {
namespace {

constexpr Duration pause_first = std::chrono::milliseconds(200);
constexpr Duration pause_longest = std::chrono::seconds(5);
constexpr Duration silent_farewell_timeout = std::chrono::milliseconds(500);  // nobody listened before either
constexpr Duration dialler_slack = std::chrono::seconds(2);  // the dialler knows best why nobody answered: let it speak first

constexpr Duration listing_patience = std::chrono::milliseconds(20);

constexpr Duration address_patience = std::chrono::seconds(2);  // of one address of several

std::string at(const std::string& what, const std::string& uri, const char* what_to_do) {
  return fmt::format("{}: {}: {}", what, uri, what_to_do);
}

// One host of our authority, which may have been given a new key meanwhile.
bool share_a_name(const trust::ProvedPeer& one, const trust::ProvedPeer& other) {
  return one.certified && other.certified && std::any_of(one.names.begin(), one.names.end(), [&](const std::string& name) {
           return std::find(other.names.begin(), other.names.end(), name) != other.names.end();
         });
}

}  // namespace

bool is_passing(ErrorKind kind) {
  return kind == ErrorKind::network || kind == ErrorKind::timeout || kind == ErrorKind::no_answer || kind == ErrorKind::no_route ||
         kind == ErrorKind::interrupted;
}

struct DialledTransfer::Attempt {
  Attempt(DialledTransfer& transfer, Instant now)
      : hub(transfer.hub_),
        link(transfer.services_.endpoint, transfer.plan_.hello, forwarder),
        dialler(transfer.services_.endpoint, link, transfer.plan_.uri, transfer.services_.entropy.next_u64()),
        began(now) {
    if (transfer.plan_.seal) link.secure(*transfer.plan_.seal);
    hub.add_link(&link);
    if (transfer.plan_.seal) dial();
  }
  ~Attempt() {
    forwarder.detach();
    role.reset();
    hub.remove_dialler(&dialler);
    hub.remove_link(&link);
  }
  void dial() { hub.add_dialler(&dialler); }

  session::Hub& hub;
  Forwarder forwarder;
  session::Link link;
  session::Dialler dialler;
  std::unique_ptr<TransferRole> role;
  std::unique_ptr<TransferRole> ahead;  // it lists for the Open, and is the role if its entries are taken
  Instant lists_since = never;
  Instant began;
  bool is_right_peer = false;
  bool asked = false;  // Open is posted
  uint64_t queue_news_seen = 0;
  std::optional<uint32_t> place_told;
  bool lanes_were_up = false;
  Instant leaves_at = never;  // its role may leave since then
  bool leaves_early = false;  // the network repeats an endpoint's last words by itself
  Farewell farewell;
  Error why{ErrorKind::ok, ""};
  bool again = false;
  bool hung_up = false;         // for the puts that did not come to an end: no answer is awaited any more
  bool only_puts_left = false;  // and jobs in the disk
  FlowWatch flow;
  std::optional<LaneCount> lanes;  // from Opened on
};

DialledTransfer::DialledTransfer(const SessionServices& services, session::Hub& hub, DialPlan plan, Instant now)
    : services_(services), hub_(hub), plan_(std::move(plan)), last_sign_(now), counted_until_(now), begin_at_(now) {}
DialledTransfer::~DialledTransfer() = default;

bool DialledTransfer::ended() const { return ended_; }
bool DialledTransfer::may_be_left() const { return attempt_ && attempt_->only_puts_left; }
bool DialledTransfer::is_in_use() const { return may_be_left() && attempt_->role && attempt_->role->in_use(); }
const Error& DialledTransfer::result() const { return result_; }

Tally DialledTransfer::tally() const {
  if (attempt_ && attempt_->role) return continued(earlier_, attempt_->role->tally());
  return earlier_;
}

std::optional<uint32_t> DialledTransfer::place() const { return attempt_ && !attempt_->role ? attempt_->place_told : std::nullopt; }

bool DialledTransfer::moving() const { return attempt_ && attempt_->role; }
report::Waiting DialledTransfer::waiting(Instant now) const {
  if (!moving()) return {};
  return waiting_for(attempt_->role->bottleneck(now), report_hops(attempt_->link.hops(0)));
}
Duration DialledTransfer::stalled(Instant now) const { return now - last_sign_; }

bool DialledTransfer::take_completion(const rvma::Completion& completion) {
  return attempt_ && attempt_->role && attempt_->role->take_completion(completion);
}

void DialledTransfer::turn(Instant now) {
  if (ended_) return;
  if (std::exchange(stood_still_, false)) last_sign_ = counted_until_ = now;
  if (!attempt_ && now >= begin_at_) begin_attempt(now);
  if (attempt_ && !attempt_->farewell.has_begun()) turn_attempt(now);
  if (attempt_ && attempt_->farewell.has_begun()) turn_farewell(now);
  if (!attempt_ && !ended_ && stop_why_) {
    result_ = *stop_why_;
    ended_ = true;
  }
  look_for_answers();
}

// `now` is from before the question: the next turn knows how long it took.
void DialledTransfer::look_for_answers() {
  const uint64_t answers = plan_.answers ? plan_.answers() : 0;
  if (std::exchange(answers_seen_, answers) != answers) stood_still();
}

void DialledTransfer::stood_still() {
  stood_still_ = true;
  if (attempt_) attempt_->dialler.begin_patience_anew();
}

bool DialledTransfer::may_choose_address() const { return plan_.uris.size() > 1 && !reached_; }

// Of the round that has begun.
bool DialledTransfer::has_further_address() const { return may_choose_address() && addresses_tried_ % plan_.uris.size() != 0; }

// A host has several addresses, and not all of them can be reached from everywhere. To try each of them once is one attempt.
void DialledTransfer::choose_address() {
  if (!has_further_address()) ++attempts_;
  if (may_choose_address()) plan_.uri = plan_.uris[addresses_tried_++ % plan_.uris.size()];
}

void DialledTransfer::begin_attempt(Instant now) {
  choose_address();
  attempt_ = std::make_unique<Attempt>(*this, now);
  const Duration left = plan_.timeout == forever ? forever : plan_.timeout - (now - last_sign_);
  attempt_->dialler.set_lanes(1);
  attempt_->dialler.expect_lanes(plan_.lanes != 0 ? plan_.lanes : lanes_first_most);
  if (reached_) attempt_->dialler.set_reached();
  const Duration patience = std::max(may_choose_address() ? std::min(left, address_patience) : left, Duration(0));
  attempt_->dialler.set_patience(plan_.retries ? Duration(0) : patience);
}

void DialledTransfer::turn_attempt(Instant now) {
  Attempt& attempt = *attempt_;
  const bool up = !attempt.link.live_lanes().empty();
  if (up) reached_ = true;
  if (!attempt.is_right_peer && attempt.link.is_secured()) {
    if (auto judged = judge_peer(); !judged) {
      abort_session(attempt.link, nullptr, {judged.error().kind, "the peer is not the one that we want to reach"});
      return end_attempt(now, judged.error(), false);
    }
    attempt.is_right_peer = true;
  }
  const bool is_ready = !attempt.asked && attempt.is_right_peer && is_ready_to_ask(now);
  if (!attempt.role && attempt.ahead && attempt.ahead->error() != nullptr) {  // before the Open, or while it is on its way
    const Error wrong = *attempt.ahead->error();
    abort_session(attempt.link, nullptr, wrong);
    return end_attempt(now, wrong, false);
  }
  if (is_ready) ask_for_session();
  const bool lost = attempt.lanes_were_up && !up;
  attempt.lanes_were_up = up;
  if (lost) ++losses_in_vain_;
  if (!attempt.role && attempt.forwarder.opened() && !attempt.forwarder.lost()) open_session(now);
  if (attempt.role) attempt.role->turn(now);
  watch_progress(now);
  look_at_lanes(now);
  tell_trouble();
  judge(now);
  // The peer hangs up as soon as it has our farewell: that its lanes are gone then is no loss.
  if (lost && attempt_ && !attempt_->farewell.has_begun())
    services_.reporter.retry(at("the connection is lost", plan_.uri, "dialling again"));
}

// Only a peer that is the right one learns what is wanted of it.
Result<void> DialledTransfer::judge_peer() {
  const trust::ProvedPeer* peer = attempt_->link.proved();
  if (peer == nullptr) return {};
  const bool is_other = peer_ && peer_->id != peer->id;
  if (is_other && !share_a_name(*peer_, *peer)) {
    return fail(ErrorKind::authentication, fmt::format("another peer answers now: {}: it was {} and is {}: check who runs there",
                                                       plan_.uri, trust::to_string(peer_->id), trust::to_string(peer->id)));
  }
  if (!peer_ || is_other) {
    if (auto judged = plan_.judge_peer(*peer, plan_.uri); !judged) return judged;
  }
  if (is_other) log(LogLevel::info, "the peer at {} has another key now: {}", plan_.uri, trust::to_string(peer->id));
  peer_ = *peer;
  return {};
}

// A slow disk holds nothing up for long: then the entries come as they always can.
bool DialledTransfer::is_ready_to_ask(Instant now) {
  Attempt& attempt = *attempt_;
  if (!plan_.lists_ahead) return true;
  if (!attempt.ahead) {
    attempt.ahead = plan_.make_role(attempt.link, wish());
    attempt.ahead->list_ahead();
    attempt.lists_since = now;
  }
  attempt.ahead->turn(now);
  return attempt.ahead->has_listed_ahead() || now >= after(attempt.lists_since, listing_patience);
}

// Without encryption before the first dial: it travels with the first connection's request.
void DialledTransfer::ask_for_session() {
  Attempt& attempt = *attempt_;
  attempt.asked = true;
  session::Open open = plan_.open;
  if (plan_.ticket && attempt.link.keys() != nullptr) {
    open.ticket = session::TicketProof{plan_.ticket->number,
                                       trust::prove(plan_.ticket->secret, plan_.ticket->number, attempt.link.keys()->ticket())};
  }
  if (attempt.ahead && attempt.ahead->has_listed_ahead()) open.first = attempt.ahead->first_entries(room_for_first_entries(open));
  if (open.first.count == 0) attempt.ahead.reset();
  for (const session::Message& part : session::cut(open)) attempt.link.post(part);
  if (!plan_.seal) attempt.dial();
}

RoleWish DialledTransfer::wish() const {
  const bool may_begin_again = !plan_.retries || attempts_ <= *plan_.retries;
  return {may_begin_again && changed_sessions_ < changed_sessions_max, attempt_->forwarder.is_helper()};
}

// Once for each reason in a row: whoever mistyped the address need not wait for the timeout to learn it. (With --retries each
// attempt is told of as it ends.)
void DialledTransfer::tell_trouble() {
  const Error* trouble = attempt_->dialler.trouble();
  if (!attempt_->link.live_lanes().empty()) told_trouble_.clear();
  if (trouble == nullptr || plan_.retries || trouble->message == told_trouble_) return;
  told_trouble_ = trouble->message;
  services_.reporter.retry(trouble->message);
}

void DialledTransfer::look_at_lanes(Instant now) {
  Attempt& attempt = *attempt_;
  if (!attempt.lanes || now < attempt.lanes->next_look()) return;
  const uint16_t before = attempt.lanes->lanes();
  attempt.lanes->look(now, attempt.link.moved_bytes(), attempt.link.path_figures());
  if (attempt.lanes->lanes() == before) return;
  log(LogLevel::info, "session {}: {} lanes instead of {}", attempt.link.session(), attempt.lanes->lanes(), before);
  attempt.dialler.set_lanes(attempt.lanes->lanes());
}

void DialledTransfer::got_further(Instant now) {
  last_sign_ = now;
  fruitless_ = 0;
  losses_in_vain_ = 0;
}

void DialledTransfer::watch_progress(Instant now) {
  Attempt& attempt = *attempt_;
  if (attempt.role && advance(reached_most_, reached_by(attempt.role->tally()))) got_further(now);
  if (!attempt.role && attempt.forwarder.queue_news() != attempt.queue_news_seen) {
    attempt.queue_news_seen = attempt.forwarder.queue_news();
    got_further(now);
    const uint32_t before = attempt.forwarder.queued()->before;
    if (attempt.place_told != before) services_.reporter.waiting(transfer_name(plan_.hello.transfer), before);
    attempt.place_told = before;
  }
  if (losses_in_vain_ >= losses_in_vain_max) return;
  if (attempt.role) last_sign_ = std::max(last_sign_, std::min(attempt.role->last_progress(), now));
  if (!attempt.flow.is_due(now)) return;
  if (const auto moved = attempt.flow.note(now, attempt.link.moved_bytes())) last_sign_ = std::max(last_sign_, *moved);
}

Error DialledTransfer::late() const {
  if (!reached_) return {ErrorKind::no_answer, at("no answer", plan_.uri, "check that the peer runs and can be reached")};
  const std::string stuck = attempt_ && attempt_->role ? attempt_->role->stuck_disk() : std::string();
  return {ErrorKind::timeout,
          at(stuck.empty() ? "no progress within the timeout" : stuck, plan_.uri, "run the same command again to resume")};
}

void DialledTransfer::open_session(Instant now) {
  Attempt& attempt = *attempt_;
  attempt.link.set_session(attempt.forwarder.opened()->session);
  if (attempt.forwarder.opened()->took_first_entries) attempt.role = std::move(attempt.ahead);
  attempt.ahead.reset();
  if (!attempt.role) attempt.role = plan_.make_role(attempt.link, wish());
  attempt.forwarder.attach(attempt.role->handler());  // before start(): it takes up live lanes that it has not been told of
  attempt.role->start(now);
  const uint32_t allowed = std::max<uint32_t>(1, attempt.forwarder.opened()->lanes_max);
  const std::vector<ports::HopInfo> hops = attempt.link.hops(0);
  const auto bounded = [&](size_t lanes) { return static_cast<uint16_t>(std::min<size_t>(lanes, allowed)); };
  if (plan_.lanes != 0) {
    attempt.lanes.emplace(bounded(plan_.lanes), bounded(plan_.lanes), Duration{0});
  } else {
    const size_t least = hops.size() > 1 ? std::min<size_t>(plan_.routers, lanes_chosen_most) : 1;
    attempt.lanes.emplace(bounded(least), bounded(std::max<size_t>(least, lanes_for(hops))),
                          hops.empty() ? Duration{0} : hops.front().round_trip);
  }
  attempt.dialler.set_lanes(attempt.lanes->lanes());
  // udp says three times that an endpoint is destroyed. A socket of TCP that is closed drops what it has not delivered as soon as
  // the peer says anything more, and the peer would wait for us.
  attempt.leaves_early = !hops.empty() && hops.front().transport == "udp";
  report::Session line{transfer_name(plan_.hello.transfer), plan_.uri, report_hops(hops), {}};
  if (const trust::ProvedPeer* peer = attempt.link.proved()) line.identity = trust::to_string(peer->id);
  services_.reporter.session(line);
}

// Whether this session goes on, ends the transfer, or is followed by another one.
void DialledTransfer::judge(Instant now) {
  Attempt& attempt = *attempt_;
  if (stop_why_) {
    abort_session(attempt.link, attempt.role.get(), *stop_why_);
    return end_attempt(now, *stop_why_, false);
  }
  if (attempt.role && (attempt.role->finished() || (attempt.leaves_early && may_leave(now)))) {
    const Error* error = attempt.role->error();
    const Error end = error != nullptr ? *error : attempt.role->end();
    const bool had_changes = error != nullptr && end.kind == ErrorKind::vanished;  // a role says so only where it is tried again
    if (had_changes) {
      ++changed_sessions_;
      got_further(now);  // it came to its end, though it may have found nothing that an earlier session had not
    }
    return end_attempt(now, end, error != nullptr && (is_passing(end.kind) || had_changes));
  }
  // The peer said why, and may have closed the connection in the same breath.
  if (!attempt.role && attempt.forwarder.was_aborted() && attempt.forwarder.lost())
    return end_attempt(now, *attempt.forwarder.lost(), is_passing(attempt.forwarder.lost()->kind));
  if (attempt.dialler.session_lost()) {
    return end_attempt(now, {ErrorKind::network, "the peer no longer knows the session: " + plan_.uri}, true);
  }
  if (const Error* failure = attempt.dialler.failure(); failure != nullptr && attempt.link.live_lanes().empty()) {
    if (plan_.retries && is_passing(failure->kind) && !attempt.dialler.hopeless()) return end_attempt(now, *failure, true);
    if (may_choose_address() && now < give_up_at() && is_passing(failure->kind)) return end_attempt(now, *failure, true);
    // A peer that refuses for now, as it is busy or going down, was reached as well.
    reached_ = reached_ || attempt.dialler.refused();
    if (reached_ && is_passing(failure->kind) && !attempt.dialler.hopeless()) {
      Error end = late();
      if (attempt.dialler.refused()) end.message = failure->message;
      return end_attempt(now, end, false);
    }
    return end_attempt(now, *failure, false);
  }
  if (!attempt.role && attempt.forwarder.lost()) {
    if (attempt.forwarder.peer_broke_protocol()) abort_session(attempt.link, nullptr, *attempt.forwarder.lost());
    return end_attempt(now, *attempt.forwarder.lost(), is_passing(attempt.forwarder.lost()->kind));
  }
  if (now < give_up_at()) return;
  const Error end = late();
  abort_session(attempt.link, attempt.role.get(), end);
  end_attempt(now, end, false);
}

// The endpoint has had a turn for what was said last.
bool DialledTransfer::may_leave(Instant now) {
  Attempt& attempt = *attempt_;
  if (!attempt.role->may_leave()) {
    attempt.leaves_at = never;
    return false;
  }
  return std::exchange(attempt.leaves_at, now) != never;
}

void DialledTransfer::end_attempt(Instant now, Error why, bool again) {
  Attempt& attempt = *attempt_;
  if (again && attempt.role && !attempt.role->repeatable()) {
    again = false;
    why = {ErrorKind::network, at("the session is lost, and standard input cannot be read again", plan_.uri,
                                  "run the command again with its input from the beginning")};
  }
  const Duration patience = why.kind == ErrorKind::timeout ? silent_farewell_timeout : farewell_timeout;
  attempt.farewell.begin(now, patience, why.kind != ErrorKind::ok && !again);
  attempt.why = std::move(why);
  attempt.again = again;
}

// A disk of this host is not at the peer's address: whoever reads that would free space on the wrong one.
Error DialledTransfer::told_with_place(const Error& why, bool by_peer) const {
  const bool is_of_files =
      why.kind == ErrorKind::file_io || why.kind == ErrorKind::no_space || why.kind == ErrorKind::source_selection;
  return report::advised(why, is_of_files && !by_peer ? "" : plan_.uri);
}

void DialledTransfer::turn_farewell(Instant now) {
  Attempt& attempt = *attempt_;
  if (attempt.role) {
    attempt.role->turn(now);
    watch_progress(now);
  }
  const Farewell::Stage stage = attempt.farewell.turn(attempt.link, attempt.role.get(), now);
  if (stage == Farewell::Stage::telling_peer) return;
  if (stage == Farewell::Stage::waiting_for_role) {
    const bool goes_on_no_more = stop_why_ && attempt.again && !attempt.hung_up;  // what it waits for is no session's any more
    if (!attempt.farewell.is_late(now) && !goes_on_no_more) return;
    // A session that is to be followed by another waits for its jobs: as long as the timeout allows.
    if (const bool too_late = now >= give_up_at(); attempt.again && !stop_why_ && !too_late) {
      attempt.farewell.wait_until(give_up_at());
      return;
    }
    // A put that has begun to come keeps its buffer for as long as its connection lives.
    if (!std::exchange(attempt.hung_up, true)) {
      attempt.link.fail(attempt.why);
      attempt.farewell.wait_until(after(now, silent_farewell_timeout));
      return;
    }
    attempt.farewell.wait_until(never);
    attempt.only_puts_left = true;
    result_ = stop_why_ ? *stop_why_ : told_with_place(attempt.why, attempt.forwarder.was_aborted());
    return;
  }
  if (attempt.role) earlier_ = continued(earlier_, attempt.role->tally());
  const Error why = attempt.why;
  const bool was_aborted = attempt.forwarder.was_aborted();
  bool again = attempt.again && !stop_why_;
  attempt_.reset();
  if (again && plan_.retries && attempts_ > *plan_.retries && !has_further_address()) again = false;
  if (fruitless_ == 0) counted_until_ = last_sign_;
  last_sign_ = counted_until_;
  const bool is_late = again && plan_.timeout != forever && now - last_sign_ >= plan_.timeout;
  if (!again || is_late) {
    result_ = stop_why_ ? *stop_why_ : is_late ? late() : told_with_place(why, was_aborted);
    ended_ = true;
    return;
  }
  ++fruitless_;
  const Duration pause = std::min(pause_longest, pause_first * (1 << std::min<uint32_t>(fruitless_ - 1, 8)));
  // Between half of it and all: those that lost the same peer come back one after the other.
  const auto half_ns = static_cast<uint64_t>(pause.count() / 2);
  begin_at_ = after(now, pause - Duration(static_cast<int64_t>(services_.entropy.next_u64() % (half_ns + 1))));
  services_.reporter.retry(plan_.name + (why.message.empty() ? error_row(why.kind).words : why.message));
}

Instant DialledTransfer::next_deadline() const {
  if (ended_) return never;
  if (stood_still_) return Instant::min();
  if (!attempt_) return begin_at_;
  const Instant role = attempt_->role ? attempt_->role->next_deadline() : listing_deadline();
  const bool leaves = attempt_->farewell.has_begun();
  const Instant own = leaves ? attempt_->farewell.next_deadline() : give_up_at();
  const Instant look = attempt_->lanes && !leaves ? attempt_->lanes->next_look() : never;
  const Instant dial = plan_.seal || attempt_->asked ? attempt_->dialler.next_deadline() : never;  // before, nobody turns it
  return std::min({role, own, look, attempt_->leaves_at, dial});
}

Instant DialledTransfer::listing_deadline() const {
  if (!attempt_->ahead || attempt_->asked) return never;
  return std::min(attempt_->ahead->next_deadline(), after(attempt_->lists_since, listing_patience));
}

Instant DialledTransfer::give_up_at() const {
  const Duration patience = reached_ || plan_.timeout == forever ? plan_.timeout : plan_.timeout + dialler_slack;
  return after(last_sign_, patience);
}

void DialledTransfer::stop(const Error& why) {
  if (!stop_why_) stop_why_ = why;
}

}  // namespace ccixfer::program
