#include "routing/transport/routed_acceptor.h"

#include <algorithm>
#include <utility>

#include "routing/map/address.h"

namespace ccixfer::routing {

void RoutedAcceptor::on_hop(cci::Event event) {
  if (undecided_ >= options_.pending_requests_max) return waiting_.push_back(std::move(event));
  RoutedConnection* connection = connections_.add(Phase::hop_accepting);
  if (connection == nullptr) {
    counters_.add(Counter::connections_refused);
    static_cast<void>(lower_.reject(event, "too many connections"));
    return;
  }
  if (lower_.accept(event, connection->id.packed()) != Status::success) return connections_.remove(*connection);
  connections_.attach(*connection, event.connection);
  ++undecided_;
}

void RoutedAcceptor::take_waiting() {
  while (!waiting_.empty() && undecided_ < options_.pending_requests_max) on_hop(waiting_.pop_front());
}

void RoutedAcceptor::on_hop_accepted(RoutedConnection& connection, const cci::Event& event, Instant now) {
  if (connection.phase != Phase::hop_accepting) return;
  if (event.status != Status::success) {
    --undecided_;
    return connections_.remove(connection);
  }
  connection.phase = Phase::awaiting_request;
  connections_.set_timer(connection, after(now, request_timeout));
}

void RoutedAcceptor::on_request(RoutedConnection& connection, Bytes message) {
  const auto request = decode_connect_request(message);
  if (!request) return ender_.reject(connection, "malformed connect request");
  const auto to = parse_address(request->destination);
  const bool is_for_us = to && to->subnet == options_.subnet && request->crossed <= hops_max;
  if (!is_for_us) return ender_.reject(connection, "not for this endpoint");
  if (request->attribute == ports::Attribute::multicast_send || request->attribute == ports::Attribute::multicast_receive) {
    return ender_.reject(connection, "multicast is not implemented on this transport");
  }
  const uint32_t payload_bytes = payload_bytes_max(lower_.max_send_bytes(connection.hop.connection()));
  connection.path.attribute = request->attribute;
  connection.path.limits.max_send_bytes = std::min(request->max_send_bytes, payload_bytes);
  connection.path.fragment_bytes = std::min(request->fragment_bytes, options_.fragment_bytes_max);
  connection.phase = Phase::offered;
  connections_.set_timer(connection, never);
  sink_.on_connect_request(connection.id, request->role, connection.path.attribute, request->data);
}

Status RoutedAcceptor::accept(RoutedConnection& connection) {
  connection.phase = Phase::accepting;
  --undecided_;
  ConnectReply reply;
  reply.status = Status::success;
  reply.max_send_bytes = connection.path.limits.max_send_bytes;
  reply.fragment_bytes = connection.path.fragment_bytes;
  post_.say(connection, reply);
  connection.accept_is_unstamped = true;
  connections_.activate(connection);
  return Status::success;
}

Status RoutedAcceptor::reject(RoutedConnection& connection, std::string_view reason) {
  ConnectReply reply;
  reply.status = Status::refused;
  reply.reason = reason;
  post_.say(connection, reply);
  connection.end.left = true;
  ender_.close(connection, Status::refused, reason, false);
  return Status::success;
}

void RoutedAcceptor::stamp(RoutedConnection& connection, Instant now) {
  if (std::exchange(connection.accept_is_unstamped, false)) connections_.set_timer(connection, after(now, accept_timeout));
}

void RoutedAcceptor::on_timeout(RoutedConnection& connection) {
  if (connection.phase == Phase::awaiting_request) return ender_.reject(connection, "no connect request in time");
  ender_.close(connection, Status::timed_out, "no acknowledgement in time", true);
}

void RoutedAcceptor::forget(const RoutedConnection& connection) {
  const bool is_undecided =
      connection.phase == Phase::hop_accepting || connection.phase == Phase::awaiting_request || connection.phase == Phase::offered;
  if (is_undecided) --undecided_;
}

}  // namespace ccixfer::routing
