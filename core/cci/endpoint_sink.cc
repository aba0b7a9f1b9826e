// The transport's side of the endpoint: what is reported from inside a turn is only enqueued.
#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/cci/endpoint_impl.h"

namespace ccixfer::cci {

using ports::ConnectionId;
using ports::ConnectionLimits;
using ports::Role;

Endpoint::Impl::Impl(const EndpointOptions& o, std::unique_ptr<ports::Transport> t, std::shared_ptr<MemoryTable> m, Counters& c)
    : options(o),
      memory(std::move(m)),
      counters(c),
      store(std::make_shared<EventStore>(t->max_send_bytes(), o.receive_buffers)),
      transport(std::move(t)) {
  CHECK(memory != nullptr);
  store->reject = [this](ConnectionId request) {
    counters.add(Counter::connections_refused);
    static_cast<void>(transport->reject(request, "not accepted"));
  };
  target = &memory->target_of_another_transport();
  transport->bind(*this, *target);
  memory->attach(*target, *transport);
}

Endpoint::Impl::~Impl() {
  store->reject = nullptr;  // events that are still held find no endpoint any more
  transport.reset();        // before what it writes into
  memory->detach(*target);
}

// --- Bookkeeping ---

ConnectionRecord* Endpoint::Impl::find(ConnectionId connection) {
  const auto it = connections.find(connection.packed());
  return it == connections.end() ? nullptr : &it->second;
}

Status Endpoint::Impl::established(ConnectionId connection, ConnectionRecord*& record) {
  record = find(connection);
  if (record == nullptr) return Status::not_found;
  return record->state == State::established ? Status::success : Status::again;
}

Status Endpoint::Impl::takes_operations(ConnectionId connection, ConnectionRecord*& record) {
  record = find(connection);
  if (record == nullptr) return Status::not_found;
  return record->state == State::connecting ? Status::again : Status::success;
}

Event& Endpoint::Impl::queue(EventType type, Status status, ConnectionId connection, uint64_t context) {
  Event& event = events.emplace_back();
  event.type = type;
  event.status = status;
  event.connection = connection;
  event.context = context;
  return event;
}

uint64_t Endpoint::Impl::begin_operation(ConnectionRecord& record, uint64_t context, bool silent, uint64_t waiter,
                                         bool wants_local) {
  const SlotName name = operations.take();
  OperationRecord& operation = operations[name.index];
  operation.silent = silent;
  operation.wants_local = wants_local;
  operation.waiter = waiter;
  operation.context = context;
  in_use += wants_local ? 2u : 1u;
  if (options.send_share > 0) ++record.in_flight;
  return name.packed();
}

bool Endpoint::Impl::has_room(const ConnectionRecord& record) const {
  if (in_use >= options.send_operations_max) return false;
  return options.send_share == 0 || in_use < options.send_operations_max / 2 || record.in_flight < options.send_share;
}

void Endpoint::Impl::uncount(ConnectionId connection) {
  if (options.send_share == 0) return;
  if (ConnectionRecord* record = find(connection)) --record->in_flight;
}

OperationRecord* Endpoint::Impl::operation_of(uint64_t token) { return operations.find(SlotName::of(token)); }

std::optional<OperationRecord> Endpoint::Impl::end_operation(uint64_t token) {
  const OperationRecord* operation = operation_of(token);
  if (operation == nullptr) return std::nullopt;
  const OperationRecord ended = *operation;
  operations.release(SlotName::of(token).index);
  return ended;
}

void Endpoint::Impl::drop_operation(ConnectionId connection, uint64_t token) {
  uncount(connection);
  if (const auto dropped = end_operation(token)) in_use -= dropped->wants_local ? 2u : 1u;
}

// The application has left a connection, or it is gone. The buffer of a message in the middle stays the transport's until its end.
void Endpoint::Impl::leave(ConnectionId connection, ConnectionRecord& record) {
  if (record.open_message) orphans.insert_or_assign(connection.packed(), *record.open_message);
  if (record.state == State::connecting) --in_use;
  fail_unanswered(connection);
  connections.erase(connection.packed());
}

// --- What the transport reports ---

void Endpoint::Impl::on_connect_request(ConnectionId request, Role role, Attribute attribute, Bytes data) {
  const std::optional<uint64_t> id =
      store->add_request(request, data.first(std::min<size_t>(data.size(), ports::connect_data_bytes_max)));
  if (!id) {
    refused_in_turn.push_back(request);
    return;
  }
  Event& event = queue(EventType::connect_request, Status::success, request, 0);
  event.role = role;
  event.attribute = attribute;
  event.set_peer(transport->peer(request));
  event.store_ = store;
  event.request_ = *id;
}

void Endpoint::Impl::on_connected(ConnectionId connection, Status status, ConnectionLimits limits, std::string_view reason) {
  ConnectionRecord* record = find(connection);
  if (record == nullptr || record->state != State::connecting) return;
  Event& event = queue(EventType::connect, status, status == Status::success ? connection : ConnectionId{}, record->context);
  event.reason = reason;
  event.waiter = record->waiter;
  if (status == Status::success) {
    event.set_peer(transport->peer(connection));
    record->state = State::established;
    record->max_send_bytes = limits.max_send_bytes;
    fresh.push_back(connection);
  } else {
    connections.erase(connection.packed());
  }
}

void Endpoint::Impl::on_accepted(ConnectionId connection, Status status, ConnectionLimits limits) {
  ConnectionRecord* record = find(connection);
  if (record == nullptr || record->state != State::accepting) return;
  queue(EventType::accept, status, status == Status::success ? connection : ConnectionId{}, record->context);
  if (status == Status::success) {
    counters.add(Counter::connections_accepted);
    record->state = State::established;
    record->max_send_bytes = limits.max_send_bytes;
    fresh.push_back(connection);
  } else {
    connections.erase(connection.packed());
  }
}

MutableBytes Endpoint::Impl::on_message_begin(ConnectionId connection, uint32_t length_bytes) {
  ConnectionRecord* record = find(connection);
  if (record == nullptr || record->state != State::established || record->open_message) return {};
  if (taker != nullptr) {
    if (const std::optional<MutableBytes> place = taker->message_begins(connection, length_bytes)) {
      record->taken_outside = place->data() != nullptr;
      return *place;
    }
  }
  const std::optional<uint32_t> buffer = store->take_buffer();
  if (!buffer || length_bytes > store->buffer(*buffer).size()) {
    if (buffer) store->return_buffer(*buffer);
    counters.add(Counter::messages_not_ready);
    return {};
  }
  record->open_message = buffer;
  record->open_message_bytes = length_bytes;
  return store->buffer(*buffer).first(length_bytes);
}

void Endpoint::Impl::on_message_end(ConnectionId connection, bool complete) {
  ConnectionRecord* record = find(connection);
  if (record != nullptr && std::exchange(record->taken_outside, false)) return taker->message_ends(connection, complete);
  if (record == nullptr || !record->open_message) {
    if (const auto orphan = orphans.find(connection.packed()); orphan != orphans.end()) {
      store->return_buffer(orphan->second);
      orphans.erase(orphan);
    }
    return;
  }
  const uint32_t buffer = *std::exchange(record->open_message, std::nullopt);
  if (!complete) {
    store->return_buffer(buffer);
    return;
  }
  counters.add(Counter::messages_received);
  Event& event = queue(EventType::receive, Status::success, connection, record->context);
  event.store_ = store;
  event.buffer_ = buffer;
  event.size_ = record->open_message_bytes;
}

void Endpoint::Impl::on_completion(ConnectionId connection, uint64_t token, ports::OperationResult ending) {
  if (ending.status == Status::withheld) {
    const ConnectionRecord* record = find(connection);
    if (record != nullptr && !record->hop) {
      unanswered.emplace(after(now, record->send_timeout), Unanswered{connection, token});
      return;
    }
  }
  complete(connection, token, ending);
}

void Endpoint::Impl::time_out_unanswered() {
  while (!unanswered.empty() && unanswered.begin()->first <= now) {
    const Unanswered over = unanswered.begin()->second;
    unanswered.erase(unanswered.begin());
    complete(over.connection, over.token, Status::timed_out);
  }
}

void Endpoint::Impl::fail_unanswered(ConnectionId connection) {
  for (auto it = unanswered.begin(); it != unanswered.end();) {
    const Unanswered over = it->second;
    const bool ours = over.connection == connection;
    it = ours ? unanswered.erase(it) : std::next(it);
    if (ours) complete(connection, over.token, Status::disconnected);
  }
}

void Endpoint::Impl::complete(ConnectionId connection, uint64_t token, ports::OperationResult ending) {
  const std::optional<OperationRecord> ended = end_operation(token);
  if (!ended) return;
  uncount(connection);
  if (ended->wants_local && ending.good()) queue(EventType::local_completion, Status::success, connection, ended->context);
  if (ended->wants_local && !ending.good()) --in_use;
  if (ended->silent && ending.good()) {
    --in_use;
    return;
  }
  Event& event = queue(EventType::send, ending.status, connection, ended->context);
  event.waiter = ended->waiter;
  event.detail_ = ending.detail;
}

void Endpoint::Impl::on_local_completion(ConnectionId connection, uint64_t token) {
  OperationRecord* operation = operation_of(token);
  if (operation == nullptr || !std::exchange(operation->wants_local, false)) return;
  queue(EventType::local_completion, Status::success, connection, operation->context);
}

void Endpoint::Impl::on_mailbox_ready(ConnectionId connection, uint64_t mailbox, uint64_t epoch) {
  ConnectionRecord* record = nullptr;
  if (established(connection, record) != Status::success || record->hints_queued >= hints_queued_max) return;
  ++record->hints_queued;
  Event& event = queue(EventType::mailbox_ready, Status::success, connection, record->context);
  event.mailbox = mailbox;
  event.detail_ = epoch;
}

void Endpoint::Impl::on_disconnected(ConnectionId connection, Status status, std::string_view reason) {
  if (const auto orphan = orphans.find(connection.packed()); orphan != orphans.end()) {
    store->return_buffer(orphan->second);
    orphans.erase(orphan);
  }
  ConnectionRecord* record = find(connection);
  if (record == nullptr) {
    store->withdraw(connection);
    return;
  }
  if (record->open_message) store->return_buffer(*std::exchange(record->open_message, std::nullopt));
  fail_unanswered(connection);
  const Status why = status == Status::success ? Status::disconnected : status;
  switch (record->state) {
    case State::connecting: {
      Event& event = queue(EventType::connect, why, {}, record->context);
      event.reason = reason;
      event.waiter = record->waiter;
      break;
    }
    case State::accepting:
      queue(EventType::accept, why, {}, record->context).reason = reason;
      break;
    case State::established:
      counters.add(Counter::connections_lost);
      queue(EventType::disconnected, why, connection, record->context).reason = reason;
      break;
  }
  connections.erase(connection.packed());
}

void Endpoint::Impl::on_keepalive_timeout(ConnectionId connection) {
  ConnectionRecord* record = find(connection);
  if (record == nullptr || record->keepalive_queued) return;
  record->keepalive_queued = true;
  record->keepalive = Duration::zero();
  queue(EventType::keepalive_timed_out, Status::timed_out, connection, record->context);
}

void Endpoint::Impl::on_draining(ConnectionId connection) {
  ConnectionRecord* record = nullptr;
  if (established(connection, record) == Status::success) queue(EventType::draining, Status::success, connection, record->context);
}

void Endpoint::Impl::on_device_failed(std::string_view reason) {
  queue(EventType::device_failed, Status::device_dead, {}, 0).reason = reason;
}

}  // namespace ccixfer::cci
