// Fragments: pulled when a buffer of their class is free, passed on whole, given back when the next router has taken them. A router
// keeps nothing about an operation, and about a fragment only while it holds it.
#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"
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
      return fragment->status == Status::success ? admit(pair, which, *fragment, false) : pass_on(pair, which, message);
  }
}

// A fragment's data waits on side `from`; `from_end`: in the application's own memory there.
void Router::Impl::admit(Pair& pair, uint8_t from, const FragmentMessage& request, bool from_end) {
  if (pair.fragments >= fragments_per_side_max) return reject_peer(pair, "more fragments than the window allows");
  Fragment& fragment = fragments.add();
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
  // A length or class that no honest chain gives: answered, never pulled.
  if (fragment.length_bytes == 0 || fragment.length_bytes > pool.fragment_bytes() || fragment.data_class >= classes_max) {
    counters.add(Counter::routed_rejected);
    answer_failure(pair, fragment, Status::range);
    return end_fragment(fragment);
  }
  pair.waiting[fragment.data_class].push_back(fragment.ref().packed());
  if (!pair.queued[fragment.data_class]) {
    pair.queued[fragment.data_class] = true;
    turns[fragment.data_class].push_back(pair.ref(0).packed());
  }
  work = true;
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

// One fragment of the next pair in turn. False: none waits, none can have a buffer, or the rate is used up.
bool Router::Impl::grant_one(uint8_t data_class) {
  auto& turn = turns[data_class];
  for (size_t left = turn.size(); left > 0; --left) {
    if (options.rate_bytes_per_s > 0 && rate_next > now + rate_burst) return false;
    const uint64_t packed = turn.front();
    turn.pop_front();
    Pair* pair = find_pair(Ref::of(packed));
    if (pair == nullptr) continue;
    auto& waiting = pair->waiting[data_class];
    if (waiting.empty()) {
      pair->queued[data_class] = false;
      continue;
    }
    memory::Loan buffer = pool.take(data_class, pair->buffers);
    if (!buffer && !options.mechanisms.turns) {
      turn.push_front(packed);
      return false;
    }
    if (!buffer) {
      turn.push_back(packed);
      continue;
    }
    const Ref ref = Ref::of(waiting.front());
    waiting.pop_front();
    if (waiting.empty()) {
      pair->queued[data_class] = false;
    } else if (options.mechanisms.turns) {
      turn.push_back(packed);
    } else {
      turn.push_front(packed);
    }
    Fragment* fragment = fragments.find(ref.index, ref.generation);
    CHECK(fragment != nullptr);
    fragment->buffer = std::move(buffer);
    ++pair->buffers;
    if (options.rate_bytes_per_s > 0) {
      const auto cost = static_cast<int64_t>(uint64_t{fragment->length_bytes} * 1'000'000'000u / options.rate_bytes_per_s);
      rate_next = std::max(rate_next, now) + Duration(cost);
    }
    fragment->state = FragmentState::pulling;
    pull(*fragment);
    return true;
  }
  return false;
}

// Each router: the fragment comes into a buffer of its class, whole, before anything is said downstream.
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
  const Status status = endpoint(side.device).rma(side.connection, read);
  if (status == Status::no_buffers) return stall(fragment);
  work = true;
  if (status != Status::success) on_fragment_event(fragment, status);
}

// The lower connection has as many RMAs in flight as it takes: after the next events.
void Router::Impl::stall(Fragment& fragment) {
  Pair* pair = pair_of(fragment);
  pair->stalled.push_back(fragment.ref().packed());
  activate(*pair);
}

void Router::Impl::retry_stalled(Pair& pair) {
  for (const uint64_t packed : std::exchange(pair.stalled, {})) {
    const Ref ref = Ref::of(packed);
    Fragment* fragment = fragments.find(ref.index, ref.generation);
    if (fragment == nullptr) continue;
    if (pair.phase != PairPhase::open) {
      end_fragment(*fragment);
    } else if (fragment->state == FragmentState::pulling) {
      pull(*fragment);
    } else {
      push(*fragment);
    }
  }
}

// A lower RMA of ours ended.
void Router::Impl::on_fragment_event(Fragment& fragment, Status status) {
  Pair* pair = pair_of(fragment);
  if (pair == nullptr || pair->phase != PairPhase::open) return end_fragment(fragment);
  if (fragment.state == FragmentState::pushing) {
    if (status == Status::mailbox_empty && !options.mechanisms.empty_is_refused) return stall(fragment);
    acknowledge(*pair, fragment.from, fragment.cookie, status);
    return end_fragment(fragment);
  }
  if (status != Status::success) {
    answer_failure(*pair, fragment, status);
    return end_fragment(fragment);
  }
  on_pulled(*pair, fragment);
}

void Router::Impl::on_pulled(Pair& pair, Fragment& fragment) {
  counters.add(Counter::routed_fragments);
  counters.add(Counter::routed_bytes, fragment.length_bytes);
  if (!fragment.from_end) {
    std::vector<std::byte> message;
    encode(Taken{fragment.cookie, fragment.of_read}, message);
    post(pair, fragment.from, std::move(message));
    if (pair.phase != PairPhase::open) return end_fragment(fragment);  // closed by that
  }
  if (!fragment.of_read && pair.side[other(fragment.from)].is_end) {
    fragment.state = FragmentState::pushing;
    return push(fragment);
  }
  expose(pair, fragment);
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
  write.context = fragment.ref().packed();
  const Status status = endpoint(side.device).rma(side.connection, write);
  if (status == Status::no_buffers) return stall(fragment);
  work = true;
  if (status != Status::success) on_fragment_event(fragment, status);
}

// To the next router, or to the initiator of a read: one-use, withdrawn at `taken`.
void Router::Impl::expose(Pair& pair, Fragment& fragment) {
  const uint8_t to = other(fragment.from);
  fragment.handle = memory->register_region(Bytes(fragment.buffer.bytes().first(fragment.length_bytes)));
  const auto key = exposure_key(to, fragment.of_read, fragment.cookie);
  if (fragment.handle.kind == ports::HandleKind::none || !pair.exposed.emplace(key, fragment.ref().packed()).second) {
    counters.add(Counter::routed_rejected);  // a cookie used twice at once, or no region left
    answer_failure(pair, fragment, Status::no_memory);
    return end_fragment(fragment);
  }
  fragment.state = FragmentState::exposed;
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
  end_fragment(*fragment);
}

void Router::Impl::on_fragment_ack(Pair& pair, uint8_t which, Bytes message) {
  const auto ack = decode_ack(message);
  if (!ack) return reject_peer(pair, "malformed fragment ack");
  // A failure downstream comes without `taken`.
  const auto found = pair.exposed.find(exposure_key(which, false, ack->id));
  if (found != pair.exposed.end()) {
    const Ref ref = Ref::of(found->second);
    end_fragment(*fragments.find(ref.index, ref.generation));
  }
  pass_on(pair, which, message);
}

void Router::Impl::acknowledge(Pair& pair, uint8_t to, uint64_t cookie, Status status) {
  std::vector<std::byte> message;
  encode_ack(MessageKind::fragment_ack, {cookie, status}, message);
  post(pair, to, std::move(message));
}

// To whoever asked for it: a write's initiator is where the data is, a read's is at the other side.
void Router::Impl::answer_failure(Pair& pair, const Fragment& fragment, Status status) {
  if (!fragment.of_read) return acknowledge(pair, fragment.from, fragment.cookie, status);
  FragmentMessage reply;
  reply.kind = MessageKind::read_reply;
  reply.cookie = fragment.cookie;
  reply.status = status;
  std::vector<std::byte> message;
  encode(reply, message);
  post(pair, other(fragment.from), std::move(message));
}

// Gives everything back. No lower RMA of it may be in flight.
void Router::Impl::end_fragment(Fragment& fragment) {
  Pair* pair = pair_of(fragment);
  static_cast<void>(memory->deregister_region(fragment.handle));
  if (pair != nullptr) {
    --pair->fragments;
    if (fragment.buffer) --pair->buffers;
    if (fragment.state == FragmentState::exposed) {
      pair->exposed.erase(exposure_key(other(fragment.from), fragment.of_read, fragment.cookie));
    }
  }
  if (fragment.buffer) pool.give(fragment.data_class, std::move(fragment.buffer));
  fragments.remove(fragment);
  work = true;
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
  for (const uint64_t packed : idle) {
    const Ref ref = Ref::of(packed);
    if (Fragment* fragment = fragments.find(ref.index, ref.generation)) end_fragment(*fragment);
  }
}

}  // namespace ccixfer::routing
