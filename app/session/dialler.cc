#include "app/session/dialler.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "app/session/limits.h"
#include "app/session/link.h"
#include "app/session/refusal.h"
#include "core/base/check.h"
#include "core/base/log.h"

namespace ccixfer::session {
namespace {

constexpr Duration pause_first = std::chrono::milliseconds(50);
constexpr Duration pause_max = std::chrono::seconds(5);
constexpr Duration attempt_timeout = std::chrono::seconds(10);
constexpr Duration patience_default = std::chrono::seconds(60);
constexpr Duration spares_after = std::chrono::milliseconds(10);  // that the first connection takes: the others then need as long
constexpr Duration spares_kept = std::chrono::seconds(3);         // for a session that has to wait for its turn they are no use
constexpr Duration settled_after = std::chrono::seconds(5);       // a lane that lived so long starts again from the first pause

struct AttemptFailure {
  Error error;
  bool final = false;  // no other attempt can end differently
  bool session_lost = false;
  bool by_acceptor = false;  // in its own words
};

bool worth_another_attempt(ErrorKind kind) {
  return kind == ErrorKind::network || kind == ErrorKind::timeout || kind == ErrorKind::no_answer || kind == ErrorKind::no_route;
}

// `reached`: the transfer had its peer before. A name that is unknown from then on is the name service's failure, not a mistyped
// one.
AttemptFailure judge(Status status, const std::string& uri, const std::string& reason, bool reached) {
  const auto words = [&](std::string_view what) {
    return reason.empty() ? fmt::format("{}: {}", uri, what) : fmt::format("{}: {} ({})", uri, what, reason);
  };
  switch (status) {
    case Status::refused: {
      if (reason == refusal_unknown_session) return {{ErrorKind::network, words("the session is gone")}, false, true};
      if (std::optional<Error> refusal = parse_refusal(reason)) {
        const bool final = !worth_another_attempt(refusal->kind);
        return {{refusal->kind, fmt::format("{}: refused: {}", uri, refusal->message)}, final, false, true};
      }
      return {{ErrorKind::no_answer, words("connection refused")}, false, false};
    }
    case Status::unreachable:
      return {{ErrorKind::no_answer, words("nobody answers")}, false, false};
    case Status::timed_out:
      return {{ErrorKind::no_answer, words("no answer in time")}, false, false};
    case Status::not_found:
      return {{ErrorKind::no_answer, words("no host has this name")}, !reached, false};
    case Status::no_route:
      return {{ErrorKind::no_route, words("no route")}, false, false};
    case Status::version:
      return {{ErrorKind::protocol, fmt::format("{}: {}", uri, reason.empty() ? "the peer speaks another version" : reason)},
              true,
              false};
    case Status::not_authenticated:
      return {
          {ErrorKind::authentication, fmt::format("{}: {}", uri, reason.empty() ? "the peer's identity is not proved" : reason)},
          true,
          false};
    case Status::not_authorised:
      return {{ErrorKind::not_authorised, fmt::format("{}: {}", uri, reason.empty() ? "the peer does not allow this" : reason)},
              true,
              false};
    default:
      return {{ErrorKind::network, words(to_string(status))}, false, false};
  }
}

struct LaneDial {
  bool dialling = false;
  bool was_up = false;
  uint64_t context = 0;
  uint64_t number = 0;  // Hello::dial
  cci::Connection connection;
  Instant up_since{};
  Instant next_attempt = Instant::min();
  Duration pause = pause_first;
};

// A connection that was dialled ahead, for any lane.
struct Spare {
  uint64_t context = 0;
  cci::Connection connection;
};

}  // namespace

struct Dialler::Impl {
  Impl(cci::Endpoint& an_endpoint, Link& a_link, std::string a_uri, uint64_t seed)
      : endpoint(an_endpoint), link(a_link), uri(std::move(a_uri)), random(seed) {}

  cci::Endpoint& endpoint;
  Link& link;
  std::string uri;
  uint64_t random;
  uint32_t id = 0;
  uint32_t attempts = 0;
  Duration patience = patience_default;
  std::vector<LaneDial> lanes = std::vector<LaneDial>(1);
  size_t spares_wanted = 0;
  Instant spares_at = never;  // when to dial them; behind that, until when they are kept
  std::vector<Spare> spares;
  Instant now{};
  Instant laneless_since = never;  // patience runs from here; never: not yet turned, or a lane is up
  bool opened_once = false;        // a lane was up
  bool reached = false;            // or one of an earlier session of the same transfer
  bool attempt_ended = false;
  std::optional<Error> last_error;
  bool refused = false;  // it was the acceptor's
  std::optional<Error> failure;
  bool session_lost = false;
  bool hopeless = false;  // the failure is final, not patience that ran out

  [[nodiscard]] bool over() const { return failure.has_value() || session_lost; }
  [[nodiscard]] bool any_lane_lives() const { return !link.live_lanes().empty(); }
  // Lane 0 makes the session; the others need its number.
  [[nodiscard]] size_t wanted() const { return link.session() == 0 ? 1 : lanes.size(); }
  [[nodiscard]] bool idle(size_t index) const { return !lanes[index].dialling && !link.has_lane(static_cast<LaneIndex>(index)); }

  // Without the session's number no connection can be made for it: another one would begin a session beside it.
  [[nodiscard]] bool must_move(size_t index) const {
    return link.session() != 0 && !lanes[index].dialling && link.must_move(static_cast<LaneIndex>(index));
  }
  [[nodiscard]] bool wants_dial(size_t index) const { return idle(index) || must_move(index); }

  // The pause before the next attempt: between half and the whole of it, so that lanes and processes spread.
  void back_off(LaneDial& lane) {
    random += 0x9e3779b97f4a7c15u;
    uint64_t z = random;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    const auto half = static_cast<uint64_t>(lane.pause.count() / 2);
    lane.next_attempt = after(now, Duration(static_cast<int64_t>(half + z % (half + 1))));
    lane.pause = std::min(lane.pause * 2, pause_max);
  }

  // Once the first lane's own dial shows that it is of use.
  void turn_spares() {
    if (link.session() != 0) return drop_spares();  // the lanes that wanted one have it
    if (now < spares_at) return;
    if (!lanes[0].dialling || !spares.empty()) return drop_spares();
    spares_at = after(now, spares_kept);
    while (spares.size() < spares_wanted) {
      const uint64_t context = (uint64_t{id} << 32) | ++attempts;
      cci::ConnectOptions options;
      options.timeout = attempt_timeout;
      options.context = context;
      options.ahead = true;
      const Result<cci::Connection> connection = endpoint.connect(uri, options);
      if (!connection) return;  // the dial of the lane will tell
      spares.push_back({context, *connection});
    }
  }

  void drop_spares() {
    spares_at = never;
    for (const Spare& spare : std::exchange(spares, {})) endpoint.disconnect(spare.connection);
  }

  void stop() {
    drop_spares();
    for (LaneDial& lane : lanes) {
      if (std::exchange(lane.dialling, false)) endpoint.disconnect(lane.connection);
    }
  }

  void give_up(Error error) {
    failure = std::move(error);
    stop();
  }

  void attempt_failed(LaneDial& lane, AttemptFailure cause) {
    attempt_ended = true;
    last_error = cause.error;
    refused = cause.by_acceptor;
    log(LogLevel::info, "dial: {}", cause.error.message);
    if (&lane == &lanes.front()) drop_spares();
    // While a lane lives its acceptor has the session, or has just ended it, and what it said last is on its way.
    if (cause.session_lost && !any_lane_lives()) {
      session_lost = true;
      stop();
    } else if (cause.final && !any_lane_lives()) {
      hopeless = true;
      give_up(cause.error);
    } else {
      back_off(lane);
    }
  }

  void dial(size_t index) {
    LaneDial& lane = lanes[index];
    Hello hello = link.hello();
    hello.session = link.session();
    hello.lane = static_cast<uint16_t>(index);
    hello.moves = must_move(index);
    link.prove(hello);
    link.add_early(hello);
    lane.number = hello.dial;
    const std::vector<std::byte> data = encode(hello);
    while (index > 0 && !spares.empty()) {
      const Spare spare = spares.back();
      spares.pop_back();
      if (endpoint.ask(spare.connection, data) != Status::success) continue;  // it has ended
      lane.context = spare.context;
      lane.connection = spare.connection;
      lane.dialling = true;
      return;
    }
    lane.context = (uint64_t{id} << 32) | ++attempts;
    cci::ConnectOptions options;
    options.data = data;
    options.timeout = attempt_timeout;
    options.context = lane.context;
    Result<cci::Connection> connection = endpoint.connect(uri, options);
    if (!connection) {
      const bool final = connection.error().kind == ErrorKind::usage;
      return attempt_failed(lane, {connection.error(), final, false});
    }
    lane.connection = *connection;
    lane.dialling = true;
    if (index == 0 && link.session() == 0 && spares_wanted > 0) spares_at = after(now, spares_after);
  }

  // What became of a lane since the last turn.
  void watch(size_t index) {
    LaneDial& lane = lanes[index];
    if (link.has_lane(static_cast<LaneIndex>(index))) {
      const bool settled = now >= after(lane.up_since, settled_after) && !link.must_move(static_cast<LaneIndex>(index));
      if (settled) lane.pause = pause_first;
    } else if (std::exchange(lane.was_up, false)) {
      back_off(lane);
    }
  }

  // No attempt has ended since the last lane was lost: one is waiting for an answer, or none was made.
  Error silence() const {
    const bool is_dialling = std::any_of(lanes.begin(), lanes.end(), [](const LaneDial& lane) { return lane.dialling; });
    if (opened_once && !is_dialling) return {ErrorKind::network, fmt::format("{}: the connection was lost", uri)};
    return {ErrorKind::no_answer, fmt::format("{}: no answer in time", uri)};
  }

  // true: over.
  bool watch_patience() {
    if (any_lane_lives()) {
      laneless_since = never;
      return false;
    }
    if (laneless_since == never) {
      laneless_since = now;
      last_error.reset();  // of an earlier outage, or of a lane beside those that lived: it says nothing of this one
      refused = false;
    }
    if (opened_once && link.session() == 0 && idle(0)) {
      session_lost = true;  // the acceptor has a session whose number we never learnt
      return true;
    }
    if (now < after(laneless_since, patience)) return false;
    if (patience == Duration::zero() && !attempt_ended) return false;  // no patience still means one attempt
    give_up(last_error.value_or(silence()));
    return true;
  }
};

Dialler::Dialler(cci::Endpoint& endpoint, Link& link, std::string uri, uint64_t seed)
    : impl_(std::make_unique<Impl>(endpoint, link, std::move(uri), seed)) {
  link.set_grace(forever);
  link.set_dialled();
}

Dialler::~Dialler() { impl_->stop(); }

void Dialler::set_id(uint32_t id) { impl_->id = id; }

void Dialler::set_lanes(uint16_t lanes) {
  const size_t count = std::clamp<size_t>(lanes, 1, lanes_max);
  for (size_t i = count; i < impl_->lanes.size(); ++i) {
    if (std::exchange(impl_->lanes[i].dialling, false)) impl_->endpoint.disconnect(impl_->lanes[i].connection);
  }
  impl_->lanes.resize(count);
}

void Dialler::expect_lanes(uint16_t lanes) {
  impl_->spares_wanted = impl_->endpoint.dials_ahead() ? std::clamp<size_t>(lanes, 1, lanes_max) - 1 : 0;
}

void Dialler::set_patience(Duration patience) { impl_->patience = patience; }
void Dialler::begin_patience_anew() { impl_->laneless_since = never; }
void Dialler::set_reached() { impl_->reached = true; }

void Dialler::set_now(Instant now) { impl_->now = now; }

void Dialler::turn(Instant now) {
  Impl& impl = *impl_;
  impl.now = now;
  if (impl.over()) return;
  for (size_t i = 0; i < impl.lanes.size(); ++i) impl.watch(i);
  if (impl.watch_patience()) return;
  for (size_t i = 0; i < impl.wanted() && !impl.over(); ++i) {
    if (impl.wants_dial(i) && now >= impl.lanes[i].next_attempt) impl.dial(i);
  }
  if (impl.spares_at != never && !impl.over()) impl.turn_spares();
}

bool Dialler::handle_connect(cci::Event& event) {
  Impl& impl = *impl_;
  const auto lane = std::find_if(impl.lanes.begin(), impl.lanes.end(),
                                 [&](const LaneDial& l) { return l.dialling && l.context == event.context; });
  if (lane == impl.lanes.end()) {
    const auto spare =
        std::find_if(impl.spares.begin(), impl.spares.end(), [&](const Spare& s) { return s.context == event.context; });
    if (spare == impl.spares.end()) return false;
    if (event.status == Status::success) impl.endpoint.disconnect(event.connection);  // nothing was asked of whoever accepts that
    impl.spares.erase(spare);
    return true;
  }
  lane->dialling = false;
  if (event.status != Status::success) {
    impl.attempt_failed(*lane, judge(event.status, impl.uri, event.reason, impl.reached || impl.opened_once));
    return true;
  }
  impl.attempt_ended = true;
  impl.opened_once = true;
  lane->was_up = true;
  lane->up_since = impl.now;
  impl.link.add_lane(static_cast<LaneIndex>(lane - impl.lanes.begin()), event.connection, false, lane->number);
  return true;
}

Instant Dialler::next_deadline() const {
  const Impl& impl = *impl_;
  if (impl.over()) return never;
  Instant deadline = never;
  if (!impl.any_lane_lives()) {
    if (impl.laneless_since == never) return impl.now;  // the last lane has just gone
    const bool must_try_first = impl.patience == Duration::zero() && !impl.attempt_ended;
    if (!must_try_first) deadline = after(impl.laneless_since, impl.patience);
  }
  for (size_t i = 0; i < impl.wanted(); ++i) {
    const bool lost_just_now = impl.lanes[i].was_up && impl.idle(i);
    if (impl.wants_dial(i)) deadline = std::min(deadline, lost_just_now ? impl.now : impl.lanes[i].next_attempt);
  }
  return std::min(deadline, impl.spares_at);
}

const Error* Dialler::failure() const { return impl_->failure ? &*impl_->failure : nullptr; }
bool Dialler::hopeless() const { return impl_->hopeless; }
const Error* Dialler::trouble() const {
  return impl_->last_error && !impl_->over() && !impl_->any_lane_lives() ? &*impl_->last_error : nullptr;
}
bool Dialler::refused() const { return impl_->refused; }
bool Dialler::session_lost() const { return impl_->session_lost; }

}  // namespace ccixfer::session
