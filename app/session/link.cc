// Lanes of a Link. A lane is one connection; it is `waiting` while an older connection of its index still reports its puts, then
// `up`, and `closing` once it was disconnected from here: its connection's events that are queued already, receives among them,
// still count. A lane whose path is going (a router of it stops) is `up` until its replacement is there, and then settles: nothing
// new is put on it, and whoever puts closes it once its puts have ended. So a planned stop costs no byte twice.
#include "app/session/link.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <variant>

#include "app/session/control.h"
#include "app/session/link_lane.h"
#include "app/session/link_seal.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/ring_buffer.h"
#include "core/ports/departure.h"

namespace ccixfer::session {
namespace {

constexpr Duration grace_default = std::chrono::seconds(60);
// A closing lane whose puts do not end is given up: the endpoint owes an end for each (a transport may take ten seconds to deliver
// what was sent before a disconnect), this is the belt to its braces.
constexpr Duration closing_limit = std::chrono::seconds(15);
// A lane that has not delivered a session message for so long, while others live, is passed over for them: its router may hang, and
// until that is certain all files would wait for words. Doubled each time: a slow path is no dead one.
constexpr Duration control_patience_first = std::chrono::seconds(2);
constexpr Duration control_patience_max = std::chrono::seconds(16);
constexpr Duration settle_limit =
    std::chrono::seconds(5);  // then its puts go out again elsewhere: its router waits no longer either

}  // namespace

// It is one struct because lanes, operations and session messages depend on one another: when a lane goes, its puts end and the
// messages on it go out over another one, in one step.
struct Link::Impl {
  struct Slot {  // of a lane index: connections, packed; 0: none
    uint64_t current = 0;
    uint64_t waiting = 0;
  };

  Impl(Link& owner_link, cci::Endpoint& an_endpoint, const Hello& a_hello, LinkHandler& a_handler)
      : self(owner_link), endpoint(an_endpoint), hello(a_hello), handler(a_handler), session(a_hello.session) {}

  Link& self;
  cci::Endpoint& endpoint;
  Hello hello;
  LinkHandler& handler;
  uint64_t session;
  bool dialled = false;  // by a Dialler of ours
  Duration control_patience = control_patience_first;
  Duration grace = grace_default;
  LaneRegistry* registry = nullptr;
  Counters* counters = nullptr;

  std::map<uint64_t, Lane> lanes;  // by connection, packed
  std::map<LaneIndex, Slot> slots;
  std::unordered_map<uint64_t, Operation> operations;
  uint64_t next_operation = 1;
  std::unique_ptr<LinkSeal> seal;  // none: --insecure
  ControlSender sender;
  bool departed = false;  // the lane that went last went with its endpoint
  ControlReceiver receiver;
  RingBuffer<Notice> notices;

  Instant now{};
  Instant laneless_since = never;  // never: a lane is up, or no turn yet
  std::optional<Error> failure;
  bool ended = false;  // on_link_lost was called

  [[nodiscard]] Lane* find(cci::Connection connection) {
    const auto it = lanes.find(connection.packed());
    return it == lanes.end() ? nullptr : &it->second;
  }
  [[nodiscard]] Lane* up_lane(LaneIndex index) {
    const auto slot = slots.find(index);
    if (slot == slots.end() || slot->second.current == 0) return nullptr;
    Lane& lane = lanes.at(slot->second.current);
    return lane.state == LaneState::up ? &lane : nullptr;
  }
  // For session messages: the lowest one that delivers, else the lowest one.
  [[nodiscard]] Lane* lowest_up_lane() {
    Lane* lowest = nullptr;
    for (const auto& [index, slot] : slots) {
      static_cast<void>(slot);
      Lane* lane = up_lane(index);
      if (lane != nullptr && !lane->silent) return lane;
      if (lowest == nullptr) lowest = lane;
    }
    return lowest;
  }

  void announce(Lane& lane) {
    lane.state = LaneState::up;
    lane.announced = true;
    notices.emplace_back(LaneUp{lane.index});
    for (Message& message : lane.in) notices.emplace_back(LaneMessage{lane.index, std::move(message)});
    lane.in.clear();
    laneless_since = never;
    if (seal) post_all(seal->start(dialled));
    pump();
  }

  [[nodiscard]] bool puts_here() const { return dialled == (hello.direction == Direction::push); }

  void settle(Lane& lane) {
    if (std::exchange(lane.settling, true)) return;
    lane.settling_since = now;
    if (puts_here() && lane.puts == 0) start_closing(lane);
  }

  void start_closing(Lane& lane) {
    if (lane.state == LaneState::closing) return;
    endpoint.disconnect(lane.connection);
    lane.state = LaneState::closing;
    lane.closing_since = now;
    lane.out.clear();
    lane.in.clear();
    release_sends(lane, false);
  }

  void pass_silent_lanes() {
    for (auto& [packed, lane] : lanes) {
      static_cast<void>(packed);
      if (lane.state != LaneState::up || lane.controls == 0 || now < after(lane.control_since, control_patience)) continue;
      lane.silent = true;
      lane.control_since = now;
      const Lane* next = lowest_up_lane();
      if (next->silent) {  // nobody delivers
        lane.silent = false;
        continue;
      }
      control_patience = std::min(control_patience * 2, control_patience_max);
      release_sends(lane, true);
    }
  }

  // Messages do not wait for a lane that is going: they go out again on the next one, and the receiver drops what it had. Only puts
  // are waited for, because their memory may still be read.
  void release_sends(Lane& lane, bool only_controls) {
    std::vector<uint64_t> released;
    for (const auto& [id, operation] : operations) {
      if (operation.lane != lane.connection.packed() || operation.kind == OperationKind::put) continue;
      if (!only_controls || operation.kind == OperationKind::control) released.push_back(id);
    }
    for (const uint64_t id : released) {
      const Operation operation = operations.at(id);
      operations.erase(id);
      --lane.operations;
      if (operation.kind != OperationKind::control) continue;
      --lane.controls;
      sender.ended(operation.context, false);
    }
  }

  // The connection is gone: what of ours has not ended never will.
  void finish(uint64_t packed, bool departs = false) {
    departed = departs;
    lanes.at(packed).state = LaneState::closing;
    fail_operations(packed);
    const Lane lane = std::move(lanes.at(packed));
    lanes.erase(packed);
    Slot& slot = slots[lane.index];
    if (slot.waiting == packed) slot.waiting = 0;
    if (slot.current == packed) slot.current = 0;
    if (slot.current != 0 && slot.waiting == 0) lanes.at(slot.current).settling = false;  // its replacement died first
    if (lane.announced) notices.emplace_back(LaneDown{lane.index});
    if (registry != nullptr) registry->connection_removed(lane.connection);
    if (slot.current != 0) return;
    if (slot.waiting != 0) {
      slot.current = std::exchange(slot.waiting, 0);
      announce(lanes.at(slot.current));
    } else {
      slots.erase(lane.index);
    }
  }

  void fail_operations(uint64_t packed) {
    if (lanes.at(packed).operations == 0) return;
    std::vector<uint64_t> left;
    for (const auto& [id, operation] : operations) {
      if (operation.lane == packed) left.push_back(id);
    }
    std::sort(left.begin(), left.end());
    for (const uint64_t id : left) end_operation(id, Status::disconnected);
  }

  void end_operation(uint64_t id, Status status) {
    const auto it = operations.find(id);
    if (it == operations.end()) return;
    const Operation operation = it->second;
    operations.erase(it);
    Lane& lane = lanes.at(operation.lane);
    CHECK(lane.operations > 0);
    --lane.operations;
    if (status == Status::success) lane.silent = false;
    switch (operation.kind) {
      case OperationKind::put:
        notices.emplace_back(PutEnded{lane.index, operation.context, status});
        if (--lane.puts == 0 && lane.settling) start_closing(lane);
        return;
      case OperationKind::control:
        --lane.controls;
        lane.control_since = now;
        sender.ended(operation.context, status == Status::success);
        // A lane that does not deliver control messages is no lane.
        if (status != Status::success) start_closing(lane);
        return;
      case OperationKind::lane_message:
        if (status != Status::success) start_closing(lane);
        return;
    }
  }

  // Hands the endpoint bytes as one message. false: not now.
  bool send(Lane& lane, Bytes bytes, OperationKind kind, uint64_t context) {
    const uint64_t id = next_operation;
    const Status status = endpoint.send(lane.connection, bytes, id);
    if (status != Status::success) {
      if (status == Status::message_size) start_closing(lane);  // below every transport's floor: a peer that cannot carry a session
      return false;
    }
    ++next_operation;
    operations.emplace(id, Operation{kind, lane.connection.packed(), context});
    ++lane.operations;
    if (kind == OperationKind::control && lane.controls++ == 0) lane.control_since = now;
    return true;
  }

  // Sends what may go: session messages on the lowest live lane, lane messages on theirs.
  void pump() {
    if (Lane* lane = lowest_up_lane()) {
      while (lane->state == LaneState::up) {
        const std::optional<ControlSender::Outgoing> next = sender.next();
        if (!next || !send(*lane, next->bytes, OperationKind::control, next->sequence)) break;
        sender.sent(next->sequence);
      }
    }
  }
  void pump_lane(Lane& lane) {
    while (lane.state == LaneState::up && !lane.out.empty()) {
      if (seal && !lane.front_is_sealed) {
        lane.out.front() = seal->of(lane.sealing).seal(lane.out.front());
        lane.front_is_sealed = true;
      }
      if (!send(lane, lane.out.front(), OperationKind::lane_message, 0)) return;
      lane.out.drop_front();
      lane.front_is_sealed = false;
    }
  }
  void post_all(const std::vector<Message>& messages) {
    for (const Message& message : messages) CHECK(sender.post(message));  // a handshake is a few messages
  }

  void fail(const Error& error) {
    if (failure) return;
    failure = error;
    for (auto& [packed, lane] : lanes) {
      static_cast<void>(packed);
      start_closing(lane);
    }
  }

  // The peer's bytes are not what a session's are: count, say so, end.
  void reject(const Error& error) {
    if (counters != nullptr) counters->add(Counter::session_rejected);
    log(LogLevel::warning, "session {:016x}: {}", session, error.message);
    if (failure) return;
    if (sender.post(Abort{error.kind, error.message})) pump();
    fail(error);
  }

  void receive(Lane& lane, Bytes bytes) {
    if (failure) return;
    Result<Decoded> decoded = seal ? seal->take(bytes, lane.sealing, receiver) : decode(bytes);
    if (!decoded) return reject(decoded.error());
    if (is_lane_message(decoded->message)) return receive_on_lane(lane, std::move(decoded->message));
    std::vector<Message> in_order;
    if (!receiver.accept(decoded->sequence, std::move(decoded->message), in_order)) {
      return reject({ErrorKind::protocol, "session message: its number is beyond the window"});
    }
    for (Message& message : in_order) {
      if (const auto* part = std::get_if<HandshakePart>(&message)) {
        shake_hands(*part);
      } else {
        notices.emplace_back(std::move(message));
      }
    }
  }

  void shake_hands(const HandshakePart& part) {
    if (failure) return;
    if (!seal) return reject({ErrorKind::protocol, "a handshake in a session without encryption"});
    std::vector<Message> answer;
    const Result<void> stepped = seal->step(part, answer);
    post_all(answer);
    if (!stepped) return reject(stepped.error());
    if (seal->is_done()) sender.set_seal(seal.get());
    pump();
  }

  void receive_on_lane(Lane& lane, Message&& message) {
    switch (lane.state) {
      case LaneState::up:
        notices.emplace_back(LaneMessage{lane.index, std::move(message)});
        return;
      case LaneState::waiting:
        if (lane.in.size() == lane_messages_queued_max) return start_closing(lane);
        lane.in.push_back(std::move(message));
        return;
      case LaneState::closing:
        return;
    }
  }

  void end_closed_lanes() {
    std::vector<uint64_t> finished;
    for (auto& [packed, lane] : lanes) {
      if (lane.state == LaneState::up && lane.settling && now >= after(lane.settling_since, settle_limit)) start_closing(lane);
      if (lane.state != LaneState::closing) continue;
      // The Hub hands over all events of the endpoint before a Link's turn: what was queued for this lane has been seen.
      if (lane.operations == 0 || now >= after(lane.closing_since, closing_limit)) finished.push_back(packed);
    }
    for (const uint64_t packed : finished) finish(packed);
  }

  void watch_grace() {
    if (lowest_up_lane() != nullptr) {
      laneless_since = never;
      return;
    }
    if (laneless_since == never) laneless_since = now;
    if (!failure && now >= after(laneless_since, grace)) {
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(grace).count();
      fail(Error{ErrorKind::timeout, fmt::format("no connection to the peer for {} s", seconds)});
    }
  }
};

Link::Link(cci::Endpoint& endpoint, const Hello& hello, LinkHandler& handler)
    : impl_(std::make_unique<Impl>(*this, endpoint, hello, handler)) {}

Link::~Link() {
  for (const auto& entry : impl_->lanes) {
    if (entry.second.state != LaneState::closing) impl_->endpoint.disconnect(entry.second.connection);
  }
  if (impl_->registry != nullptr) impl_->registry->link_destroyed(*this);
}

void Link::set_now(Instant now) { impl_->now = now; }
void Link::set_session(uint64_t session) { impl_->session = session; }
uint64_t Link::session() const { return impl_->session; }
const Hello& Link::hello() const { return impl_->hello; }
TransferId Link::transfer_key() const { return transfer_key(impl_->hello.transfer); }
TransferId Link::transfer_key(const TransferId& of) const { return impl_->seal ? impl_->seal->transfer_key(of) : of; }
void Link::set_grace(Duration grace) { impl_->grace = grace; }
void Link::set_dialled() { impl_->dialled = true; }

void Link::secure(SealSetup setup) {
  CHECK(impl_->hello.sealed && impl_->lanes.empty());
  impl_->seal = std::make_unique<LinkSeal>(std::move(setup));
}
bool Link::is_secured() const { return !impl_->hello.sealed || (impl_->seal && impl_->seal->is_done()); }
const SessionKeys* Link::keys() const { return impl_->seal && impl_->seal->is_done() ? &impl_->seal->keys() : nullptr; }
const trust::ProvedPeer* Link::proved() const { return impl_->seal && impl_->seal->is_done() ? &impl_->seal->peer() : nullptr; }
void Link::prove(Hello& hello) {
  if (impl_->seal && hello.session != 0) impl_->seal->prove(hello);
}
void Link::add_early(Hello& hello) {
  if (hello.session != 0) return;
  if (impl_->seal) impl_->post_all(impl_->seal->start(impl_->dialled));
  hello.early = impl_->sender.early(hello_early_bytes_max);
}
void Link::take_early(cci::Connection connection, const std::vector<std::vector<std::byte>>& early) {
  for (const std::vector<std::byte>& message : early) {
    if (Lane* lane = impl_->find(connection)) impl_->receive(*lane, message);
  }
}
LaneAdmission Link::admits(const Hello& hello) { return impl_->seal ? impl_->seal->admits(hello) : LaneAdmission::admitted; }

void Link::attach(LaneRegistry* registry, Counters* counters) {
  impl_->registry = registry;
  impl_->counters = counters;
  if (registry == nullptr) return;
  for (const auto& entry : impl_->lanes) registry->connection_added(*this, entry.second.connection);
}

void Link::add_lane(LaneIndex index, cci::Connection connection, bool moves, uint64_t dial) {
  Impl& impl = *impl_;
  CHECK(impl.find(connection) == nullptr);
  if (impl.failure) return impl.endpoint.disconnect(connection);
  const uint64_t packed = connection.packed();
  Lane& lane = impl.lanes[packed];
  lane.index = index;
  lane.connection = connection;
  lane.sealing.lane = index;
  lane.sealing.dial = dial;
  if (impl.registry != nullptr) impl.registry->connection_added(*this, connection);
  Impl::Slot& slot = impl.slots[index];
  if (slot.current == 0) {
    slot.current = packed;
    return impl.announce(lane);
  }
  if (slot.waiting != 0) impl.start_closing(impl.lanes.at(slot.waiting));
  slot.waiting = packed;
  Lane& before = impl.lanes.at(slot.current);
  before.path_going = before.path_going || moves;  // our own notice may be behind the data that comes here
  if (before.state == LaneState::up && before.path_going) return impl.settle(before);
  impl.start_closing(before);
}

void Link::handle(cci::Event&& event) {
  Impl& impl = *impl_;
  Lane* lane = impl.find(event.connection);
  if (lane == nullptr) return;
  switch (event.type) {
    case cci::EventType::receive:
      impl.receive(*lane, event.data());
      return;
    case cci::EventType::send:
      impl.end_operation(event.context, event.status);
      impl.pump();
      if (Lane* still = impl.find(event.connection)) impl.pump_lane(*still);
      return;
    case cci::EventType::disconnected:
      impl.finish(event.connection.packed(), event.reason.ends_with(ports::words_of_departure));
      impl.pump();
      return;
    case cci::EventType::keepalive_timed_out:
      impl.start_closing(*lane);
      return;
    case cci::EventType::draining:
      lane->path_going = true;
      return;
    case cci::EventType::connect:
    case cci::EventType::connect_request:
    case cci::EventType::accept:
    case cci::EventType::local_completion:
    case cci::EventType::mailbox_ready:
    case cci::EventType::device_failed:
      return;
  }
}

void Link::lane_failed(cci::Connection connection) {
  if (impl_->find(connection) == nullptr) return;
  impl_->finish(connection.packed());
  impl_->pump();
}

void Link::post(const Message& message) {
  CHECK(!is_lane_message(message));
  if (impl_->failure) return;
  if (!impl_->sender.post(message)) return impl_->fail(Error{ErrorKind::bug, "session: the control queue overflowed"});
  impl_->pump();
}

size_t Link::control_queue_room() const { return impl_->sender.room(); }
bool Link::messages_delivered() const { return impl_->sender.all_delivered(); }
bool Link::messages_sent() const { return impl_->sender.all_sent(); }
bool Link::peer_departed() const { return impl_->departed && impl_->lanes.empty(); }
uint64_t Link::messages_posted() const { return impl_->sender.posted(); }
bool Link::was_delivered(uint64_t message) const { return impl_->sender.was_delivered(message); }

void Link::post_on_lane(LaneIndex index, const Message& message) {
  CHECK(is_lane_message(message));
  Lane* lane = impl_->up_lane(index);
  if (lane == nullptr) return;
  const bool is_credit = std::holds_alternative<Credit>(message);
  // A credit that has not left yet is replaced: only the newest counts, and the queue stays short.
  const size_t numbered = lane->front_is_sealed ? 1 : 0;
  if (is_credit && lane->newest_out_is_credit && lane->out.size() > numbered) lane->out.drop_back();
  if (lane->out.size() == lane_messages_queued_max) return impl_->start_closing(*lane);
  lane->out.push_back(encode(message, 0));
  lane->newest_out_is_credit = is_credit;
  impl_->pump_lane(*lane);
}

Status Link::put(LaneIndex index, const ports::Handle& local, uint64_t local_offset_bytes, uint64_t length_bytes, uint64_t mailbox,
                 uint64_t key, uint64_t epoch, uint64_t context, bool source_is_file) {
  Impl& impl = *impl_;
  Lane* lane = impl.up_lane(index);
  if (lane == nullptr) return Status::disconnected;
  if (lane->settling) return Status::no_buffers;  // its replacement is up as soon as its puts have ended
  const uint64_t id = impl.next_operation;
  // (source, operation) names the put at the mailbox: the key is random per lane session, operations are never numbered twice.
  const std::array<uint64_t, 3> incarnation{impl.session, index, key};
  cci::RmaOptions options = put_options(mailbox, key, epoch, length_bytes);
  options.local = local;
  options.local_offset_bytes = local_offset_bytes;
  options.remote.put.source =
      xxh3_64(std::as_bytes(std::span(incarnation)), xxh3_64(std::as_bytes(std::span(impl.hello.transfer))));
  options.remote.put.operation = id;
  options.source_is_file = source_is_file;
  options.context = id;
  const Status status = impl.endpoint.rma(lane->connection, options);
  if (status != Status::success) return status;
  ++impl.next_operation;
  impl.operations.emplace(id, Operation{OperationKind::put, lane->connection.packed(), context});
  ++lane->operations;
  ++lane->puts;
  return Status::success;
}

std::vector<LaneIndex> Link::live_lanes() const {
  std::vector<LaneIndex> live;
  for (const auto& [index, slot] : impl_->slots) {
    static_cast<void>(slot);
    if (impl_->up_lane(index) != nullptr) live.push_back(index);
  }
  return live;
}

bool Link::has_lane(LaneIndex index) const {
  const auto slot = impl_->slots.find(index);
  return impl_->up_lane(index) != nullptr || (slot != impl_->slots.end() && slot->second.waiting != 0);
}

bool Link::must_move(LaneIndex index) const {
  const Lane* lane = impl_->up_lane(index);
  return lane != nullptr && lane->path_going && impl_->slots.at(index).waiting == 0;
}

std::vector<ports::HopInfo> Link::hops(LaneIndex index) const {
  const Lane* lane = impl_->up_lane(index);
  return lane == nullptr ? std::vector<ports::HopInfo>{} : impl_->endpoint.hops(lane->connection);
}

ports::PeerIdentity Link::peer() const {
  const Lane* lane = impl_->lowest_up_lane();
  ports::PeerIdentity peer = lane == nullptr ? ports::PeerIdentity{} : impl_->endpoint.peer(lane->connection);
  if (const trust::ProvedPeer* who = proved()) peer.proved = trust::to_string(who->id);
  return peer;
}

uint64_t Link::moved_bytes() const {
  uint64_t bytes = 0;
  for (const auto& entry : impl_->lanes) bytes += moved_bytes_of(impl_->endpoint, entry.second.connection);
  return bytes;
}

std::optional<ports::PathFigures> Link::path_figures() const {
  std::optional<ports::PathFigures> all;
  for (const auto& entry : impl_->lanes) {
    if (const auto one = impl_->endpoint.path_figures(entry.second.connection)) all = all.value_or(ports::PathFigures{}) + *one;
  }
  return all;
}

void Link::close_lane(LaneIndex index) {
  if (Lane* lane = impl_->up_lane(index)) impl_->start_closing(*lane);
  impl_->pump();
}

void Link::fail(const Error& error) { impl_->fail(error); }

void Link::turn(Instant now) {
  Impl& impl = *impl_;
  impl.now = now;
  if (impl.ended) return;
  impl.end_closed_lanes();
  impl.pass_silent_lanes();
  impl.watch_grace();
  impl.pump();
  for (auto& entry : impl.lanes) impl.pump_lane(entry.second);
  while (!impl.notices.empty()) {
    Notice notice = std::move(impl.notices.front());
    impl.notices.drop_front();
    tell(impl.handler, notice);
  }
  if (impl.failure && impl.lanes.empty()) {
    impl.ended = true;
    const Error error = *impl.failure;
    impl.handler.on_link_lost(error);  // the last thing that is done: the handler may destroy this Link in it
  }
}

Instant Link::next_deadline() const {
  const Impl& impl = *impl_;
  if (impl.ended) return never;
  if (!impl.notices.empty() || (impl.failure && impl.lanes.empty())) return impl.now;
  Instant deadline = never;
  for (const auto& entry : impl.lanes) {
    const Lane& lane = entry.second;
    if (lane.state == LaneState::up && lane.controls > 0 && impl.slots.size() > 1)
      deadline = std::min(deadline, after(lane.control_since, impl.control_patience));
    if (lane.state == LaneState::up && lane.settling) deadline = std::min(deadline, after(lane.settling_since, settle_limit));
    if (lane.state != LaneState::closing) continue;
    deadline = std::min(deadline, lane.operations == 0 ? impl.now : after(lane.closing_since, closing_limit));
  }
  if (impl.laneless_since != never && !impl.failure) deadline = std::min(deadline, after(impl.laneless_since, impl.grace));
  return deadline;
}

}  // namespace ccixfer::session
