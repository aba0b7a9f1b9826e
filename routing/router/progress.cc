// Who stands still. A buffer is held by a fragment that waits for one of its two sides: to send it, or to take it. Such a side may
// be stopped, or never mean to go on, and live all the while; so what counts is the bytes that move, not its signs of life, and not
// the time that a slow network needs. Nothing is asked of sides that move. Source: README.md 'A peer that stands still'.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/base/log.h"
#include "routing/router/router_impl.h"

namespace ccixfer::routing {
namespace {

constexpr uint64_t skipped_after_fragments = 64;  // others went by, and this one is still where it was

}  // namespace

// A peer that has stood still is known by what it cannot choose: the destination, wherever the router is; the initiator, by its
// address, where it is next to us.
void Router::Impl::name_ends(Pair& pair) {
  pair.ends[1] = format_address(pair.to);
  if (pair.side[0].is_end) pair.ends[0] = devices.peer_of(pair.side[0].device, pair.side[0].connection);
}

Share Router::Impl::share_of(const Pair& pair) const {
  if (!options.mechanisms.progress) return Share::full;
  const bool proven = pair.proven_at != never;
  for (const std::string& end : pair.ends) {
    const auto found = end.empty() ? stood_still.end() : stood_still.find(end);
    if (found == stood_still.end() || now >= found->second.until) continue;
    if (!proven || pair.proven_at < found->second.since) return Share::penalty;
  }
  return proven ? Share::full : Share::trial;
}

// Of the shared buffers. Half of them are for those that have shown that both their ends move, whatever the others do.
bool Router::Impl::has_share(Share share) const {
  const uint32_t parts = share == Share::trial ? 2 : 8;
  return share == Share::full || shares[static_cast<size_t>(share)] < std::max(1u, pool.shared_count() / parts);
}

// It holds what it may hold until it moves: of one direction, as with the window, or two routers, each with what goes to the other,
// would wait for one another.
bool Router::Impl::must_move_first(const Pair& pair, uint8_t from, Share share) const {
  if (!options.mechanisms.progress || pair.buffers[from] == 0) return false;
  return share != Share::full || pair.stands >= stalled_after;
}

void Router::Impl::prove(Pair& pair) { pair.proven_at = now; }

void Router::Impl::look_at_progress() {
  if (now < next_look) return;
  // Of the time between two looks: when it was this process that stood still, its peers did not.
  const Duration passed = std::min<Duration>(now - last_look, 2 * look_interval);
  last_look = now;
  next_look = pool.used() > 0 ? after(now, look_interval) : never;
  const bool pressed = std::exchange(pressed_for_buffers, false);
  const bool pressed_by_new = std::exchange(pressed_for_trial, false);
  if (!options.mechanisms.progress) return;
  for (const uint64_t packed : std::exchange(looked_at, {})) {
    if (Pair* pair = find_pair(Ref::of(packed))) pair->stands = Duration{0};
  }
  ++look;
  note_waiting();
  note_networks(passed);
  for (const uint64_t packed : looked_at) judge(*find_pair(Ref::of(packed)), passed);
  for (const uint64_t packed : std::vector<uint64_t>(looked_at)) {
    Pair* pair = find_pair(Ref::of(packed));
    if (pair == nullptr || pair->phase != PairPhase::open) continue;
    // What else goes there or comes from there would only stand still as well.
    if (pair->stands >= stalled_after && pair->side[pair->stands_side].is_end)
      remember_standstill(pair->ends[pair->stands_side], 2 * look_interval);
    const bool others_wait = pressed || (pressed_by_new && pair->proven_at == never) || now < pair->pressed_until;
    const auto known = stood_still.find(pair->ends[pair->stands_side]);
    const bool again = known != stood_still.end() && known->second.until > after(now, 2 * look_interval) &&  // cut off lately
                       !known->second.moved;
    const Duration patience = again ? stalled_after : pair->proven_at != never ? cut_when_pressed : cut_new_when_pressed;
    if (pair->stands >= (others_wait ? patience : cut_anyway)) stop_waiting(*pair, others_wait);
  }
}

// What each side of each pair with a buffer is waited for.
void Router::Impl::note_waiting() {
  fragments.for_each([&](Fragment& fragment) {
    Pair* pair = pair_of(fragment);
    if (!fragment.buffer || pair == nullptr || pair->phase != PairPhase::open) return;
    if (const uint64_t last = std::exchange(pair->look, look); last != look) {
      looked_at.push_back(pair->ref(0).packed());
      for (Side& side : pair->side) {
        side.arriving_bytes = 0;
        side.sends = side.takes = side.skips = false;
        if (last + 1 == look) continue;
        side.gave.stands = side.took.stands = Duration{0};
        const auto& flows = network_flows[side.device];
        side.gave_share.network_bytes = flows[0].moved_bytes;
        side.took_share.network_bytes = flows[1].moved_bytes;
      }
    }
    Side& in = pair->side[fragment.from];
    Side& out = pair->side[1 - fragment.from];
    if (fragment.pulling) {
      in.sends = endpoint(in.device).sends_what_arrives();
      in.arriving_bytes += fragment.arrival.placed_bytes;
    }
    const bool leaves = fragment.pushing || fragment.onward == Onward::exposed;
    if (!leaves || !endpoint(out.device).delivered_bytes(out.connection)) return;
    if (fragment.here == Here::whole || fragment.arrival.placed_bytes > fragment.seen_bytes) out.takes = true;
    fragment.seen_bytes = fragment.arrival.placed_bytes;
    if (fragment.offered_moved == 0) fragment.offered_moved = out.took.moved + 1;
    const uint64_t others = skipped_after_fragments * pool.fragment_bytes();
    out.skips = out.skips || (fragment.here == Here::whole && out.took.moved > fragment.offered_moved + others);
  });
}

void Clock::note(uint64_t at, Duration passed, uint64_t least_bytes) {
  moved = std::min(moved, at);  // of what failed, nothing came
  const bool moves = at >= moved + least_bytes;
  if (moves) moved = at;
  stands = moves ? Duration{0} : stands + passed;
}

uint64_t Router::Impl::bytes_of(const Side& side, bool taking) {
  if (!taking) return side.pulled_bytes + side.arriving_bytes;
  return endpoint(side.device).delivered_bytes(side.connection).value_or(0) + side.taken_bytes;
}

// What each network has brought and taken since the last look, by all sides on it.
void Router::Impl::note_networks(Duration passed) {
  for (auto& [device, flows] : network_flows) {
    for (NetworkFlow& flow : flows) flow.waited_for = 0;
  }
  for (const uint64_t packed : looked_at) {
    for (Side& side : find_pair(Ref::of(packed))->side) {
      if (!side.is_end) continue;
      for (const bool taking : {false, true}) {
        NetworkFlow& flow = network_flows[side.device][taking ? 1 : 0];
        ShareOfFlow& share = taking ? side.took_share : side.gave_share;
        const uint64_t at = bytes_of(side, taking);
        flow.moved_bytes += at - std::min(at, share.seen_bytes);
        share.seen_bytes = at;
        if (taking ? side.takes : side.sends) ++flow.waited_for;
      }
    }
  }
  for (auto& [device, flows] : network_flows) {
    for (NetworkFlow& flow : flows) {
      if (flow.waited_for == 0) flow.clock.stands = Duration{0};
      if (flow.waited_for > 0) flow.clock.note(flow.moved_bytes, passed, flow.waited_for * progress_bytes_min);
    }
  }
}

// How long the side has kept us waiting. On a network that moves as much as it would if each side had its turn, it may be waiting
// for that: until as much has gone by as all our buffers hold, which is the most that can be before it.
Duration Router::Impl::stands_for(Side& side, bool taking, Duration passed) {
  Clock& clock = taking ? side.took : side.gave;
  ShareOfFlow& share = taking ? side.took_share : side.gave_share;
  const NetworkFlow& flow = network_flows[side.device][taking ? 1 : 0];
  if (!(taking ? side.takes : side.sends)) {
    clock.stands = Duration{0};
  } else if (taking && side.skips) {
    clock.stands += passed;
    return clock.stands;  // what came behind it went by
  } else {
    clock.note(bytes_of(side, taking), passed);
  }
  if (clock.stands == Duration{0}) share.network_bytes = flow.moved_bytes;
  const uint64_t before_it = uint64_t{pool.count()} * pool.fragment_bytes();
  const bool has_had_its_turn = flow.moved_bytes - share.network_bytes > before_it;
  return side.is_end && !has_had_its_turn ? std::min(clock.stands, flow.clock.stands) : clock.stands;
}

void Router::Impl::judge(Pair& pair, Duration passed) {
  for (uint8_t which = 0; which < 2; ++which) {
    Side& side = pair.side[which];
    for (const bool taking : {false, true}) {
      const Duration stands = stands_for(side, taking, passed);
      const bool moves = (taking ? side.takes : side.sends) && (taking ? side.took : side.gave).stands == Duration{0};
      const auto known = moves && side.is_end ? stood_still.find(pair.ends[which]) : stood_still.end();
      if (known != stood_still.end()) known->second.moved = true;
      if (stands <= pair.stands) continue;
      pair.stands = stands;
      pair.stands_side = which;
      pair.stands_taking = taking;
    }
  }
}

// It has held a buffer for long enough. An end is closed and remembered. Of a router beyond, who stands still there is its matter,
// and it may have many to serve first; but it is told that others wait, and whether it lives is asked, also where the ends watch
// one another.
void Router::Impl::stop_waiting(Pair& pair, bool others_wait) {
  Side& side = pair.side[pair.stands_side];
  if (!side.is_end) {
    if (others_wait && now >= pair.press_again) {
      pair.press_again = after(now, press_interval);
      std::vector<std::byte> message;
      encode_plain(MessageKind::others_wait, message);
      post(pair, pair.stands_side, std::move(message));
      if (pair.phase != PairPhase::open) return;
    }
    if (std::exchange(side.unwatched, false)) endpoint(side.device).set_keepalive(side.connection, hop_watch);
    return;
  }
  const std::string what =
      fmt::format("{} stands still: {} of a fragment for {:.1f} s", side_name(pair, pair.stands_side),
                  pair.stands_taking ? "it takes nothing" : "nothing comes", std::chrono::duration<double>(pair.stands).count());
  const uint8_t which = pair.stands_side;
  const std::string end = pair.ends[which];
  const Duration stood = pair.stands;
  remember_standstill(end, penalty_time);
  cut_off_end(pair, which, what);
  // And the other connections of that end, those that wait here for a buffer included: they hold up the routers before us.
  pairs.for_each([&](Pair& other) {
    if (end.empty() || other.ends[which] != end || other.phase != PairPhase::open || other.fragments == 0) return;
    const bool moves = other.proven_at != never && now - other.proven_at < std::min(stood, 2 * stalled_after);
    if (!moves) cut_off_end(other, which, what);
  });
}

// It has no buffer here, and waits for one behind an end that stood still a moment ago, while it holds up a router before us.
void Router::Impl::drop_if_in_vain(Pair& pair) {
  if (pair.buffers[0] + pair.buffers[1] > 0 || pair.fragments == 0 || share_of(pair) != Share::penalty) return;
  for (uint8_t which = 0; which < 2; ++which) {
    const auto known = stood_still.find(pair.ends[which]);
    if (pair.ends[which].empty() || known == stood_still.end() || !pair.side[which].is_end) continue;
    return cut_off_end(pair, which, side_name(pair, which) + " stood still lately, and others wait");
  }
}

void Router::Impl::cut_off_end(Pair& pair, uint8_t which, const std::string& what) {
  log(LogLevel::info, "routing: connection closed: {}", what);
  const uint64_t packed = pair.ref(0).packed();
  close_pair(pair, Status::timed_out, what, which);
  // Its buffers now, not when the last byte has gone out: that is what it does not let happen.
  if (Pair* left = find_pair(Ref::of(packed)); left != nullptr && left->side[which].live) {
    Side& stopped = left->side[which];
    stopped.live = false;
    endpoint(stopped.device).abort(stopped.connection);
  }
}

void Router::Impl::remember_standstill(const std::string& end, Duration for_how_long) {
  if (end.empty()) return;
  std::erase_if(stood_still, [&](const auto& entry) { return entry.second.until <= now; });
  if (stood_still.size() >= stood_still_max) {
    const auto sooner = [](const auto& a, const auto& b) { return a.second.until < b.second.until; };
    stood_still.erase(std::min_element(stood_still.begin(), stood_still.end(), sooner));
  }
  Standstill& entry = stood_still.try_emplace(end, Standstill{now, now}).first->second;
  entry.until = std::max(entry.until, after(now, for_how_long));
}

}  // namespace ccixfer::routing
