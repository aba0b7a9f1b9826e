// The application's side of the endpoint: every argument is checked here, for all transports alike.
#include "core/cci/endpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/cci/endpoint_impl.h"

namespace ccixfer::cci {
namespace {

using ports::ConnectionId;
using ports::HandleKind;

constexpr size_t reason_bytes_max = 1024;

bool null_memory(Bytes bytes) { return bytes.data() == nullptr && !bytes.empty(); }

bool is_reliable(Attribute attribute) {
  return attribute == Attribute::reliable_ordered || attribute == Attribute::reliable_unordered;
}

}  // namespace

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
  if (options.timeout < Duration::zero()) return fail(ErrorKind::usage, "a connect timeout cannot be negative");
  if (impl_->in_use >= impl_->options.send_operations_max)
    return fail(ErrorKind::network, "too many operations in flight to connect");
  if (options.ahead && !dials_ahead()) return fail(ErrorKind::usage, "this transport does not dial ahead");
  const Result<ConnectionId> dialled =
      impl_->transport->dial({uri, options.role, options.attribute, options.data, options.timeout, options.ahead});
  if (!dialled) return dialled;
  ConnectionRecord record;
  record.attribute = options.attribute;
  record.context = options.context;
  record.hop = options.role == ports::Role::hop;
  record.waiter = options.waiter;
  const bool fresh = impl_->connections.insert_or_assign(dialled->packed(), record).second;
  CHECK(fresh);
  ++impl_->in_use;
  return *dialled;
}

bool Endpoint::dials_ahead() const { return impl_->transport->dials_ahead(); }

Status Endpoint::ask(Connection connection, Bytes data) {
  const ConnectionRecord* record = impl_->find(connection);
  if (record == nullptr) return Status::not_found;
  if (record->state != State::connecting || null_memory(data)) return Status::invalid;
  return impl_->transport->ask(connection, data);
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
  record.hop = request.role == ports::Role::hop;
  record.max_send_bytes = impl_->transport->max_send_bytes();  // the transport knows what was agreed on
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

void Endpoint::abort(Connection connection) {
  ConnectionRecord* record = impl_->find(connection);
  if (record == nullptr) return;
  impl_->leave(connection, *record);
  impl_->transport->abort(connection);
}

std::optional<uint64_t> Endpoint::delivered_bytes(Connection connection) const {
  return impl_->find(connection) == nullptr ? std::nullopt : impl_->transport->delivered_bytes(connection);
}

std::optional<ports::PathFigures> Endpoint::path_figures(Connection connection) const {
  return impl_->find(connection) == nullptr ? std::nullopt : impl_->transport->path_figures(connection);
}

std::optional<uint64_t> Endpoint::received_bytes(Connection connection) const {
  return impl_->find(connection) == nullptr ? std::nullopt : impl_->transport->received_bytes(connection);
}

uint32_t Endpoint::max_send_bytes(Connection connection) const {
  const ConnectionRecord* record = impl_->find(connection);
  return record == nullptr ? 0 : record->max_send_bytes;
}

std::vector<ports::HopInfo> Endpoint::hops(Connection connection) const {
  return impl_->find(connection) == nullptr ? std::vector<ports::HopInfo>{} : impl_->transport->hops(connection);
}

ports::PeerIdentity Endpoint::peer(Connection connection) const {
  return impl_->find(connection) == nullptr ? ports::PeerIdentity{} : impl_->transport->peer(connection);
}

Status Endpoint::set_send_timeout(Connection connection, Duration timeout) {
  ConnectionRecord* record = impl_->find(connection);
  if (record == nullptr) return Status::not_found;
  if (timeout <= Duration::zero()) return Status::invalid;
  record->send_timeout = timeout;
  impl_->transport->set_send_timeout(connection, timeout);
  return Status::success;
}

Status Endpoint::set_keepalive(Connection connection, Duration timeout) {
  ConnectionRecord* record = impl_->find(connection);
  if (record == nullptr) return Status::not_found;
  if (timeout < Duration::zero()) return Status::invalid;
  record->keepalive = timeout;
  impl_->transport->set_keepalive(connection, timeout);
  return Status::success;
}

std::optional<Duration> Endpoint::send_timeout(Connection connection) const {
  const ConnectionRecord* record = impl_->find(connection);
  return record == nullptr ? std::nullopt : std::optional<Duration>(record->send_timeout);
}

std::optional<Duration> Endpoint::keepalive(Connection connection) const {
  const ConnectionRecord* record = impl_->find(connection);
  return record == nullptr ? std::nullopt : std::optional<Duration>(record->keepalive);
}

Status Endpoint::set_send_timeout(Duration timeout) {
  if (timeout <= Duration::zero()) return Status::invalid;
  impl_->options.send_timeout = timeout;
  return Status::success;
}

Status Endpoint::set_keepalive(Duration timeout) {
  if (timeout < Duration::zero()) return Status::invalid;
  impl_->options.keepalive = timeout;
  return Status::success;
}

Status Endpoint::set_receive_buffers(uint32_t buffers) {
  if (buffers == 0) return Status::invalid;
  impl_->options.receive_buffers = buffers;
  impl_->store->set_buffers_max(buffers);
  return Status::success;
}

Status Endpoint::set_send_buffers(uint32_t operations) {
  if (operations == 0) return Status::invalid;
  impl_->options.send_operations_max = operations;
  return Status::success;
}

void Endpoint::set_send_share(uint32_t operations) { impl_->options.send_share = operations; }

Duration Endpoint::send_timeout() const { return impl_->options.send_timeout; }
Duration Endpoint::keepalive() const { return impl_->options.keepalive; }
uint32_t Endpoint::receive_buffers() const { return impl_->options.receive_buffers; }
uint32_t Endpoint::send_buffers() const { return impl_->options.send_operations_max; }

void Endpoint::set_context(Connection connection, uint64_t context) {
  if (ConnectionRecord* record = impl_->find(connection)) record->context = context;
}

Status Endpoint::send(Connection connection, std::span<const Bytes> parts, const SendOptions& options) {
  ConnectionRecord* record = nullptr;
  if (const Status status = impl_->takes_operations(connection, record); status != Status::success) return status;
  if (record->attribute == Attribute::multicast_receive) return Status::invalid;  // there is no peer
  uint64_t total_bytes = 0;
  for (const Bytes part : parts) {
    if (null_memory(part)) return Status::invalid;
    if (part.size() > record->max_send_bytes - total_bytes) return Status::message_size;
    total_bytes += part.size();
  }
  if (!impl_->has_room(*record)) return Status::no_buffers;
  const uint64_t token = impl_->begin_operation(*record, options.context, options.silent, options.waiter);
  const Status status = impl_->transport->send(connection, parts, token);
  if (status != Status::success) impl_->drop_operation(connection, token);
  return status;
}

Status Endpoint::send(Connection connection, std::span<const Bytes> parts, uint64_t context, bool silent) {
  return send(connection, parts, SendOptions{context, silent});
}

Status Endpoint::send(Connection connection, Bytes message, uint64_t context, bool silent) {
  return send(connection, std::span<const Bytes>(&message, 1), SendOptions{context, silent});
}

Status Endpoint::Impl::check_rma(const ConnectionRecord& record, const RmaOptions& rma_options, MutableBytes& span,
                                 ports::LocalRegion& local) {
  if (!is_reliable(record.attribute) || rma_options.length_bytes == 0) return Status::invalid;
  if (rma_options.local_completion && !rma_options.write) return Status::invalid;
  const ports::RemoteRef& remote = rma_options.remote;
  switch (remote.handle.kind) {
    case HandleKind::region:
    case HandleKind::mailbox:
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
  local = {rma_options.local, rma_options.local_offset_bytes, {}};
  const Status status = memory->resolve_local(local.region, local.offset_bytes, rma_options.length_bytes, !rma_options.write, span);
  return status == Status::success ? memory->local_key(*target, local.region, local.key) : status;
}

Status Endpoint::Impl::rma(ConnectionId connection, const RmaOptions& rma_options) {
  ConnectionRecord* record = nullptr;
  if (const Status status = takes_operations(connection, record); status != Status::success) return status;
  ports::RmaRequest request;
  MutableBytes local;
  if (const Status status = check_rma(*record, rma_options, local, request.local); status != Status::success) return status;
  if (!has_room(*record)) return Status::no_buffers;

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
  request.fill = rma_options.fill;
  request.buffer_is_posted = rma_options.buffer_is_posted;
  request.source_is_file = rma_options.source_is_file;
  request.local_completion = rma_options.local_completion;
  const uint64_t token =
      begin_operation(*record, rma_options.context, rma_options.silent, rma_options.waiter, rma_options.local_completion);
  const Status status = transport->rma(connection, request, token);
  if (status != Status::success) drop_operation(connection, token);
  return status;
}

Status Endpoint::rma(Connection connection, const RmaOptions& options) { return impl_->rma(connection, options); }

bool Endpoint::supports_cut_through() const { return impl_->transport->supports_cut_through(); }
std::unique_ptr<ports::SplicePipe> Endpoint::make_splice_pipe() { return impl_->transport->make_splice_pipe(); }
bool Endpoint::takes(const ports::SplicePipe& splice_pipe) const { return impl_->transport->takes(splice_pipe); }
void Endpoint::resume(Connection connection) { impl_->transport->resume(connection); }

std::optional<Event> Endpoint::get_event() {
  std::optional<Event> event;  // returned from one place: an event is not moved more often than it must
  if (impl_->events.empty()) return event;
  event.emplace(std::move(impl_->events.front()));
  impl_->events.drop_front();
  switch (event->type) {
    case EventType::send:
    case EventType::local_completion:
    case EventType::connect:
      --impl_->in_use;
      break;
    case EventType::keepalive_timed_out:
      if (ConnectionRecord* record = impl_->find(event->connection)) record->keepalive_queued = false;
      break;
    case EventType::mailbox_ready:
      if (ConnectionRecord* record = impl_->find(event->connection)) --record->hints_queued;
      break;
    default:
      break;
  }
  return event;
}

Status Endpoint::get_event(Event& event) {
  if (std::optional<Event> next = get_event()) {
    event = std::move(*next);
    return Status::success;
  }
  return impl_->store->buffers_out() ? Status::no_buffers : Status::again;
}

// The endpoint's own options, for connections on which the application did not set them before they stood.
void Endpoint::Impl::set_up_fresh() {
  for (const ConnectionId connection : std::exchange(fresh, {})) {
    ConnectionRecord* record = find(connection);
    if (record == nullptr) continue;
    if (record->send_timeout == forever && options.send_timeout != forever) {
      record->send_timeout = options.send_timeout;
      transport->set_send_timeout(connection, options.send_timeout);
    }
    if (record->keepalive == Duration::zero() && options.keepalive > Duration::zero()) {
      record->keepalive = options.keepalive;
      transport->set_keepalive(connection, options.keepalive);
    }
  }
}

void Endpoint::turn(Instant now) {
  impl_->now = std::max(impl_->now, now);
  impl_->memory->turn(now);
  while (const std::optional<ports::Hint> hint = impl_->target->next_hint()) {
    impl_->transport->hint(ConnectionId::of(hint->connection), hint->mailbox, hint->epoch);
  }
  impl_->transport->turn(now);
  impl_->time_out_unanswered();
  if (!impl_->fresh.empty()) impl_->set_up_fresh();
  if (impl_->refused_in_turn.empty()) return;
  for (const ConnectionId request : std::exchange(impl_->refused_in_turn, {})) {
    impl_->counters.add(Counter::connections_refused);
    static_cast<void>(impl_->transport->reject(request, "too many requests"));
  }
}

void Endpoint::set_message_taker(MessageTaker* taker) { impl_->taker = taker; }
Instant Endpoint::next_deadline() const {
  if (impl_->target->hint_waits()) return impl_->now;
  const Instant unanswered = impl_->unanswered.empty() ? never : impl_->unanswered.begin()->first;
  return std::min(unanswered, impl_->transport->next_deadline());
}
int Endpoint::os_handle() const { return impl_->transport->os_handle(); }

Status Endpoint::arm_os_handle(Instant wake_at) {
  if (!impl_->events.empty()) return Status::again;
  impl_->transport->arm(std::min(wake_at, next_deadline()));
  return Status::success;
}

}  // namespace ccixfer::cci
