#include "routing/router/fragment_forwarder.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"
#include "core/wire/frame.h"

namespace ccixfer::routing {
namespace {

uint8_t other(uint8_t leg) { return static_cast<uint8_t>(1 - leg); }
Exposure exposure_of(const Fragment& fragment) { return {fragment.to(), fragment.offer.of_read, fragment.offer.cookie}; }

}  // namespace

FragmentForwarder::FragmentForwarder(const RouterMechanisms& mechanisms, const Devices& devices,
                                     std::shared_ptr<cci::MemoryTable> memory, FragmentPool& pool, BufferGrants& grants,
                                     ConnectionTable& connections, MessageRelay& relay, ConnectionEnder& ender, Counters& counters,
                                     Traffic* traffic)
    : mechanisms_(mechanisms),
      devices_(devices),
      memory_(std::move(memory)),
      pool_(pool),
      pool_handle_(memory_->register_region(pool.memory(), cci::access_read_parts)),
      grants_(grants),
      connections_(connections),
      relay_(relay),
      answers_(relay),
      ender_(ender),
      counters_(counters),
      traffic_(traffic),
      lent_(pool, [this](const ports::Handle& handle) { return memory_->in_use(handle); }) {}

FragmentForwarder::~FragmentForwarder() {
  fragments_.for_each([&](Fragment& fragment) { end(fragment); });
  static_cast<void>(return_lent());  // all: nothing refers to them without a transport
  static_cast<void>(memory_->deregister_region(pool_handle_));
}

RelayedConnection* FragmentForwarder::connection_of(const Fragment& fragment) const {
  return connections_.find(fragment.connection);
}

void FragmentForwarder::on_message(RelayedConnection& connection, uint8_t which, Bytes message) {
  const auto fragment = decode_fragment(message);
  if (!fragment) return ender_.reject(connection, "malformed fragment message");
  const uint8_t to = other(which);
  switch (fragment->kind) {
    case MessageKind::write_request:
      return admit(connection, which, *fragment, false);
    case MessageKind::read_request:
      // The last router, next to the memory, answers it; the others pass it on.
      if (connection.legs[to].is_end) return admit(connection, to, *fragment, true);
      if (!connection.fragments.ask({to, fragment->cookie}, fragment->length_bytes))
        return ender_.reject(connection, "a read that is asked for twice, or more than the window allows");
      return relay_.pass_on(connection, which, message);
    default:
      return on_reply(connection, which, *fragment, message);
  }
}

// Nobody takes what he has not asked for: it would stay in its buffer, and he would be blamed for it.
void FragmentForwarder::on_reply(RelayedConnection& connection, uint8_t which, const FragmentMessage& reply, Bytes message) {
  const auto asked_bytes = connection.fragments.take_question({which, reply.cookie});
  if (!asked_bytes) return ender_.reject(connection, "a read reply that nobody asked for");
  if (!reply.ending.good()) {
    connection.fragments.forget_if_idle();
    return relay_.pass_on(connection, which, message);
  }
  if (reply.length_bytes != *asked_bytes) return ender_.reject(connection, "a read reply of another length");
  admit(connection, which, reply, false);
}

// A fragment's data waits on leg `from`; `from_end`: in the application's own memory there.
void FragmentForwarder::admit(RelayedConnection& connection, uint8_t from, const FragmentMessage& request, bool from_end) {
  if (connection.fragments.known() >= fragments_per_side_max)
    return ender_.reject(connection, "more fragments than the window allows");
  Fragment& fragment = add_to(fragments_);
  fragment.connection = connection.ref(0);
  fragment.offer.of_read = request.kind != MessageKind::write_request;
  fragment.offer.from_end = from_end;
  fragment.offer.from = from;
  fragment.offer.data_class = from_end ? 0 : request.data_class;
  fragment.offer.length_bytes = request.length_bytes;
  fragment.offer.cookie = request.cookie;
  fragment.offer.remote = request.remote;
  fragment.offer.source = from_end ? request.remote : ports::RemoteRef{request.exposed, 0, {}};
  connection.fragments.add();
  if (!is_acceptable(connection, fragment)) {
    counters_.add(Counter::routed_rejected);
    answers_.failed(connection, fragment.offer, Status::range);
    return end(fragment);
  }
  grants_.queue(connection, fragment.offer.data_class, {fragment.ref(), fragment.offer.length_bytes, from});
}

// Its length is one that an honest chain gives. Its class is the count of routers between the data
// and us, which both ends of the chain have told at the connect; who said a higher one would go
// before the others. What is not so is answered, and never pulled.
bool FragmentForwarder::is_acceptable(const RelayedConnection& connection, const Fragment& fragment) const {
  const uint8_t between = fragment.offer.from_end ? 0 : fragment.offer.from == 0 ? connection.crossed : connection.beyond;
  return fragment.offer.length_bytes > 0 && fragment.offer.length_bytes <= pool_.fragment_bytes() &&
         fragment.offer.data_class < classes_max && fragment.offer.data_class == between;
}

// Higher classes first: what is in transit already goes on before new data enters (ITB). Every
// class has its reserved buffer, so a lower one waits a bounded time.
bool FragmentForwarder::grant_buffers() {
  bool any = false;
  for (uint8_t i = 0; i < classes_max; ++i) {
    const auto data_class = static_cast<uint8_t>(mechanisms_.transit_first ? classes_max - 1 - i : i);
    while (auto granted = grants_.next(data_class, now_)) {
      any = true;
      start(std::move(*granted));
    }
  }
  return any;
}

void FragmentForwarder::start(GrantedBuffer granted) {
  Fragment* fragment = find(granted.fragment);
  CHECK(fragment != nullptr);
  fragment->buffer = std::move(granted.buffer);
  fragment->share = granted.share;
  fragment->here = Here::arriving;
  pull(*fragment);
}

void FragmentForwarder::note_wait(RelayedConnection& connection, uint8_t leg, Instant since) const {
  Duration& wait = connection.legs[leg].traffic.wait;
  wait = std::min(wait, now_ - since);
}

// Each router: the fragment comes into a buffer of its class, which is held for the whole of it,
// whatever becomes of the way out.
void FragmentForwarder::pull(Fragment& fragment) {
  trace_stage("[stage 6] router");
  RelayedConnection* connection = connection_of(fragment);
  const Leg& leg = connection->legs[fragment.offer.from];
  cci::RmaOptions read;
  read.write = false;
  read.local = pool_handle_;
  read.local_offset_bytes = fragment.buffer.offset_bytes();
  read.remote = fragment.offer.source;
  read.length_bytes = fragment.offer.length_bytes;
  read.context = fragment.ref();
  read.fill = &fragment.fill;
  if (fragment.splice_pipe == nullptr) lend_splice_pipe(*connection, fragment);
  const Status status = endpoint(leg).rma(leg.connection, read);
  if (status == Status::no_buffers) return stall(fragment, false);
  fragment.pulling = true;
  connection->fragments.begin_on(fragment.offer.from);
  fragment.asked_at = now_;
  if (status != Status::success) return on_ended(fragment, false, status);
  if (!mechanisms_.cut_through || !endpoint(connection->legs[fragment.to()]).supports_cut_through()) return;
  cutting_.push_back(fragment.ref());
}

// Where both networks can hand bytes on, these need not come into the buffer; that stays the
// fragment's, for when the way out does not take them fast enough. A fragment that may have to
// leave twice has to be in memory.
void FragmentForwarder::lend_splice_pipe(const RelayedConnection& connection, Fragment& fragment) {
  if (!mechanisms_.cut_through || !mechanisms_.empty_is_refused) return;
  const cci::Endpoint& out = endpoint(connection.legs[fragment.to()]);
  if (!out.supports_cut_through()) return;
  fragment.splice_pipe = splice_pipes_.lend(endpoint(connection.legs[fragment.offer.from]), out);
  if (fragment.splice_pipe == nullptr) return;
  fragment.fill.splice_pipe = fragment.splice_pipe.get();
  fragment.fill.once = true;
}

bool FragmentForwarder::cut_through() {
  bool any = false;
  size_t kept = 0;
  for (size_t i = 0; i < cutting_.size(); ++i) {
    Fragment* fragment = find(cutting_[i]);
    if (fragment == nullptr) continue;
    RelayedConnection* connection = connection_of(*fragment);
    if (connection == nullptr || connection->phase != ConnectionPhase::open || fragment->here != Here::arriving) continue;
    cutting_[kept++] = cutting_[i];
    any = look_at_arriving(*connection, *fragment) || any;
  }
  cutting_.resize(kept);
  return any;
}

// Whether it may leave, and whether the way out has another chunk to send. May end it.
bool FragmentForwarder::look_at_arriving(RelayedConnection& connection, Fragment& fragment) {
  const uint64_t placed_bytes = fragment.fill.placed_bytes;
  if (fragment.told_bytes == 0 && placed_bytes > 0) note_wait(connection, fragment.offer.from, fragment.asked_at);
  if (fragment.onward == Onward::not_yet) {
    if (!may_leave(connection, fragment)) return false;
    go_on(connection, fragment);
    return true;
  }
  if (placed_bytes <= fragment.told_bytes) return false;
  fragment.told_bytes = placed_bytes;
  resume(connection, fragment);
  return true;
}

// A fragment whose way in is the slower one stays until the rest will be here by the time that it
// is wanted: it would be no earlier at its end, and would hold the buffer of the next router, on
// the faster link, for all the time.
bool FragmentForwarder::may_leave(const RelayedConnection& connection, const Fragment& fragment) const {
  if (fragment.fill.placed_bytes == 0) return false;
  const uint64_t in = devices_[connection.legs[fragment.offer.from].device].rate_bits_per_s;
  const uint64_t out = devices_[connection.legs[fragment.to()].device].rate_bits_per_s;
  if (!mechanisms_.paced || in == 0) return true;
  const double missing = static_cast<double>(fragment.offer.length_bytes - fragment.fill.placed_bytes);
  return missing * static_cast<double>(out) <= static_cast<double>(fragment.offer.length_bytes) * static_cast<double>(in);
}

void FragmentForwarder::go_on(RelayedConnection& connection, Fragment& fragment) {
  fragment.told_bytes = fragment.fill.placed_bytes;
  fragment.offered_at = now_;
  if (fragment.offer.of_read || !connection.legs[fragment.to()].is_end) return expose(connection, fragment);
  fragment.onward = Onward::pushed;
  push(fragment);
}

void FragmentForwarder::resume(const RelayedConnection& connection, const Fragment& fragment) {
  const Leg& leg = connection.legs[fragment.to()];
  endpoint(leg).resume(leg.connection);
}

// The lower connection has as many RMAs in flight as it takes: after the next events.
void FragmentForwarder::stall(Fragment& fragment, bool of_push) {
  RelayedConnection* connection = connection_of(fragment);
  connection->fragments.stall(fragment.ref(of_push));
  connections_.activate(*connection);
}

void FragmentForwarder::retry_stalled(RelayedConnection& connection) {
  for (const uint64_t packed : connection.fragments.take_stalled()) {
    Fragment* fragment = find(packed);
    if (fragment == nullptr) continue;
    if (connection.phase != ConnectionPhase::open) {
      if (!fragment->in_flight()) end(*fragment);
    } else if (Ref::of(packed).side == 0) {
      pull(*fragment);
    } else if (fragment->onward == Onward::pushed) {
      push(*fragment);
    }
  }
}

void FragmentForwarder::on_event(const Ref& ref, ports::OperationResult ending) {
  if (Fragment* fragment = fragments_.find(ref.index, ref.generation)) on_ended(*fragment, ref.side == 1, ending);
}

void FragmentForwarder::on_ended(Fragment& fragment, bool of_push, ports::OperationResult ending) {
  (of_push ? fragment.pushing : fragment.pulling) = false;
  RelayedConnection* connection = connection_of(fragment);
  if (connection != nullptr) connection->fragments.end_on(of_push ? fragment.to() : fragment.offer.from);
  if (connection == nullptr || connection->phase != ConnectionPhase::open) {
    if (connection != nullptr) connections_.activate(*connection);  // its end may wait for this
    if (!fragment.in_flight()) end(fragment);
    return;
  }
  if (of_push) return on_pushed(*connection, fragment, ending);
  if (ending.good()) return on_pulled(*connection, fragment);
  on_pull_failed(*connection, fragment, ending);
}

void FragmentForwarder::on_pulled(RelayedConnection& connection, Fragment& fragment) {
  counters_.add(Counter::routed_fragments);
  counters_.add(Counter::routed_bytes, fragment.offer.length_bytes);
  connection.forwarded_bytes += fragment.offer.length_bytes;
  if (traffic_ != nullptr) {
    traffic_->add(connection.legs[fragment.offer.from].device, connection.legs[fragment.to()].device, fragment.offer.length_bytes);
    traffic_->add_fragment(fragment.offer.data_class, fragment.offer.length_bytes);
  }
  counters_.add(Counter::routed_bytes_passed, fragment.fill.passed_bytes);
  fragment.here = Here::whole;
  fragment.fill.complete = true;
  connection.legs[fragment.offer.from].traffic.pulled_bytes += std::max<uint64_t>(fragment.offer.length_bytes, progress_bytes_min);
  note_wait(connection, fragment.offer.from, fragment.asked_at);
  // Answered already, and of a write the answer frees the buffers before us as well.
  if (fragment.onward == Onward::over) {
    if (fragment.offer.of_read) answers_.taken(connection, fragment.offer);
    return end(fragment);
  }
  const uint64_t packed = fragment.ref();
  if (mechanisms_.absorbs) answers_.taken(connection, fragment.offer);
  // Closed by that, which may have ended the fragment.
  if (connection.phase != ConnectionPhase::open) {
    Fragment* left = find(packed);
    if (left != nullptr && !left->pushing) end(*left);
  } else if (fragment.onward == Onward::not_yet) {
    go_on(connection, fragment);
  } else {
    resume(connection, fragment);
  }
}

// What is under way further on ends too, and is answered there: by the next router, whose own pull
// fails, or by the write that we give up.
void FragmentForwarder::on_pull_failed(RelayedConnection& connection, Fragment& fragment, ports::OperationResult ending) {
  fragment.fill.failed = true;
  if (fragment.onward == Onward::pushed && fragment.pushing) {
    fragment.pulled = ending;
    return resume(connection, fragment);
  }
  const uint64_t packed = fragment.ref();
  if (fragment.onward == Onward::exposed) {
    withdraw(connection, fragment);
  } else if (fragment.onward != Onward::over) {
    answers_.failed(connection, fragment.offer, ending);
  }
  Fragment* left = find(packed);  // the answer may have closed the connection, and that ended it
  if (left != nullptr) end(*left);
}

// No peer reads it any more.
void FragmentForwarder::withdraw(RelayedConnection& connection, Fragment& fragment) {
  unexpose(fragment);
  connection.fragments.withdraw(exposure_of(fragment));
  fragment.onward = Onward::over;
  resume(connection, fragment);
}

// Answered. What still arrives is drained into its buffer, which then comes back.
void FragmentForwarder::let_go(RelayedConnection& connection, Fragment& fragment) {
  connection.legs[fragment.to()].traffic.taken_bytes += progress_bytes_min;
  note_wait(connection, fragment.to(), fragment.offered_at);
  if (!fragment.pulling) return end(fragment);
  if (fragment.onward == Onward::exposed) withdraw(connection, fragment);
  fragment.onward = Onward::over;
}

// The last router writes into the application's memory, by the application's own reference. A
// mailbox without a buffer is reported, never waited for.
void FragmentForwarder::push(Fragment& fragment) {
  RelayedConnection* connection = connection_of(fragment);
  const Leg& leg = connection->legs[fragment.to()];
  cci::RmaOptions write;
  write.local = pool_handle_;
  write.local_offset_bytes = fragment.buffer.offset_bytes();
  write.remote = fragment.offer.remote;
  write.length_bytes = fragment.offer.length_bytes;
  write.context = fragment.ref(true);
  write.fill = &fragment.fill;  // of a whole one, too, bytes may be in the splice pipe
  const Status status = endpoint(leg).rma(leg.connection, write);
  if (status == Status::no_buffers) return stall(fragment, true);
  fragment.pushing = true;
  connection->fragments.begin_on(fragment.to());
  if (status != Status::success) on_ended(fragment, true, status);
}

void FragmentForwarder::on_pushed(RelayedConnection& connection, Fragment& fragment, ports::OperationResult ending) {
  if (ending.status == Status::mailbox_empty && !mechanisms_.empty_is_refused) return stall(fragment, true);
  if (fragment.pulled.good()) connection.fragments.prove(now_);
  answers_.acknowledge(connection, fragment.offer, fragment.pulled.good() ? ending : fragment.pulled);
  if (!mechanisms_.absorbs) answers_.taken(connection, fragment.offer);
  let_go(connection, fragment);
}

// To the next router, or to the initiator of a read: one-use, withdrawn at `fragment_released`.
void FragmentForwarder::expose(RelayedConnection& connection, Fragment& fragment) {
  fragment.handle = memory_->register_part(pool_handle_, fragment.buffer.offset_bytes(), fragment.offer.length_bytes,
                                           cci::access_read, &fragment.fill);
  if (fragment.handle.kind == ports::HandleKind::none || !connection.fragments.expose(exposure_of(fragment), fragment.ref())) {
    counters_.add(Counter::routed_rejected);  // a cookie used twice at once, or no region left
    answers_.failed(connection, fragment.offer, Status::no_memory);
    return let_go(connection, fragment);
  }
  fragment.onward = Onward::exposed;
  answers_.offer_on(connection, fragment.offer, fragment.handle);
}

void FragmentForwarder::on_taken(RelayedConnection& connection, uint8_t which, Bytes message) {
  const auto taken = decode_fragment_released(message);
  if (!taken) return ender_.reject(connection, "malformed fragment_released");
  const uint64_t packed = connection.fragments.exposed_as({which, taken->of_read, taken->cookie});
  if (packed == 0) return counters_.add(Counter::routed_rejected);  // stale
  Fragment* fragment = find(packed);
  CHECK(fragment != nullptr);
  connection.fragments.prove(now_);
  if (!mechanisms_.absorbs) answers_.taken(connection, fragment->offer);
  // Else it ended with the connection.
  if (connection.phase == ConnectionPhase::open) let_go(connection, *fragment);
}

void FragmentForwarder::on_ack(RelayedConnection& connection, uint8_t which, Bytes message) {
  const auto ack = decode_fragment_ack(message);
  if (!ack) return ender_.reject(connection, "malformed fragment ack");
  // A failure downstream comes without `fragment_released`.
  const uint64_t packed = connection.fragments.exposed_as({which, false, ack->cookie});
  if (packed != 0) let_go(connection, *find(packed));
  relay_.pass_on(connection, which, message);
}

void FragmentForwarder::unexpose(Fragment& fragment) {
  const ports::Handle handle = std::exchange(fragment.handle, {});
  if (memory_->deregister_region(handle) == Status::busy) fragment.lent = handle;
}

// Gives everything back. No lower RMA of it may be in flight.
void FragmentForwarder::end(Fragment& fragment) {
  unexpose(fragment);
  if (RelayedConnection* connection = connection_of(fragment)) {
    if (fragment.buffer) connection->fragments.give_buffer(fragment.offer.from);
    if (fragment.onward == Onward::exposed) connection->fragments.withdraw(exposure_of(fragment));
    if (connection->fragments.remove()) idle_.push_back(connection->ref(0));
  }
  if (fragment.buffer) {
    grants_.is_over(fragment.share);
    lent_.give(fragment.offer.data_class, std::move(fragment.buffer), fragment.lent);
  }
  fragment.fill.splice_pipe = nullptr;
  if (fragment.splice_pipe != nullptr) splice_pipes_.give(std::move(fragment.splice_pipe));
  fragments_.remove(fragment.index);
}

// What no lower RMA works on is given back now; the rest when that ends (every one ends with an
// event).
void FragmentForwarder::drop(RelayedConnection& connection) {
  std::vector<uint64_t> all = connection.fragments.take_all();
  for (const uint64_t packed : cutting_) {  // what is being written on while it arrives
    const Fragment* fragment = find(packed);
    if (fragment == nullptr || connection_of(*fragment) != &connection) continue;
    if (fragment->in_flight()) all.push_back(packed);  // else who called us ends it
  }
  for (const uint64_t packed : all) {
    if (Fragment* fragment = find(packed)) drop_one(connection, *fragment);
  }
}

void FragmentForwarder::drop_one(RelayedConnection& connection, Fragment& fragment) {
  if (!fragment.in_flight()) return end(fragment);
  if (fragment.onward == Onward::exposed) withdraw(connection, fragment);
  if (fragment.here != Here::arriving || fragment.fill.failed) return;
  fragment.fill.failed = true;
  resume(connection, fragment);
}

// Not when its last fragment ends: the next one comes at once as long as something is being moved.
void FragmentForwarder::release_idle() {
  for (const uint64_t packed : std::exchange(idle_, {})) {
    if (RelayedConnection* connection = connections_.find(packed)) connection->fragments.release();
  }
}

uint32_t FragmentForwarder::leaving_early() const {
  return static_cast<uint32_t>(std::count_if(cutting_.begin(), cutting_.end(), [this](uint64_t packed) {
    const Fragment* fragment = find(packed);
    if (fragment == nullptr || fragment->here != Here::arriving) return false;
    return fragment->onward == Onward::exposed || fragment->onward == Onward::pushed;
  }));
}

}  // namespace ccixfer::routing
