#include "routing/router/standstill_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/log.h"

namespace ccixfer::routing {
namespace {

// Others went by, and this one is still where it was.
constexpr uint64_t skipped_after_fragments = 64;

// One that closes has its buffers until what is in flight there has ended.
bool is_set_up(ConnectionPhase phase) { return !is_setting_up(phase); }

}  // namespace

StandstillWatch::StandstillWatch(bool enabled, const Devices& devices, const FragmentPool& pool, ConnectionTable& connections,
                                 StoodStill& stood_still, MessageRelay& relay, ConnectionEnder& ender)
    : enabled_(enabled),
      devices_(devices),
      pool_(pool),
      connections_(connections),
      stood_still_(stood_still),
      relay_(relay),
      ender_(ender) {}

void StandstillWatch::begin(Instant now) {
  if (next_look_ != never) return;
  last_look_ = now;
  next_look_ = after(now, look_interval);
}

bool StandstillWatch::look(Instant now, const SlotTable<Fragment>& fragments, BufferGrants& grants) {
  if (now < next_look_) return false;
  // Of the time between two looks: when it was this process that stood still, its peers did not.
  const Duration passed = std::min<Duration>(now - last_look_, 2 * look_interval);
  last_look_ = now;
  next_look_ = pool_.used() > 0 ? after(now, look_interval) : never;
  const Pressed pressed = grants.take_pressed();
  if (!enabled_) return true;
  for (const uint64_t packed : std::exchange(looked_at_, {})) {
    if (RelayedConnection* connection = connections_.find(packed)) connection->progress.stands = Duration{0};
  }
  ++look_;
  note_waiting(fragments);
  note_networks(passed);
  for (const uint64_t packed : looked_at_) judge(*connections_.find(packed), passed);
  for (const uint64_t packed : std::vector<uint64_t>(looked_at_)) {
    RelayedConnection* connection = connections_.find(packed);
    if (connection != nullptr && is_set_up(connection->phase)) decide(*connection, pressed, now);
  }
  return true;
}

// What each leg of each connection with a buffer is waited for.
void StandstillWatch::note_waiting(const SlotTable<Fragment>& fragments) {
  fragments.for_each([&](Fragment& fragment) {
    RelayedConnection* connection = connections_.find(fragment.connection);
    if (!fragment.buffer || connection == nullptr || !is_set_up(connection->phase)) return;
    if (connection->progress.look != look_) begin_look(*connection);
    note_waiting(*connection, fragment);
  });
}

void StandstillWatch::begin_look(RelayedConnection& connection) {
  const uint64_t last = std::exchange(connection.progress.look, look_);
  looked_at_.push_back(connection.ref(0));
  for (Leg& leg : connection.legs) {
    leg.progress.arriving_bytes = 0;
    leg.progress.skips = false;
    for (const Direction direction : {Direction::gives, Direction::takes}) {
      LegFlow& flow = leg.progress[direction];
      flow.waited_for = false;
      if (last + 1 == look_) continue;
      flow.clock.stands = Duration{0};
      flow.network_bytes = networks_.moved_bytes(leg.device, direction);
    }
  }
}

void StandstillWatch::note_waiting(RelayedConnection& connection, Fragment& fragment) {
  Leg& in = connection.legs[fragment.offer.from];
  Leg& out = connection.legs[fragment.to()];
  if (fragment.pulling) {
    in.progress[Direction::gives].waited_for = devices_.endpoint(in.device).supports_cut_through();
    in.progress.arriving_bytes += fragment.fill.placed_bytes;
  }
  const bool leaves = fragment.pushing || fragment.onward == Onward::exposed;
  if (!leaves || !devices_.endpoint(out.device).delivered_bytes(out.connection)) return;
  LegFlow& takes = out.progress[Direction::takes];
  FragmentLook& look = fragment.look;
  // When it has taken what was there, it has nothing to take before a further chunk has come, and
  // waits as we do.
  const bool has_more = fragment.here == Here::whole || fragment.fill.placed_bytes >= look.seen_bytes + arriving_chunk_bytes;
  if (has_more) {
    look.seen_bytes = fragment.fill.placed_bytes;
    look.seen_moved = takes.clock.moved;
  }
  if (has_more || (look.seen_bytes > 0 && takes.clock.moved == look.seen_moved)) takes.waited_for = true;
  if (look.offered_moved == 0) look.offered_moved = takes.clock.moved + 1;
  const uint64_t others = skipped_after_fragments * pool_.fragment_bytes();
  const bool is_skipped = fragment.here == Here::whole && takes.clock.moved > look.offered_moved + others;
  out.progress.skips = out.progress.skips || is_skipped;
}

uint64_t StandstillWatch::bytes_of(const Leg& leg, Direction direction) const {
  if (direction == Direction::gives) return leg.traffic.pulled_bytes + leg.progress.arriving_bytes;
  return devices_.endpoint(leg.device).delivered_bytes(leg.connection).value_or(0) + leg.traffic.taken_bytes;
}

// What each network has brought and taken since the last look, by all legs on it.
void StandstillWatch::note_networks(Duration passed) {
  networks_.begin_look();
  for (const uint64_t packed : looked_at_) {
    for (Leg& leg : connections_.find(packed)->legs) {
      if (!leg.is_end) continue;
      for (const Direction direction : {Direction::gives, Direction::takes})
        networks_.note(leg.device, direction, leg.progress[direction], bytes_of(leg, direction));
    }
  }
  networks_.end_look(passed);
}

// How long the leg has kept us waiting. On a network that moves as much as it would if each leg had
// its turn, it may be waiting for that: until as much has gone by as all our buffers hold, which is
// the most that can be before it.
Duration StandstillWatch::stands_for(Leg& leg, Direction direction, Duration passed) {
  LegFlow& flow = leg.progress[direction];
  ProgressClock& clock = flow.clock;
  if (!flow.waited_for) {
    clock.stands = Duration{0};
  } else if (direction == Direction::takes && leg.progress.skips) {
    clock.stands += passed;
    return clock.stands;  // what came behind it went by
  } else {
    clock.note(bytes_of(leg, direction), passed);
  }
  const uint64_t network_bytes = networks_.moved_bytes(leg.device, direction);
  if (clock.stands == Duration{0}) flow.network_bytes = network_bytes;
  const uint64_t before_it = uint64_t{pool_.count()} * pool_.fragment_bytes();
  const bool has_had_its_turn = network_bytes - flow.network_bytes > before_it;
  return leg.is_end && !has_had_its_turn ? std::min(clock.stands, networks_.stands(leg.device, direction)) : clock.stands;
}

void StandstillWatch::judge(RelayedConnection& connection, Duration passed) {
  ConnectionProgress& progress = connection.progress;
  for (uint8_t which = 0; which < 2; ++which) {
    Leg& leg = connection.legs[which];
    for (const Direction direction : {Direction::gives, Direction::takes}) {
      const Duration stands = stands_for(leg, direction, passed);
      const LegFlow& flow = leg.progress[direction];
      if (flow.waited_for && flow.clock.stands == Duration{0}) note_moved(connection, which);
      if (stands <= progress.stands) continue;
      progress.stands = stands;
      progress.stands_leg = which;
      progress.stands_taking = direction == Direction::takes;
    }
  }
}

void StandstillWatch::note_moved(RelayedConnection& connection, uint8_t which) {
  Leg& leg = connection.legs[which];
  leg.progress.moved_at = last_look_;
  if (leg.is_end) stood_still_.moves(connection.ends[which]);
}

void StandstillWatch::decide(RelayedConnection& connection, const Pressed& pressed, Instant now) {
  const ConnectionProgress& progress = connection.progress;
  Leg& leg = connection.legs[progress.stands_leg];
  const std::string& end = connection.ends[progress.stands_leg];
  const bool is_proven = connection.fragments.proven_at() != never;
  // What else goes there or comes from there would only stand still as well.
  if (progress.stands >= stalled_after && leg.is_end) stood_still_.remember(end, 2 * look_interval, now);
  const bool others_wait = pressed.buffers || (pressed.trial && !is_proven) || now < progress.pressed_until;
  const bool again = stood_still_.was_cut_off(end, now);
  const Duration patience = again ? stalled_after : is_proven ? cut_when_pressed : cut_new_when_pressed;
  if (progress.stands < (others_wait ? patience : cut_anyway)) return;
  if (leg.is_end) return stop_waiting(connection, now);
  if (connection.phase == ConnectionPhase::open) return press(connection, leg, others_wait, now);
  cut_off(connection, progress.stands_leg, connection.leg_name(progress.stands_leg) + " has not ended what is over");
}

// Who stands still beyond the next router is that router's matter, and it may have many to serve
// first. But it is told that others wait, and whether it lives is asked, also where the ends watch
// one another.
void StandstillWatch::press(RelayedConnection& connection, Leg& leg, bool others_wait, Instant now) {
  ConnectionProgress& progress = connection.progress;
  if (others_wait && now >= progress.press_again) {
    progress.press_again = after(now, press_interval);
    relay_.post_plain(connection, progress.stands_leg, MessageKind::others_wait);
    if (connection.phase != ConnectionPhase::open) return;
  }
  if (std::exchange(leg.unwatched, false)) devices_.endpoint(leg.device).set_keepalive(leg.connection, hop_watch);
}

// An end has held a buffer for long enough. It is closed and remembered, and so are its other
// connections of which nothing has moved meanwhile, those that wait here for a buffer included:
// they hold up the routers before us.
void StandstillWatch::stop_waiting(RelayedConnection& connection, Instant now) {
  const ConnectionProgress& progress = connection.progress;
  const uint8_t which = progress.stands_leg;
  const Duration stood = progress.stands;
  const std::string what =
      fmt::format("{} stands still: {} of a fragment for {:.1f} s", connection.leg_name(which),
                  progress.stands_taking ? "it takes nothing" : "nothing comes", std::chrono::duration<double>(stood).count());
  const std::string end = connection.ends[which];
  stood_still_.remember(end, penalty_time, now);
  cut_off(connection, which, what);
  connections_.for_each([&](RelayedConnection& other) {
    if (end.empty() || other.ends[which] != end || other.phase != ConnectionPhase::open || other.fragments.known() == 0) return;
    const auto is_lately = [&](Instant at) { return at != never && now - at < std::min(stood, 2 * stalled_after); };
    const bool moves = is_lately(other.fragments.proven_at()) || is_lately(other.legs[which].progress.moved_at);
    if (!moves) cut_off(other, which, what);
  });
}

// A connection without a buffer here may wait for one behind an end that stood still a moment ago.
// It waits in vain then, and holds up a router before us all the while.
void StandstillWatch::on_others_wait(RelayedConnection& connection, Instant now) {
  connection.progress.pressed_until = after(now, 2 * press_interval);
  const ConnectionFragments& fragments = connection.fragments;
  if (!enabled_ || fragments.buffers() > 0 || fragments.known() == 0) return;
  if (stood_still_.share_of(connection.ends, fragments.proven_at(), now) != Share::penalty) return;
  for (uint8_t which = 0; which < 2; ++which) {
    if (!connection.legs[which].is_end || !stood_still_.has(connection.ends[which])) continue;
    return cut_off(connection, which, connection.leg_name(which) + " stood still lately, and others wait");
  }
}

// A leg has said that it leaves. What it owes is of no use to anybody, and an orderly end would wait for that.
void StandstillWatch::on_left(RelayedConnection& connection, uint8_t which, Instant now) {
  Leg& leg = connection.legs[which];
  if (connection.fragments.under_way(which) == 0 || !leg.live) return;
  const ConnectionProgress& progress = connection.progress;
  const bool stood_still = enabled_ && progress.stands >= stalled_after && progress.stands_leg == which;
  if (stood_still && leg.is_end) stood_still_.remember(connection.ends[which], penalty_time, now);
  abort(leg);
}

void StandstillWatch::abort(Leg& leg) {
  leg.live = false;
  devices_.endpoint(leg.device).abort(leg.connection);
}

// The buffers of an end that is cut off come back now, not when the last byte has gone out: that is
// what it does not let happen.
void StandstillWatch::cut_off(RelayedConnection& connection, uint8_t which, const std::string& what) {
  log(LogLevel::info, "routing: connection closed: {}", what);
  const uint64_t packed = connection.ref(0);
  ender_.close(connection, Status::timed_out, what, which);
  if (RelayedConnection* left = connections_.find(packed); left != nullptr && left->legs[which].live) abort(left->legs[which]);
}

}  // namespace ccixfer::routing
