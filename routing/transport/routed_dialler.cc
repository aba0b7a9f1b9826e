#include "routing/transport/routed_dialler.h"

#include <algorithm>
#include <utility>

namespace ccixfer::routing {

std::string native_scheme(const RoutedOptions& options, const cci::Endpoint& lower) {
  const auto scheme_of = [](const std::string& uri) { return uri.substr(0, uri.find("://")); };
  if (!options.scheme.empty()) return options.scheme;
  if (const std::string own = lower.uri(); !own.empty()) return scheme_of(own);
  return options.routers.empty() ? "tcp" : scheme_of(options.routers.front());
}

Result<ports::ConnectionId> RoutedDialler::dial(const ports::DialRequest& request) {
  if (request.uri.size() > destination_bytes_max) return fail(ErrorKind::usage, "the address is too long");
  RoutedConnection* connection = connections_.add(Phase::starting);
  if (connection == nullptr) return fail(ErrorKind::network, "too many connections");
  connection->path.attribute = request.attribute;
  connection->attempts = std::make_unique<RouterAttempts>(request);
  connections_.activate(*connection);
  return connection->id;
}

void RoutedDialler::start(RoutedConnection& connection, Instant now) {
  if (options_.routers.empty()) return give_up(connection, Status::no_route, "no router is configured on this subnet");
  std::vector<std::string> routers = options_.routers;
  // Clients begin with any of them, by chance (routing §VI); the next connection with the next one,
  // so that the lanes of one session are spread too. The last of the list is dialled first.
  if (!next_router_) next_router_ = entropy_.next_u64() % routers.size();
  std::rotate(routers.begin(), routers.begin() + static_cast<std::ptrdiff_t>(*next_router_), routers.end());
  next_router_ = (*next_router_ + 1) % routers.size();
  connection.attempts->begin(std::move(routers), now);
  connections_.set_timer(connection, connection.attempts->deadline());
  dial_next(connection, now);
}

void RoutedDialler::dial_next(RoutedConnection& connection, Instant now) {
  RouterAttempts& attempts = *connection.attempts;
  connections_.detach(connection);
  while (attempts.next()) {
    const auto lower =
        lower_.connect(attempts.router(),
                       {ports::Role::hop, ports::Attribute::reliable_ordered, {}, attempts.patience(now), connection.id.packed()});
    if (lower) {
      connections_.attach(connection, *lower);
      connection.phase = Phase::dialling;
      return;
    }
    attempts.note_unreachable(lower.error().message);
  }
  give_up_as_answered(connection);
}

uint32_t RoutedDialler::payload_bytes_of(const RoutedConnection& connection) const {
  return payload_bytes_max(lower_.max_send_bytes(connection.hop.connection()));
}

void RoutedDialler::on_hop_connected(RoutedConnection& connection, const cci::Event& event, Instant now) {
  if (connection.phase != Phase::dialling) return;
  if (event.status != Status::success) {
    const bool lacks_grant = event.status == Status::refused && event.reason.starts_with(words_of_no_grant);
    if (is_not_let_in(event.status) || lacks_grant) {
      connection.attempts->note_not_let_in(lacks_grant ? Status::not_authorised : event.status, event.reason);
    } else {
      connection.attempts->note_unreachable(event.reason);
    }
    return dial_next(connection, now);
  }
  ConnectRequest request = connection.attempts->ask(now);
  request.source = options_.subnet;
  request.max_send_bytes = payload_bytes_of(connection);
  request.fragment_bytes = options_.fragment_bytes_max;
  connection.phase = Phase::requesting;
  post_.say(connection, request);
}

void RoutedDialler::on_hop_lost(RoutedConnection& connection, std::string_view reason, Instant now) {
  connection.attempts->note_unreachable(reason);
  dial_next(connection, now);
}

void RoutedDialler::on_bye(RoutedConnection& connection, std::string_view reason, Instant now) {
  connection.attempts->note(Told::dead, Status::unreachable, reason);
  lower_.disconnect(connection.hop.connection());
  dial_next(connection, now);
}

bool RoutedDialler::on_reply(RoutedConnection& connection, Bytes message, Instant now) {
  RouterAttempts& attempts = *connection.attempts;
  const auto reply = decode_connect_reply(message);
  if (!reply) {
    counters_.add(Counter::routed_rejected);
    attempts.note(Told::the_end, Status::error, "router " + attempts.router() + ": malformed reply");
    return give_up_as_answered(connection), false;
  }
  if (reply->status != Status::success) {
    if (!attempts.note_reply(*reply)) return give_up_as_answered(connection), false;
    lower_.disconnect(connection.hop.connection());
    return dial_next(connection, now), false;
  }
  connection.path.limits.max_send_bytes = std::min(reply->max_send_bytes, payload_bytes_of(connection));
  connection.path.fragment_bytes = std::min(reply->fragment_bytes, options_.fragment_bytes_max);
  connection.path.hops.reserve(reply->hops.size() + 1);
  ports::HopInfo first{native_scheme(options_, lower_), attempts.router(),        options_.subnet.as,
                       options_.subnet.subnet,          attempts.round_trip(now), reply->rate_bits_per_s};
  if (const std::vector<ports::HopInfo> native = lower_.hops(connection.hop.connection()); !native.empty()) {
    first.peer = native.front().peer;
    first.protection = native.front().protection;
  }
  connection.path.hops.push_back(std::move(first));
  connection.path.hops.insert(connection.path.hops.end(), reply->hops.begin(), reply->hops.end());
  connection.attempts.reset();
  post_.say_plain(connection, MessageKind::connect_ack);
  return true;
}

bool RoutedDialler::on_connect_pending(RoutedConnection& connection, Bytes message) {
  auto pending = decode_connect_pending(message);
  if (!pending) return false;
  connection.attempts->note_pending(std::move(*pending));
  return true;
}

void RoutedDialler::on_timeout(RoutedConnection& connection) {
  give_up(connection, Status::timed_out, connection.attempts->why_late());
}

void RoutedDialler::give_up_as_answered(RoutedConnection& connection) {
  give_up(connection, connection.attempts->answer().status, connection.attempts->answer().reason);
}

void RoutedDialler::give_up(RoutedConnection& connection, Status status, std::string_view reason) {
  if (connection.hop.is_live()) lower_.disconnect(connection.hop.connection());
  sink_.on_connected(connection.id, status, {}, reason);
  connections_.remove(connection);
}

void RoutedDialler::drop(RoutedConnection& connection) {
  if (connection.hop.is_live()) lower_.disconnect(connection.hop.connection());
  connections_.remove(connection);
}

}  // namespace ccixfer::routing
