#include "routing/transport/routed_connections.h"

#include <utility>

#include "core/base/log.h"

namespace ccixfer::routing {
namespace {

bool is_dialling(const RoutedConnection& connection) {
  return connection.phase == Phase::starting || connection.phase == Phase::dialling || connection.phase == Phase::requesting;
}

}  // namespace

RoutedConnections::RoutedConnections(cci::Endpoint& lower, RoutedConnectionTable& connections, HopPost& post,
                                     RoutedDialler& dialler, RoutedAcceptor& acceptor, RoutedMessages& messages,
                                     RoutedOperations& operations, FarEndKeepalive& keepalive, ports::TransportSink& sink,
                                     Counters& counters)
    : lower_(lower),
      connections_(connections),
      post_(post),
      dialler_(dialler),
      acceptor_(acceptor),
      messages_(messages),
      operations_(operations),
      keepalive_(keepalive),
      sink_(sink),
      counters_(counters) {}

// --- What happens below ---

void RoutedConnections::on_event(RoutedConnection& connection, const cci::Event& event, Instant now) {
  switch (event.type) {
    case cci::EventType::connect:
      return dialler_.on_hop_connected(connection, event, now);
    case cci::EventType::accept:
      return acceptor_.on_hop_accepted(connection, event, now);
    case cci::EventType::send:  // of a read below; our messages there are silent
      if (event.context == 0) return;
      operations_.on_lower_read_ended(connection, event.context, event.status);
      if (connection.phase == Phase::leaving) finish(connection);
      return;
    case cci::EventType::receive:
      if (connection.hop.connection() != event.connection || connection.phase == Phase::leaving) return;
      return on_message(connection, event.data(), now);
    case cci::EventType::disconnected:
      if (connection.hop.connection() == event.connection) on_lost(connection, event, now);
      return;
    default:
      return;
  }
}

void RoutedConnections::on_lost(RoutedConnection& connection, const cci::Event& event, Instant now) {
  if (connection.phase == Phase::requesting) return dialler_.on_hop_lost(connection, event.reason, now);
  close(connection, event.status, event.reason, false);
}

void RoutedConnections::on_timer(RoutedConnection& connection, Instant now) {
  if (is_dialling(connection)) return dialler_.on_timeout(connection);
  if (connection.phase != Phase::open) return acceptor_.on_timeout(connection);
  if (connection.end.deadline <= now) return close(connection, Status::disconnected, words_of_end, true);
  messages_.run_timer(connection, now);
  operations_.release(connection);
  connections_.activate(connection);
  keepalive_.look(connection, now);
}

void RoutedConnections::push(RoutedConnection& connection, Instant now) {
  if (connection.phase == Phase::starting) return dialler_.start(connection, now);
  post_.flush(connection);
  if (connection.phase == Phase::accepting) acceptor_.stamp(connection, now);
  if (connection.phase == Phase::open && connection.far_end.awaits_look()) keepalive_.look(connection, now);
  if (connection.phase == Phase::leaving) return finish(connection);
  if (connection.phase == Phase::open) {
    operations_.push(connection);
    messages_.push(connection, now);
    if (connection.messages.sender.deadline() < connections_.timer(connection)) keepalive_.look(connection, now);
  }
  if (!connection.hop.empty()) connections_.activate(connection);  // no room below: again when events came
  if (connection.end.left) go_on_leaving(connection, now);
}

// --- Routing messages ---

void RoutedConnections::on_message(RoutedConnection& connection, Bytes message, Instant now) {
  const auto kind = kind_of(message);
  if (!kind) return reject(connection, "unknown routing message");
  if (*kind == MessageKind::bye) return on_bye(connection, message, now);
  if (connection.phase == Phase::open) {
    on_open_message(connection, *kind, message, now);
  } else {
    on_setup_message(connection, *kind, message, now);
  }
}

void RoutedConnections::on_setup_message(RoutedConnection& connection, MessageKind kind, Bytes message, Instant now) {
  if (connection.phase == Phase::requesting && kind == MessageKind::connect_reply) {
    if (!dialler_.on_reply(connection, message, now)) return;
    opened(connection, now);
    return sink_.on_connected(connection.id, Status::success, connection.path.limits, {});
  }
  if (connection.phase == Phase::requesting && kind == MessageKind::connect_pending) {
    if (!dialler_.on_connect_pending(connection, message)) reject(connection, "malformed connect_pending");
    return;
  }
  if (connection.phase == Phase::awaiting_request && kind == MessageKind::connect_request) {
    return acceptor_.on_request(connection, message);
  }
  if (connection.phase == Phase::accepting && kind == MessageKind::connect_ack) {
    opened(connection, now);
    sink_.on_accepted(connection.id, Status::success, connection.path.limits);
    if (connection.is_draining) sink_.on_draining(connection.id);
    return;
  }
  if (connection.phase == Phase::accepting && kind == MessageKind::draining) {  // it is told when the acceptance is
    connection.is_draining = true;
    return;
  }
  reject(connection, "a routing message out of order");
}

void RoutedConnections::opened(RoutedConnection& connection, Instant now) {
  connection.phase = Phase::open;
  messages_.open(connection);
  keepalive_.begin(connection, now);
}

void RoutedConnections::on_open_message(RoutedConnection& connection, MessageKind kind, Bytes message, Instant now) {
  if (kind != MessageKind::fragment_released) connection.far_end.heard(now);  // that one comes from the next router
  switch (kind) {
    case MessageKind::message:
      return messages_.on_message(connection, message);
    case MessageKind::message_ack:
      if (!messages_.on_acknowledgement(connection, message, now)) return;
      operations_.release(connection);
      return connections_.activate(connection);
    case MessageKind::fragment_ack:
      return operations_.on_fragment_ack(connection, message);
    case MessageKind::fragment_released:
      return operations_.on_fragment_released(connection, message);
    case MessageKind::read_reply:
      return operations_.on_read_reply(connection, message);
    case MessageKind::mailbox_hint:
      return on_mailbox_hint(connection, message);
    case MessageKind::keepalive:
      return post_.say_plain(connection, MessageKind::keepalive_ack);
    case MessageKind::keepalive_ack:
      return;
    case MessageKind::draining:
      return on_draining(connection);
    default:
      return reject(connection, "a routing message for routers only");
  }
}

void RoutedConnections::on_mailbox_hint(RoutedConnection& connection, Bytes message) {
  const auto hint = decode_mailbox_hint(message);
  if (!hint) return reject(connection, "malformed mailbox hint");
  sink_.on_mailbox_ready(connection.id, hint->mailbox, hint->epoch);
}

void RoutedConnections::on_draining(RoutedConnection& connection) {
  if (!std::exchange(connection.is_draining, true) && !connection.end.left) sink_.on_draining(connection.id);
}

void RoutedConnections::on_bye(RoutedConnection& connection, Bytes message, Instant now) {
  const auto bye = decode_bye(message);
  if (!bye) return reject(connection, "malformed bye");
  if (connection.phase == Phase::requesting) return dialler_.on_bye(connection, bye->reason, now);
  close(connection, bye->status == Status::success ? Status::disconnected : bye->status, bye->reason, false);
}

// --- The end ---

void RoutedConnections::disconnect(RoutedConnection& connection) {
  if (is_dialling(connection)) return dialler_.drop(connection);
  switch (connection.phase) {
    case Phase::leaving:  // it ended, and the application has not been told yet
      connection.end.tell_above = false;
      return connections_.finish_soon(connection);
    case Phase::offered:
      return static_cast<void>(acceptor_.reject(connection, "not accepted"));
    case Phase::open:
      connection.end.left = true;
      connection.messages.receiver.leave();
      return connections_.activate(connection);
    default:
      connection.end.left = true;
      return close(connection, Status::disconnected, words_of_end, true);
  }
}

// Our application has gone. The connection ends when what was begun has ended, or takes too long.
void RoutedConnections::go_on_leaving(RoutedConnection& connection, Instant now) {
  if (connection.phase != Phase::open) return;
  if (RoutedOperations::is_idle(connection)) return close(connection, Status::disconnected, words_of_end, true);
  if (connection.end.deadline != never) return;
  connection.end.deadline = after(now, leave_timeout);
  keepalive_.look(connection, now);
}

void RoutedConnections::reject(RoutedConnection& connection, std::string_view why) {
  counters_.add(Counter::routed_rejected);
  log(LogLevel::warning, "routing: connection closed: {}", why);
  if (is_dialling(connection)) return dialler_.give_up(connection, Status::error, why);
  close(connection, Status::error, why, true);
}

void RoutedConnections::close(RoutedConnection& connection, Status status, std::string_view reason, bool tell_peer) {
  if (connection.phase == Phase::leaving) return;
  const bool is_known_above = connection.phase != Phase::hop_accepting && connection.phase != Phase::awaiting_request;
  acceptor_.forget(connection);
  connections_.retire(connection, status, reason, is_known_above && !connection.end.left);
  if (tell_peer && connection.hop.is_live()) post_.say(connection, Bye{status, connection.end.reason});
  operations_.withdraw(connection);
}

void RoutedConnections::finish(RoutedConnection& connection) {
  if (connection.hop.is_live()) {
    post_.flush(connection);
    if (connection.hop.empty()) {
      lower_.disconnect(connection.hop.connection());  // orderly: what went out before is delivered
      connection.hop.lose();
    }
  }
  messages_.fail_all(connection);
  // What is left is a lower read that may still write into memory, whose event comes, or a source to
  // which the network refers (RoutedOperations::release_lent).
  if (!operations_.end_all(connection)) return;
  if (connection.hop.is_live()) return connections_.activate(connection);  // bye waits for room below
  if (connection.end.tell_above) sink_.on_disconnected(connection.id, connection.end.status, connection.end.reason);
  connections_.remove(connection);
}

}  // namespace ccixfer::routing
