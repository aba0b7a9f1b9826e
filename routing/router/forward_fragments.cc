// Fragments: pulled when a buffer of their class is free, passed on while they arrive, given back when the next router has taken
// them. A router keeps nothing about an operation, and about a fragment only while it holds it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"
#include "core/wire/frame.h"
#include "routing/router/router_impl.h"

namespace ccixfer::routing {
namespace {

uint8_t other(uint8_t side) { return static_cast<uint8_t>(1 - side); }
std::array<uint64_t, 2> exposure_key(uint8_t to, bool of_read, uint64_t cookie) {
  return {uint64_t{to} * 2 + (of_read ? 1 : 0), cookie};
}

}  // namespace

void Router::Impl::on_fragment_message(Pair& pair, uint8_t which, Bytes message) {
  const auto fragment = decode_fragment(message);
  if (!fragment) return reject_peer(pair, "malformed fragment message");
  const uint8_t to = other(which);
  switch (fragment->kind) {
    case MessageKind::write_request:
      return admit(pair, which, *fragment, false);
    case MessageKind::read_request:
      // Only the last router, next to the memory, does something about it.
      return pair.side[to].is_end ? admit(pair, to, *fragment, true) : pass_on(pair, which, message);
    default:
      return fragment->ending.good() ? admit(pair, which, *fragment, false) : pass_on(pair, which, message);
  }
}

// A fragment's data waits on side `from`; `from_end`: in the application's own memory there.
void Router::Impl::admit(Pair& pair, uint8_t from, const FragmentMessage& request, bool from_end) {
  if (pair.fragments >= fragments_per_side_max) return reject_peer(pair, "more fragments than the window allows");
  Fragment& fragment = add_to(fragments);
  fragment.pair = pair.ref(0).packed();
  fragment.of_read = request.kind != MessageKind::write_request;
  fragment.from_end = from_end;
  fragment.from = from;
  fragment.data_class = from_end ? 0 : request.data_class;
  fragment.length_bytes = request.length_bytes;
  fragment.cookie = request.cookie;
  fragment.remote = request.remote;
  fragment.source = from_end ? request.remote : ports::RemoteRef{request.exposed, 0, {}};
  ++pair.fragments;
  // A length that no honest chain gives, or a class: it is the count of routers between the data and us, which both ends of the
  // chain have told at the connect. Who says more would go before the others. Answered, never pulled.
  const uint8_t between = from_end ? 0 : from == 0 ? pair.request.crossed : pair.beyond;
  if (fragment.length_bytes == 0 || fragment.length_bytes > pool.fragment_bytes() || fragment.data_class >= classes_max ||
      fragment.data_class != between) {
    counters.add(Counter::routed_rejected);
    answer_failure(pair, fragment, Status::range);
    return end_fragment(fragment);
  }
  pair.waiting[fragment.data_class].push_back(fragment.ref().packed());
  if (!pair.queued[fragment.data_class]) {
    pair.queued[fragment.data_class] = true;
    turns[fragment.data_class].push_back(pair.ref(0).packed());
  }
}

// Higher classes first: what is in transit already goes on before new data enters (ITB). Every class has its reserved buffer, so a
// lower one waits a bounded time.
void Router::Impl::grant_buffers() {
  for (uint8_t i = 0; i < classes_max; ++i) {
    const auto data_class = static_cast<uint8_t>(options.mechanisms.transit_first ? classes_max - 1 - i : i);
    while (grant_one(data_class)) {
    }
  }
}

// One fragment of the next pair in turn. False: none waits, none can have a buffer, or the rate is used up. Who was passed over for
// want of its share only keeps its place, or those on trial would be served after all the others.
bool Router::Impl::grant_one(uint8_t data_class) {
  const bool granted = grant_in_turn(data_class);
  for (size_t i = passed_over.size(); i > 0; --i) turns[data_class].push_front(passed_over[i - 1]);
  passed_over.clear();
  return granted;
}

bool Router::Impl::grant_in_turn(uint8_t data_class) {
  auto& turn = turns[data_class];
  for (size_t left = turn.size(); left > 0; --left) {
    if (options.rate_bytes_per_s > 0 && rate_next > now + rate_burst) return false;
    const uint64_t packed = turn.front();
    turn.drop_front();
    Pair* pair = find_pair(Ref::of(packed));
    if (pair == nullptr) continue;
    auto& waiting = pair->waiting[data_class];
    if (waiting.empty()) {
      pair->queued[data_class] = false;
      continue;
    }
    const Ref ref = Ref::of(waiting.front());
    Fragment* fragment = fragments.find(ref.index, ref.generation);
    CHECK(fragment != nullptr);
    // Of one direction: were it of both, two routers, each full of what goes to the other, would wait for one another.
    if (options.mechanisms.windows && pair->buffers[fragment->from] >= window(*pair)) {
      turn.push_back(packed);
      continue;
    }
    const Share share = share_of(*pair);
    if (must_move_first(*pair, fragment->from, share)) {
      turn.push_back(packed);
      continue;
    }
    const bool shared = has_share(share);
    memory::Loan buffer = pool.take(data_class, pair->buffers[0] + pair->buffers[1], shared);
    if (!buffer && pair->stands < stalled_after) (shared ? pressed_for_buffers : pressed_for_trial) = true;
    if (!buffer && !options.mechanisms.turns) {
      turn.push_front(packed);
      return false;
    }
    if (!buffer) {
      shared ? turn.push_back(packed) : passed_over.push_back(packed);
      continue;
    }
    waiting.drop_front();
    if (waiting.empty()) {
      pair->queued[data_class] = false;
    } else if (options.mechanisms.turns) {
      turn.push_back(packed);
    } else {
      turn.push_front(packed);
    }
    fragment->buffer = std::move(buffer);
    fragment->share = share;
    ++shares[static_cast<size_t>(share)];
    if (next_look == never) {
      last_look = now;
      next_look = after(now, look_interval);
    }
    ++pair->buffers[fragment->from];
    if (options.rate_bytes_per_s > 0) {
      const auto cost = static_cast<int64_t>(uint64_t{fragment->length_bytes} * 1'000'000'000u / options.rate_bytes_per_s);
      rate_next = std::max(rate_next, now) + Duration(cost);
    }
    fragment->here = Here::arriving;
    pull(*fragment);
    return true;
  }
  return false;
}

// Buffers that keep both networks of a connection busy: twice what is on its way while we wait for them. More would only be cold in
// the processor's cache, and wait here instead of at its source. Of a network whose rate nobody knows only the pool bounds them.
uint32_t Router::Impl::window(const Pair& pair) const {
  double fragments_busy = 0;
  for (const Side& side : pair.side) {
    if (devices[side.device].rate_bits_per_s == 0) return UINT32_MAX;
    const auto rate = static_cast<double>(devices[side.device].rate_bits_per_s) / 8;
    const double wait = side.wait == forever ? 0 : std::chrono::duration<double>(side.wait).count();
    fragments_busy += std::max<double>(window_fragments_min, 2 * rate * wait / pool.fragment_bytes());
  }
  return static_cast<uint32_t>(std::min<double>(std::ceil(fragments_busy), UINT32_MAX));
}

void Router::Impl::note_wait(Pair& pair, uint8_t side, Instant since) const {
  pair.side[side].wait = std::min(pair.side[side].wait, now - since);
}

// Each router: the fragment comes into a buffer of its class, which is held for the whole of it, whatever becomes of the way out.
void Router::Impl::pull(Fragment& fragment) {
  trace_hop("[hop 6] router");
  Pair* pair = pair_of(fragment);
  const Side& side = pair->side[fragment.from];
  cci::RmaOptions read;
  read.write = false;
  read.local = pool_handle;
  read.local_offset_bytes = fragment.buffer.offset_bytes();
  read.remote = fragment.source;
  read.length_bytes = fragment.length_bytes;
  read.context = fragment.ref().packed();
  read.arrival = &fragment.arrival;
  if (fragment.conduit == nullptr) lend_conduit(*pair, fragment);
  const Status status = endpoint(side.device).rma(side.connection, read);
  if (status == Status::no_buffers) return stall(fragment, false);
  fragment.pulling = true;
  fragment.asked_at = now;
  if (status != Status::success) return on_fragment_event(fragment, false, status);
  if (!options.mechanisms.cut_through || !endpoint(pair->side[other(fragment.from)].device).sends_what_arrives()) return;
  cutting.push_back(fragment.ref().packed());
}

// Where both networks can hand bytes on, these need not come into the buffer; that stays the fragment's, for when the way out does
// not take them fast enough. A fragment that may have to leave twice has to be in memory.
void Router::Impl::lend_conduit(const Pair& pair, Fragment& fragment) {
  if (!options.mechanisms.cut_through || !options.mechanisms.empty_is_refused) return;
  const cci::Endpoint& out = endpoint(pair.side[other(fragment.from)].device);
  cci::Endpoint& in = endpoint(pair.side[fragment.from].device);
  if (!out.sends_what_arrives()) return;
  if (conduits.empty() && conduits_out < conduits_max) {
    if (auto made = in.make_conduit()) conduits.push_back(std::move(made));
  }
  if (conduits.empty() || !in.takes(*conduits.back()) || !out.takes(*conduits.back())) return;
  fragment.conduit = std::move(conduits.back());
  conduits.pop_back();
  ++conduits_out;
  fragment.arrival.conduit = fragment.conduit.get();
  fragment.arrival.once = true;
}

void Router::Impl::return_conduit(Fragment& fragment) {
  if (fragment.conduit == nullptr) return;
  --conduits_out;
  fragment.arrival.conduit = nullptr;
  if (fragment.conduit->held_bytes() == 0) conduits.push_back(std::move(fragment.conduit));
  fragment.conduit.reset();
}

// Looks at what arrives: whether it may leave, and whether the way out has another chunk to send. True: something was begun.
bool Router::Impl::cut_through() {
  bool any = false;
  size_t kept = 0;
  for (size_t i = 0; i < cutting.size(); ++i) {
    const Ref ref = Ref::of(cutting[i]);
    Fragment* fragment = fragments.find(ref.index, ref.generation);
    if (fragment == nullptr) continue;
    Pair* pair = pair_of(*fragment);
    if (pair == nullptr || pair->phase != PairPhase::open || fragment->here != Here::arriving) continue;
    cutting[kept++] = cutting[i];
    if (fragment->told_bytes == 0 && fragment->arrival.placed_bytes > 0) note_wait(*pair, fragment->from, fragment->asked_at);
    if (fragment->onward == Onward::not_yet) {
      if (!may_leave(*pair, *fragment)) continue;
      any = true;
      go_on(*pair, *fragment);  // may end it
    } else if (fragment->arrival.placed_bytes > fragment->told_bytes) {
      any = true;
      fragment->told_bytes = fragment->arrival.placed_bytes;
      resume(*pair, *fragment);
    }
  }
  cutting.resize(kept);
  return any;
}

// A fragment whose way in is the slower one stays until the rest will be here by the time that it is wanted: it would be no earlier
// at its end, and would hold the buffer of the next router, on the faster link, for all the time.
bool Router::Impl::may_leave(const Pair& pair, const Fragment& fragment) const {
  if (fragment.arrival.placed_bytes == 0) return false;
  const uint64_t in = devices[pair.side[fragment.from].device].rate_bits_per_s;
  const uint64_t out = devices[pair.side[other(fragment.from)].device].rate_bits_per_s;
  if (!options.mechanisms.paced || in == 0) return true;
  const double missing = static_cast<double>(fragment.length_bytes - fragment.arrival.placed_bytes);
  return missing * static_cast<double>(out) <= static_cast<double>(fragment.length_bytes) * static_cast<double>(in);
}

void Router::Impl::go_on(Pair& pair, Fragment& fragment) {
  fragment.told_bytes = fragment.arrival.placed_bytes;
  fragment.offered_at = now;
  if (fragment.of_read || !pair.side[other(fragment.from)].is_end) return expose(pair, fragment);
  fragment.onward = Onward::pushed;
  push(fragment);
}

void Router::Impl::resume(const Pair& pair, const Fragment& fragment) {
  const Side& side = pair.side[other(fragment.from)];
  endpoint(side.device).resume(side.connection);
}

// The lower connection has as many RMAs in flight as it takes: after the next events.
void Router::Impl::stall(Fragment& fragment, bool of_push) {
  Pair* pair = pair_of(fragment);
  pair->stalled.push_back(fragment.ref(of_push).packed());
  activate(*pair);
}

void Router::Impl::retry_stalled(Pair& pair) {
  for (const uint64_t packed : std::exchange(pair.stalled, {})) {
    const Ref ref = Ref::of(packed);
    Fragment* fragment = fragments.find(ref.index, ref.generation);
    if (fragment == nullptr) continue;
    if (pair.phase != PairPhase::open) {
      if (!fragment->pulling && !fragment->pushing) end_fragment(*fragment);
    } else if (ref.side == 0) {
      pull(*fragment);
    } else if (fragment->onward == Onward::pushed) {
      push(*fragment);
    }
  }
}

// A lower RMA of ours ended.
void Router::Impl::on_fragment_event(Fragment& fragment, bool of_push, ports::Ending ending) {
  (of_push ? fragment.pushing : fragment.pulling) = false;
  Pair* pair = pair_of(fragment);
  if (pair == nullptr || pair->phase != PairPhase::open) {
    if (!fragment.pulling && !fragment.pushing) end_fragment(fragment);
    return;
  }
  if (of_push) return on_pushed(*pair, fragment, ending);
  if (ending.good()) return on_pulled(*pair, fragment);
  on_pull_failed(*pair, fragment, ending);
}

void Router::Impl::on_pulled(Pair& pair, Fragment& fragment) {
  counters.add(Counter::routed_fragments);
  counters.add(Counter::routed_bytes, fragment.length_bytes);
  counters.add(Counter::routed_bytes_passed, fragment.arrival.passed_bytes);
  fragment.here = Here::whole;
  fragment.arrival.complete = true;
  pair.side[fragment.from].pulled_bytes += std::max<uint64_t>(fragment.length_bytes, progress_bytes_min);
  note_wait(pair, fragment.from, fragment.asked_at);
  if (fragment.onward == Onward::over) {  // answered already, and of a write the answer frees the buffers before us as well
    if (fragment.of_read) tell_taken(pair, fragment);
    return end_fragment(fragment);
  }
  const Ref ref = fragment.ref();
  if (options.mechanisms.absorbs) tell_taken(pair, fragment);
  if (pair.phase != PairPhase::open) {  // closed by that, which may have ended the fragment
    Fragment* left = fragments.find(ref.index, ref.generation);
    if (left != nullptr && !left->pushing) end_fragment(*left);
  } else if (fragment.onward == Onward::not_yet) {
    go_on(pair, fragment);
  } else {
    resume(pair, fragment);
  }
}

void Router::Impl::tell_taken(Pair& pair, const Fragment& fragment) {
  if (fragment.from_end) return;
  std::vector<std::byte> message;
  encode(Taken{fragment.cookie, fragment.of_read}, message);
  post(pair, fragment.from, std::move(message));
}

// What is under way further on ends too, and is answered there: by the next router, whose own pull fails, or by the write that we
// give up.
void Router::Impl::on_pull_failed(Pair& pair, Fragment& fragment, ports::Ending ending) {
  fragment.arrival.failed = true;
  if (fragment.onward == Onward::pushed && fragment.pushing) {
    fragment.pulled = ending;
    return resume(pair, fragment);
  }
  const Ref ref = fragment.ref();
  if (fragment.onward == Onward::exposed) {
    withdraw(pair, fragment);
  } else if (fragment.onward != Onward::over) {
    answer_failure(pair, fragment, ending);
  }
  Fragment* left = fragments.find(ref.index, ref.generation);  // the answer may have closed the pair, and that ended it
  if (left != nullptr) end_fragment(*left);
}

// No peer reads it any more.
void Router::Impl::withdraw(Pair& pair, Fragment& fragment) {
  unexpose(fragment);
  pair.exposed.erase(exposure_key(other(fragment.from), fragment.of_read, fragment.cookie));
  fragment.onward = Onward::over;
  resume(pair, fragment);
}

// Answered. What still arrives is drained into its buffer, which then comes back.
void Router::Impl::let_go(Pair& pair, Fragment& fragment) {
  pair.side[other(fragment.from)].taken_bytes += progress_bytes_min;
  note_wait(pair, other(fragment.from), fragment.offered_at);
  if (!fragment.pulling) return end_fragment(fragment);
  if (fragment.onward == Onward::exposed) withdraw(pair, fragment);
  fragment.onward = Onward::over;
}

// The last router writes into the application's memory, by the application's own reference. A mailbox without a buffer is reported,
// never waited for.
void Router::Impl::push(Fragment& fragment) {
  Pair* pair = pair_of(fragment);
  const Side& side = pair->side[other(fragment.from)];
  cci::RmaOptions write;
  write.local = pool_handle;
  write.local_offset_bytes = fragment.buffer.offset_bytes();
  write.remote = fragment.remote;
  write.length_bytes = fragment.length_bytes;
  write.context = fragment.ref(true).packed();
  write.arrival = &fragment.arrival;  // of a whole one, too, bytes may be in the conduit
  const Status status = endpoint(side.device).rma(side.connection, write);
  if (status == Status::no_buffers) return stall(fragment, true);
  fragment.pushing = true;
  if (status != Status::success) on_fragment_event(fragment, true, status);
}

void Router::Impl::on_pushed(Pair& pair, Fragment& fragment, ports::Ending ending) {
  if (ending.status == Status::mailbox_empty && !options.mechanisms.empty_is_refused) return stall(fragment, true);
  if (fragment.pulled.good()) prove(pair);
  acknowledge(pair, fragment.from, fragment.cookie, fragment.pulled.good() ? ending : fragment.pulled);
  if (!options.mechanisms.absorbs) tell_taken(pair, fragment);
  let_go(pair, fragment);
}

// To the next router, or to the initiator of a read: one-use, withdrawn at `taken`.
void Router::Impl::expose(Pair& pair, Fragment& fragment) {
  const uint8_t to = other(fragment.from);
  fragment.handle = memory->register_arriving(Bytes(fragment.buffer.bytes().first(fragment.length_bytes)), &fragment.arrival);
  const auto key = exposure_key(to, fragment.of_read, fragment.cookie);
  if (fragment.handle.kind == ports::HandleKind::none || !pair.exposed.emplace(key, fragment.ref().packed()).second) {
    counters.add(Counter::routed_rejected);  // a cookie used twice at once, or no region left
    answer_failure(pair, fragment, Status::no_memory);
    return let_go(pair, fragment);
  }
  fragment.onward = Onward::exposed;
  FragmentMessage message;
  message.kind = fragment.of_read ? MessageKind::read_reply : MessageKind::write_request;
  message.cookie = fragment.cookie;
  message.length_bytes = fragment.length_bytes;
  message.data_class = static_cast<uint8_t>(fragment.data_class + 1);
  message.exposed = fragment.handle;
  message.remote = fragment.remote;
  std::vector<std::byte> bytes;
  encode(message, bytes);
  post(pair, to, std::move(bytes));
}

void Router::Impl::on_taken(Pair& pair, uint8_t which, Bytes message) {
  const auto taken = decode_taken(message);
  if (!taken) return reject_peer(pair, "malformed taken");
  const auto found = pair.exposed.find(exposure_key(which, taken->of_read, taken->cookie));
  if (found == pair.exposed.end()) return counters.add(Counter::routed_rejected);  // stale
  const Ref ref = Ref::of(found->second);
  Fragment* fragment = fragments.find(ref.index, ref.generation);
  CHECK(fragment != nullptr);
  prove(pair);
  if (!options.mechanisms.absorbs) tell_taken(pair, *fragment);
  if (pair.phase == PairPhase::open) let_go(pair, *fragment);  // else it ended with the pair
}

void Router::Impl::on_fragment_ack(Pair& pair, uint8_t which, Bytes message) {
  const auto ack = decode_fragment_ack(message);
  if (!ack) return reject_peer(pair, "malformed fragment ack");
  // A failure downstream comes without `taken`.
  const auto found = pair.exposed.find(exposure_key(which, false, ack->cookie));
  if (found != pair.exposed.end()) {
    const Ref ref = Ref::of(found->second);
    let_go(pair, *fragments.find(ref.index, ref.generation));
  }
  pass_on(pair, which, message);
}

void Router::Impl::acknowledge(Pair& pair, uint8_t to, uint64_t cookie, ports::Ending ending) {
  std::vector<std::byte> message;
  encode(FragmentAck{cookie, ending}, message);
  post(pair, to, std::move(message));
}

// To whoever asked for it: a write's initiator is where the data is, a read's is at the other side.
void Router::Impl::answer_failure(Pair& pair, const Fragment& fragment, ports::Ending ending) {
  if (!fragment.of_read) return acknowledge(pair, fragment.from, fragment.cookie, ending);
  FragmentMessage reply;
  reply.kind = MessageKind::read_reply;
  reply.cookie = fragment.cookie;
  reply.ending = ending;
  std::vector<std::byte> message;
  encode(reply, message);
  post(pair, other(fragment.from), std::move(message));
}

void Router::Impl::unexpose(Fragment& fragment) {
  const ports::Handle handle = std::exchange(fragment.handle, {});
  if (memory->deregister_region(handle) == Status::busy) fragment.lent = handle;
}

// The transports let go of them as peers acknowledge, or reset the connection (stream::lent_wait_max): what a peer is still sent of
// a connection that is over must be its own data, not that of whoever has the buffer next.
bool Router::Impl::return_lent_buffers() {
  const size_t returned = std::erase_if(lent_buffers, [this](LentBuffer& lent) {
    if (memory->in_use(lent.region)) return false;
    pool.give(lent.data_class, std::move(lent.buffer));
    return true;
  });
  return returned > 0;
}

// Gives everything back. No lower RMA of it may be in flight.
void Router::Impl::end_fragment(Fragment& fragment) {
  Pair* pair = pair_of(fragment);
  unexpose(fragment);
  if (pair != nullptr) {
    --pair->fragments;
    if (fragment.buffer) --pair->buffers[fragment.from];
    if (fragment.onward == Onward::exposed) {
      pair->exposed.erase(exposure_key(other(fragment.from), fragment.of_read, fragment.cookie));
    }
  }
  if (fragment.buffer) --shares[static_cast<size_t>(fragment.share)];
  if (fragment.buffer && memory->in_use(fragment.lent)) {
    lent_buffers.push_back({fragment.lent, fragment.data_class, std::move(fragment.buffer)});
  } else if (fragment.buffer) {
    pool.give(fragment.data_class, std::move(fragment.buffer));
  }
  return_conduit(fragment);
  fragments.remove(fragment.index);
}

// The pair closes. What no lower RMA works on is given back now; the rest when that ends (every one ends with an event).
void Router::Impl::drop_fragments(Pair& pair) {
  std::vector<uint64_t> idle;
  for (auto& waiting : pair.waiting) {
    idle.insert(idle.end(), waiting.begin(), waiting.end());
    waiting.clear();
  }
  for (const auto& [key, fragment] : pair.exposed) idle.push_back(fragment);
  idle.insert(idle.end(), pair.stalled.begin(), pair.stalled.end());
  pair.stalled.clear();
  for (const uint64_t packed : cutting) {  // what is being written on while it arrives
    const Ref ref = Ref::of(packed);
    const Fragment* fragment = fragments.find(ref.index, ref.generation);
    if (fragment == nullptr || pair_of(*fragment) != &pair) continue;
    if (fragment->pulling || fragment->pushing) idle.push_back(packed);  // else who called us ends it
  }
  for (const uint64_t packed : idle) {
    const Ref ref = Ref::of(packed);
    Fragment* fragment = fragments.find(ref.index, ref.generation);
    if (fragment == nullptr) continue;
    if (!fragment->pulling && !fragment->pushing) {
      end_fragment(*fragment);
      continue;
    }
    if (fragment->onward == Onward::exposed) withdraw(pair, *fragment);
    if (fragment->here == Here::arriving && !fragment->arrival.failed) {
      fragment->arrival.failed = true;
      resume(pair, *fragment);
    }
  }
}

}  // namespace ccixfer::routing
