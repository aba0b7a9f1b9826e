#include "routing/transport/direct_connections.h"

#include <utility>

#include "core/base/check.h"

namespace ccixfer::routing {

DirectConnections::~DirectConnections() {
  connections_.for_each([this](const RoutedConnection& connection) {
    if (!connection.is_direct()) return;
    for (const auto& [token, handle] : connection.direct->sources) static_cast<void>(memory_.deregister_region(handle));
  });
}

// --- The beginning ---

Result<ports::ConnectionId> DirectConnections::dial(const ports::DialRequest& request, const std::string& uri) {
  RoutedConnection* connection = connections_.add(Phase::dialling);
  if (connection == nullptr) return fail(ErrorKind::network, "too many connections");
  const auto lower = lower_.connect(uri, {request.role, request.attribute, request.data, request.timeout, connection->id.packed()});
  if (!lower) {
    connections_.remove(*connection);
    return tl::unexpected<Error>(lower.error());
  }
  connection->direct = std::make_unique<DirectTraffic>();
  connections_.attach(*connection, *lower);
  return connection->id;
}

void DirectConnections::on_connected(RoutedConnection& connection, const cci::Event& event) {
  if (connection.phase != Phase::dialling) return;
  if (event.status == Status::success) return opened(connection);
  sink_.on_connected(connection.id, event.status, {}, event.reason);
  connections_.remove(connection);
}

// As soon as the lower endpoint says so, or its first message comes.
void DirectConnections::opened(RoutedConnection& connection) {
  const bool dialled = connection.phase == Phase::dialling;
  connection.phase = Phase::open;
  connection.path.limits = {lower_.max_send_bytes(connection.hop.connection())};
  if (dialled) {
    sink_.on_connected(connection.id, Status::success, connection.path.limits, {});
  } else {
    sink_.on_accepted(connection.id, Status::success, connection.path.limits);
  }
}

void DirectConnections::on_request(cci::Event event) {
  RoutedConnection* connection = connections_.add(Phase::offered);
  if (connection == nullptr) {
    counters_.add(Counter::connections_refused);
    static_cast<void>(lower_.reject(event, "too many connections"));
    return;
  }
  connection->direct = std::make_unique<DirectTraffic>();
  connection->direct->offer = std::make_unique<cci::Event>(std::move(event));
  const cci::Event& offer = *connection->direct->offer;
  sink_.on_connect_request(connection->id, offer.role, offer.attribute, offer.data());
}

Status DirectConnections::accept(RoutedConnection& connection) {
  connection.phase = Phase::accepting;
  const std::unique_ptr<cci::Event> offer = std::move(connection.direct->offer);
  const Status status = lower_.accept(*offer, connection.id.packed());
  if (status == Status::success) {
    connections_.attach(connection, offer->connection);
  } else {
    connections_.remove(connection);
  }
  return status;
}

Status DirectConnections::reject(RoutedConnection& connection, std::string_view reason) {
  const std::unique_ptr<cci::Event> offer = std::move(connection.direct->offer);
  const Status status = lower_.reject(*offer, reason);
  connections_.remove(connection);
  return status;
}

void DirectConnections::on_accepted(RoutedConnection& connection, const cci::Event& event) {
  if (connection.phase != Phase::accepting) return;
  if (event.status == Status::success) return opened(connection);
  sink_.on_accepted(connection.id, event.status, {});
  connections_.remove(connection);
}

ports::PeerIdentity DirectConnections::peer(const RoutedConnection& connection) const {
  return connection.phase == Phase::offered ? connection.direct->offer->peer() : lower_.peer(connection.hop.connection());
}

// --- Operations ---

Status DirectConnections::send(RoutedConnection& connection, std::span<const Bytes> parts, uint64_t token) {
  const Status status = lower_.send(connection.hop.connection(), parts, token);
  if (status == Status::success) ++connection.direct->in_flight;
  return status;
}

Status DirectConnections::rma(RoutedConnection& connection, const ports::RmaRequest& request, uint64_t token) {
  cci::RmaOptions options;
  options.write = request.write;
  const size_t length_bytes = request.write ? request.source.size() : request.destination.size();
  options.local = memory_.register_part(request.local.region, request.local.offset_bytes, length_bytes, 0);
  if (options.local.kind == ports::HandleKind::none) return Status::no_buffers;
  options.remote = request.remote;
  options.length_bytes = length_bytes;
  options.fence = request.fence;
  if (request.has_completion_message) options.completion_message = request.completion_message;
  options.local_completion = request.local_completion;
  options.buffer_is_posted = request.buffer_is_posted;
  options.source_is_file = request.source_is_file;
  options.context = token;
  const Status status = lower_.rma(connection.hop.connection(), options);
  if (status != Status::success) {
    static_cast<void>(memory_.deregister_region(options.local));
    return status;
  }
  connection.direct->sources[token] = options.local;
  ++connection.direct->in_flight;
  return Status::success;
}

void DirectConnections::on_operation_ended(RoutedConnection& connection, uint64_t token, ports::OperationResult ending) {
  DirectTraffic& direct = *connection.direct;
  if (const auto source = direct.sources.find(token); source != direct.sources.end()) {
    static_cast<void>(memory_.deregister_region(source->second));
    direct.sources.erase(source);
  }
  CHECK(direct.in_flight > 0);
  --direct.in_flight;
  sink_.on_completion(connection.id, token, ending);
  if (connection.phase == Phase::leaving) finish(connection);
}

MutableBytes DirectConnections::message_begins(RoutedConnection& connection, uint32_t length_bytes) {
  if (connection.phase == Phase::dialling || connection.phase == Phase::accepting) opened(connection);
  if (connection.phase != Phase::open) return {};
  const MutableBytes memory = sink_.on_message_begin(connection.id, length_bytes);
  connection.direct->message_open = memory.data() != nullptr;
  return memory;
}

void DirectConnections::message_ends(RoutedConnection& connection, bool complete) {
  if (std::exchange(connection.direct->message_open, false)) sink_.on_message_end(connection.id, complete);
}

void DirectConnections::on_event(RoutedConnection& connection, const cci::Event& event) {
  switch (event.type) {
    case cci::EventType::connect:
      return on_connected(connection, event);
    case cci::EventType::accept:
      return on_accepted(connection, event);
    case cci::EventType::send:
      return on_operation_ended(connection, event.context, event.ending());
    case cci::EventType::local_completion:
      return sink_.on_local_completion(connection.id, event.context);
    case cci::EventType::mailbox_ready:
      return sink_.on_mailbox_ready(connection.id, event.mailbox, event.ending().detail);
    case cci::EventType::keepalive_timed_out:
      return sink_.on_keepalive_timeout(connection.id);
    case cci::EventType::disconnected:
      if (connection.phase != Phase::leaving) close(connection, event.status, event.reason, true);
      return;
    default:
      return;
  }
}

// --- The end ---

void DirectConnections::disconnect(RoutedConnection& connection) {
  switch (connection.phase) {
    case Phase::leaving:  // it ended, and the application has not been told yet
      connection.end.tell_above = false;
      return connections_.finish_soon(connection);
    case Phase::offered:
      return static_cast<void>(reject(connection, "not accepted"));
    case Phase::dialling:
      lower_.disconnect(connection.hop.connection());
      return connections_.remove(connection);
    default:
      return close(connection, Status::disconnected, words_of_end, false);
  }
}

void DirectConnections::close(RoutedConnection& connection, Status status, std::string_view reason, bool tell_above) {
  lower_.disconnect(connection.hop.connection());  // nothing, when it is gone
  connections_.retire(connection, status, reason, tell_above);
}

void DirectConnections::finish(RoutedConnection& connection) {
  if (connection.direct->in_flight > 0) return;
  if (connection.end.tell_above) sink_.on_disconnected(connection.id, connection.end.status, connection.end.reason);
  if (connection.direct->message_open) sink_.on_message_end(connection.id, false);
  connections_.remove(connection);
}

}  // namespace ccixfer::routing
