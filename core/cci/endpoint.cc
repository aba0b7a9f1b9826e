#include "core/cci/endpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>

#include "core/base/check.h"
#include "core/cci/event_store.h"

namespace ccixfer::cci {
namespace {

using ports::ConnectionId;
using ports::ConnectionLimits;
using ports::HandleKind;
using ports::Role;

constexpr size_t reason_bytes_max = 1024;

enum class State : uint8_t { connecting, accepting, established };

struct ConnectionRecord {
  State state = State::connecting;
  Attribute attribute = Attribute::reliable_ordered;
  bool keepalive_queued = false;
  uint32_t max_send_bytes = 0;
  uint64_t context = 0;
  std::optional<uint32_t> open_message;  // receive buffer of the message that is arriving
  uint32_t open_message_bytes = 0;
};

// A send or an RMA from its issue until the transport says how it ended.
struct OperationRecord {
  uint32_t generation = 1;
  bool live = false;
  bool silent = false;
  uint64_t context = 0;
};

bool null_memory(Bytes bytes) { return bytes.data() == nullptr && !bytes.empty(); }

bool is_reliable(Attribute attribute) {
  return attribute == Attribute::reliable_ordered || attribute == Attribute::reliable_unordered;
}

}  // namespace

struct Endpoint::Impl final : ports::TransportSink {
  EndpointOptions options;
  std::shared_ptr<MemoryTable> memory;
  Counters& counters;
  std::shared_ptr<EventStore> store;
  std::unordered_map<uint64_t, ConnectionRecord> connections;
  std::unordered_map<uint64_t, uint32_t> orphans;  // receive buffers that a transport still fills for a connection we left
  std::vector<OperationRecord> operations;
  std::vector<uint32_t> free_operations;
  uint32_t in_use = 0;  // operations and connects whose event was not taken yet
  std::deque<Event> events;
  std::vector<ConnectionId> refused_in_turn;  // requests past requests_max: rejected when the turn is over
  std::unique_ptr<ports::Transport> transport;

  Impl(const EndpointOptions& o, std::unique_ptr<ports::Transport> t, std::shared_ptr<MemoryTable> m, Counters& c);
  ~Impl() override;

  ConnectionRecord* find(ConnectionId connection);
  Status established(ConnectionId connection, ConnectionRecord*& record);
  Event& queue(EventType type, Status status, ConnectionId connection, uint64_t context);
  uint64_t begin_operation(uint64_t context, bool silent);
  std::optional<OperationRecord> end_operation(uint64_t token);
  void leave(ConnectionId connection, ConnectionRecord& record);
  Status rma(ConnectionId connection, const RmaOptions& options);
  Status check_rma(const ConnectionRecord& record, const RmaOptions& rma, MutableBytes& local);

  void on_connect_request(ConnectionId request, Role role, Attribute attribute, Bytes data) override;
  void on_connected(ConnectionId connection, Status status, ConnectionLimits limits, std::string_view reason) override;
  void on_accepted(ConnectionId connection, Status status, ConnectionLimits limits) override;
  MutableBytes on_message_begin(ConnectionId connection, uint32_t length_bytes) override;
  void on_message_end(ConnectionId connection, bool complete) override;
  void on_completion(ConnectionId connection, uint64_t token, Status status) override;
  void on_disconnected(ConnectionId connection, Status status, std::string_view reason) override;
  void on_keepalive_timeout(ConnectionId connection) override;
};

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
  transport->bind(*this, *memory);
}

Endpoint::Impl::~Impl() {
  store->reject = nullptr;  // events that are still held find no endpoint any more
  transport.reset();        // before what it writes into
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

Event& Endpoint::Impl::queue(EventType type, Status status, ConnectionId connection, uint64_t context) {
  Event& event = events.emplace_back();
  event.type = type;
  event.status = status;
  event.connection = connection;
  event.context = context;
  return event;
}

uint64_t Endpoint::Impl::begin_operation(uint64_t context, bool silent) {
  uint32_t index = 0;
  if (free_operations.empty()) {
    index = static_cast<uint32_t>(operations.size());
    operations.emplace_back();
  } else {
    index = free_operations.back();
    free_operations.pop_back();
  }
  OperationRecord& operation = operations[index];
  operation.live = true;
  operation.silent = silent;
  operation.context = context;
  ++in_use;
  return (uint64_t{operation.generation} << 32) | index;
}

std::optional<OperationRecord> Endpoint::Impl::end_operation(uint64_t token) {
  const size_t index = token & 0xffffffffu;
  if (index >= operations.size()) return std::nullopt;
  OperationRecord& operation = operations[index];
  if (!operation.live || operation.generation != token >> 32) return std::nullopt;
  const OperationRecord ended = operation;
  operation.live = false;
  if (++operation.generation == 0) operation.generation = 1;
  free_operations.push_back(static_cast<uint32_t>(index));
  return ended;
}

// The application has left a connection, or it is gone. The buffer of a message in the middle stays the transport's until its end.
void Endpoint::Impl::leave(ConnectionId connection, ConnectionRecord& record) {
  if (record.open_message) orphans.insert_or_assign(connection.packed(), *record.open_message);
  if (record.state == State::connecting) --in_use;
  connections.erase(connection.packed());
}

// --- What the transport reports: only enqueue ---

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
  event.store_ = store;
  event.request_ = *id;
}

void Endpoint::Impl::on_connected(ConnectionId connection, Status status, ConnectionLimits limits, std::string_view reason) {
  ConnectionRecord* record = find(connection);
  if (record == nullptr || record->state != State::connecting) return;
  Event& event = queue(EventType::connect, status, status == Status::success ? connection : ConnectionId{}, record->context);
  event.reason = reason;
  if (status == Status::success) {
    record->state = State::established;
    record->max_send_bytes = limits.max_send_bytes;
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
  } else {
    connections.erase(connection.packed());
  }
}

MutableBytes Endpoint::Impl::on_message_begin(ConnectionId connection, uint32_t length_bytes) {
  ConnectionRecord* record = find(connection);
  if (record == nullptr || record->state != State::established || record->open_message) return {};
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

void Endpoint::Impl::on_completion(ConnectionId connection, uint64_t token, Status status) {
  const std::optional<OperationRecord> ended = end_operation(token);
  if (!ended) return;
  if (ended->silent && status == Status::success) {
    --in_use;
    return;
  }
  queue(EventType::send, status, connection, ended->context);
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
  const Status why = status == Status::success ? Status::disconnected : status;
  switch (record->state) {
    case State::connecting:
      queue(EventType::connect, why, {}, record->context).reason = reason;
      break;
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
  queue(EventType::keepalive_timed_out, Status::timed_out, connection, record->context);
}

// --- The application's side ---

Endpoint::Endpoint(const EndpointOptions& options, std::unique_ptr<ports::Transport> transport, std::shared_ptr<MemoryTable> memory,
                   Counters& counters) {
  CHECK(transport != nullptr);
  impl_ = std::make_unique<Impl>(options, std::move(transport), std::move(memory), counters);
}
Endpoint::~Endpoint() = default;

std::string Endpoint::uri() const { return impl_->transport->uri(); }
uint32_t Endpoint::max_send_bytes() const { return impl_->transport->max_send_bytes(); }
MemoryTable& Endpoint::memory() { return *impl_->memory; }
rvma::MailboxTable& Endpoint::mailboxes() { return impl_->memory->mailboxes(); }

Result<Connection> Endpoint::connect(std::string_view uri, const ConnectOptions& options) {
  if (uri.empty()) return fail(ErrorKind::usage, "an empty URI cannot be dialled");
  if (options.data.size() > ports::connect_data_bytes_max || null_memory(options.data)) {
    return fail(ErrorKind::usage,
                fmt::format("connect data of {} bytes; at most {}", options.data.size(), ports::connect_data_bytes_max));
  }
  if (!is_reliable(options.attribute) && options.attribute != Attribute::unreliable) {
    return fail(ErrorKind::usage, "multicast connections are not implemented");
  }
  if (options.timeout < Duration::zero()) return fail(ErrorKind::usage, "a connect timeout cannot be negative");
  if (impl_->in_use >= impl_->options.send_operations_max)
    return fail(ErrorKind::network, "too many operations in flight to connect");
  const Result<ConnectionId> dialled =
      impl_->transport->dial({uri, options.role, options.attribute, options.data, options.timeout});
  if (!dialled) return dialled;
  ConnectionRecord record;
  record.attribute = options.attribute;
  record.context = options.context;
  const bool fresh = impl_->connections.insert_or_assign(dialled->packed(), record).second;
  CHECK(fresh);
  ++impl_->in_use;
  return *dialled;
}

Status Endpoint::accept(Event& request, uint64_t context) {
  if (request.store_ != impl_->store || request.request_ == 0) return Status::invalid;
  EventStore::Request* pending = impl_->store->request(request.request_);
  if (pending == nullptr) return Status::invalid;
  if (pending->gone) return Status::not_found;
  if (pending->decided) return Status::invalid;
  impl_->store->decide(*pending);
  const Status status = impl_->transport->accept(pending->connection);
  if (status != Status::success) return status;
  ConnectionRecord record;
  record.state = State::accepting;
  record.attribute = request.attribute;
  record.context = context;
  impl_->connections.insert_or_assign(pending->connection.packed(), record);
  return Status::success;
}

Status Endpoint::reject(Event& request, std::string_view reason) {
  if (request.store_ != impl_->store || request.request_ == 0) return Status::invalid;
  EventStore::Request* pending = impl_->store->request(request.request_);
  if (pending == nullptr) return Status::invalid;
  if (pending->gone) return Status::not_found;
  if (pending->decided) return Status::invalid;
  impl_->store->decide(*pending);
  impl_->counters.add(Counter::connections_refused);
  return impl_->transport->reject(pending->connection, reason.substr(0, reason_bytes_max));
}

void Endpoint::disconnect(Connection connection) {
  ConnectionRecord* record = impl_->find(connection);
  if (record == nullptr) return;
  impl_->leave(connection, *record);
  impl_->transport->disconnect(connection);
}

uint32_t Endpoint::max_send_bytes(Connection connection) const {
  const ConnectionRecord* record = impl_->find(connection);
  return record == nullptr ? 0 : record->max_send_bytes;
}

std::vector<ports::HopInfo> Endpoint::hops(Connection connection) const {
  return impl_->find(connection) == nullptr ? std::vector<ports::HopInfo>{} : impl_->transport->hops(connection);
}

void Endpoint::set_send_timeout(Connection connection, Duration timeout) {
  if (impl_->find(connection) != nullptr) impl_->transport->set_send_timeout(connection, timeout);
}

void Endpoint::set_keepalive(Connection connection, Duration timeout) {
  if (impl_->find(connection) != nullptr) impl_->transport->set_keepalive(connection, timeout);
}

void Endpoint::set_context(Connection connection, uint64_t context) {
  if (ConnectionRecord* record = impl_->find(connection)) record->context = context;
}

Status Endpoint::send(Connection connection, std::span<const Bytes> parts, uint64_t context, bool silent) {
  ConnectionRecord* record = nullptr;
  if (const Status status = impl_->established(connection, record); status != Status::success) return status;
  uint64_t total_bytes = 0;
  for (const Bytes part : parts) {
    if (null_memory(part)) return Status::invalid;
    if (part.size() > record->max_send_bytes - total_bytes) return Status::message_size;
    total_bytes += part.size();
  }
  if (impl_->in_use >= impl_->options.send_operations_max) return Status::no_buffers;
  const uint64_t token = impl_->begin_operation(context, silent);
  const Status status = impl_->transport->send(connection, parts, token);
  if (status != Status::success && impl_->end_operation(token)) --impl_->in_use;
  return status;
}

Status Endpoint::send(Connection connection, Bytes message, uint64_t context, bool silent) {
  return send(connection, std::span<const Bytes>(&message, 1), context, silent);
}

Status Endpoint::Impl::check_rma(const ConnectionRecord& record, const RmaOptions& rma_options, MutableBytes& local) {
  if (!is_reliable(record.attribute) || rma_options.length_bytes == 0) return Status::invalid;
  const ports::RemoteRef& remote = rma_options.remote;
  switch (remote.handle.kind) {
    case HandleKind::region:
      break;
    case HandleKind::mailbox:
      if (!rma_options.write) return Status::not_implemented;
      break;
    default:
      return Status::rma_handle;
  }
  // Nothing ends past 2^64: so the transports' and the target's arithmetic starts from sane numbers.
  if (remote.offset_bytes > UINT64_MAX - rma_options.length_bytes) return Status::rma_handle;
  if (rma_options.completion_message) {
    if (null_memory(*rma_options.completion_message)) return Status::invalid;
    if (rma_options.completion_message->size() > record.max_send_bytes) return Status::message_size;
  }
  return memory->resolve_local(rma_options.local, rma_options.local_offset_bytes, rma_options.length_bytes, !rma_options.write,
                               local);
}

Status Endpoint::Impl::rma(ConnectionId connection, const RmaOptions& rma_options) {
  ConnectionRecord* record = nullptr;
  if (const Status status = established(connection, record); status != Status::success) return status;
  MutableBytes local;
  if (const Status status = check_rma(*record, rma_options, local); status != Status::success) return status;
  if (in_use >= options.send_operations_max) return Status::no_buffers;

  ports::RmaRequest request;
  request.write = rma_options.write;
  request.remote = rma_options.remote;
  if (request.remote.handle.kind == HandleKind::mailbox) memory->name_put(request.remote.put);
  if (rma_options.write) {
    request.source = local;
  } else {
    request.destination = local;
  }
  request.has_completion_message = rma_options.completion_message.has_value();
  if (request.has_completion_message) request.completion_message = *rma_options.completion_message;
  request.fence = rma_options.fence;
  const uint64_t token = begin_operation(rma_options.context, rma_options.silent);
  const Status status = transport->rma(connection, request, token);
  if (status != Status::success && end_operation(token)) --in_use;
  return status;
}

Status Endpoint::rma(Connection connection, const RmaOptions& options) { return impl_->rma(connection, options); }

std::optional<Event> Endpoint::get_event() {
  if (impl_->events.empty()) return std::nullopt;
  std::optional<Event> event{std::move(impl_->events.front())};
  impl_->events.pop_front();
  switch (event->type) {
    case EventType::send:
    case EventType::connect:
      --impl_->in_use;
      break;
    case EventType::keepalive_timed_out:
      if (ConnectionRecord* record = impl_->find(event->connection)) record->keepalive_queued = false;
      break;
    default:
      break;
  }
  return event;
}

void Endpoint::turn(Instant now) {
  impl_->transport->turn(now);
  for (const ConnectionId request : std::exchange(impl_->refused_in_turn, {})) {
    impl_->counters.add(Counter::connections_refused);
    static_cast<void>(impl_->transport->reject(request, "too many requests"));
  }
}

Instant Endpoint::next_deadline() const { return impl_->transport->next_deadline(); }
int Endpoint::os_handle() const { return impl_->transport->os_handle(); }

}  // namespace ccixfer::cci
