#include "routing/router/connection_setup.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/base/log.h"

namespace ccixfer::routing {

namespace {

// What all the ways that were tried have come to.
RefusedAs refused_as(Status answer) {
  if (answer == Status::no_route) return RefusedAs::no_way;
  if (answer == Status::unreachable || answer == Status::timed_out) return RefusedAs::no_answer;
  return RefusedAs::beyond;
}

}  // namespace

ConnectionSetup::ConnectionSetup(const Devices& devices, RecordStore& records, const PeerRights& rights,
                                 ConnectionTable& connections, const ConnectionPlaces& places, const BufferGrants& grants,
                                 MessageRelay& relay, ConnectionEnder& ender, ports::Entropy& entropy, Counters& counters,
                                 Traffic* traffic)
    : devices_(devices),
      records_(records),
      rights_(rights),
      connections_(connections),
      places_(places),
      grants_(grants),
      relay_(relay),
      ender_(ender),
      turns_(entropy),
      counters_(counters),
      traffic_(traffic) {}

std::string ConnectionSetup::draining_reason(const RelayedConnection& connection) const {
  return fmt::format("router {} stops", devices_.uri(connection.legs[0].device));
}

void ConnectionSetup::refuse_as_draining(RelayedConnection& connection) {
  refuse(connection, RefusedAs::draining, Status::no_route, draining_reason(connection));
}

void ConnectionSetup::on_request(RelayedConnection& connection, Bytes message, Instant now) {
  auto request = decode_connect_request(message);
  const auto to = request ? parse_address(request->destination) : Result<Address>(fail(ErrorKind::usage, ""));
  if (!request || !to) return ender_.reject(connection, "malformed connect request");
  connection.attempt = std::make_unique<ConnectAttempt>();
  ConnectAttempt& attempt = *connection.attempt;
  attempt.request = std::move(*request);
  attempt.to = *to;
  attempt.deadline = after(now, std::min(attempt.request.timeout, connect_time_max));
  Leg& first = connection.legs[0];
  first.is_end = attempt.request.crossed == 0;
  connection.crossed = attempt.request.crossed;
  connections_.set_timer(connection, attempt.deadline);
  if (draining_) return refuse_as_draining(connection);
  // The hop limit ends what a map in change may let circle.
  if (attempt.request.crossed >= hops_max)
    return refuse(connection, RefusedAs::too_far, Status::no_route, "more than eight routers");
  const std::string own_uri = devices_.uri(first.device);
  if (const ClaimFault fault = claim_fault(connection); fault.status != Status::success) {
    note_liar(first, fault.reason);
    return refuse(connection, RefusedAs::not_permitted, fault.status, fmt::format("router {}: {}", own_uri, fault.reason));
  }
  if (places_.has_too_many(*connection.peer, first.is_end)) {
    return refuse(connection, RefusedAs::full, Status::no_route,
                  fmt::format("router {} has too many connections, and of this peer", own_uri));
  }
  auto hops = records_.next_hops(attempt.request.source, devices_[first.device].subnet, attempt.to.subnet);
  // A worker has a new device a moment after the map has it.
  std::erase_if(hops, [this](const NextHop& hop) { return hop.device >= devices_.count(); });
  if (hops.empty()) {
    return refuse(connection, RefusedAs::no_way, Status::no_route,
                  fmt::format("router {} knows no way to subnet {}:{}", own_uri, attempt.to.subnet.as, attempt.to.subnet.subnet));
  }
  attempt.candidates = turns_.next(std::move(hops));
  dial_next(connection, now);
}

ClaimFault ConnectionSetup::claim_fault(const RelayedConnection& connection) {
  const ConnectAttempt& attempt = *connection.attempt;
  if (devices_.is_own(attempt.to)) return {Status::refused, "that is this router itself: connect to what is behind it"};
  const RouterDevice& device = devices_[connection.legs[0].device];
  const ports::PeerIdentity peer = devices_.endpoint(connection.legs[0].device).peer(connection.legs[0].connection);
  if (std::string why = rights_.why_no_claim(peer, attempt.request, device); !why.empty()) return {Status::refused, std::move(why)};
  const DeviceRecord in{device.subnet, 0, 0, device.transit, device.wan, device.wan_to, uri_of(device), 0};
  const Claim claim{attempt.request.source, attempt.request.crossed, attempt.to.subnet};
  return check_claim(claim, in, records_.own().router(), records_.map());
}

// Counted each time, logged once a peer: one line tells an administrator of a wrong
// configuration or a stranger.
void ConnectionSetup::note_liar(const Leg& leg, std::string_view what) {
  counters_.add(Counter::routed_rejected);
  const std::string peer = devices_.peer_of(leg.device, leg.connection);
  if (!liars_logged_.first(peer)) return;
  log(LogLevel::warning, "routing: a connect request from {} is refused: {}", peer, what);
}

void ConnectionSetup::drop_hop(RelayedConnection& connection) {
  Leg& leg = connection.legs[1];
  if (leg.live) devices_.endpoint(leg.device).disconnect(leg.connection);
  relay_.drop(connection, leg);
  leg = Leg{};
}

void ConnectionSetup::dial_next(RelayedConnection& connection, Instant now) {
  ConnectAttempt& attempt = *connection.attempt;
  drop_hop(connection);
  while (!attempt.candidates.empty()) {
    NextHop hop = std::move(attempt.candidates.back());
    attempt.candidates.pop_back();
    if (!dial(connection, std::move(hop))) continue;
    connection.phase = ConnectionPhase::dialling;
    return await_hop(connection, now);
  }
  refuse(connection, refused_as(attempt.answer), attempt.answer, attempt.answer_reason);
}

bool ConnectionSetup::dial(RelayedConnection& connection, NextHop to) {
  ConnectAttempt& attempt = *connection.attempt;
  NextHop& hop = attempt.hop = std::move(to);
  Leg& leg = connection.legs[1];
  leg.device = hop.device;
  leg.is_end = hop.last;
  const std::string& scheme = devices_[hop.device].scheme;
  // What listens on the loopback of this host is for this host. Where the device itself is there, so are all others.
  const auto own = address_of(devices_[hop.device].subnet, devices_.uri(hop.device));
  const bool has_ip = scheme != "shm" && scheme != "eth";
  const bool is_on_loopback = own && (own->node.rfind("127.", 0) == 0 || own->node == "::1");
  if (hop.last && has_ip && !is_on_loopback && is_host_itself(attempt.to.node)) {
    note_answer(connection, Status::unreachable,
                fmt::format("{} is no address of subnet {}:{}", attempt.to.node, attempt.to.subnet.as, attempt.to.subnet.subnet));
    return false;
  }
  connection.hop_uri = hop.last ? native_uri(attempt.to, scheme) : hop.uri;
  cci::ConnectOptions how;
  how.role = ports::Role::hop;
  how.timeout = hop_dial_timeout;
  how.context = connection.ref(1);
  const auto dialled = devices_.endpoint(leg.device).connect(connection.hop_uri, how);
  if (!dialled) {
    note_answer(connection, hop.last ? Status::unreachable : Status::no_route, connection.hop_uri + ": " + dialled.error().message);
    return false;
  }
  leg.connection = *dialled;
  leg.live = true;
  return true;
}

// A router that knows a way whose end does not answer says more than one that is dead or knows
// none.
void ConnectionSetup::note_answer(RelayedConnection& connection, Status status, std::string reason) {
  ConnectAttempt& attempt = *connection.attempt;
  if (!attempt.answer_reason.empty() && status == Status::no_route && attempt.answer != Status::no_route) return;
  attempt.answer = status;
  attempt.answer_reason = reason.empty() ? std::string(to_string(status)) : std::move(reason);
}

// From now on the hop that is tried has hop_patience to answer before the initiator is told its
// name.
void ConnectionSetup::await_hop(const RelayedConnection& connection, Instant now) {
  connections_.set_timer(connection, std::min(after(now, hop_patience), connection.attempt->deadline));
}

void ConnectionSetup::on_timer(RelayedConnection& connection, Instant now) {
  const ConnectAttempt& attempt = *connection.attempt;
  const ConnectPending waits{connection.hop_uri, connection.phase == ConnectionPhase::requesting};
  if (now >= attempt.deadline) {
    return refuse(connection, RefusedAs::no_answer, Status::timed_out,
                  attempt.answer_reason.empty() ? words_of(waits) : attempt.answer_reason);
  }
  connections_.set_timer(connection, attempt.deadline);
  std::vector<std::byte> message;
  encode(waits, message);
  relay_.post(connection, 0, std::move(message));
}

void ConnectionSetup::on_connect_pending(RelayedConnection& connection, Bytes message) {
  if (!decode_connect_pending(message)) return ender_.reject(connection, "malformed connect_pending");
  connections_.set_timer(connection, connection.attempt->deadline);  // the hop itself is there
  relay_.pass_on(connection, 1, message);
}

uint32_t ConnectionSetup::payload_bytes_max(const Leg& leg) const {
  const uint32_t lower_bytes = devices_.endpoint(leg.device).max_send_bytes(leg.connection);
  return lower_bytes > message_header_bytes ? lower_bytes - static_cast<uint32_t>(message_header_bytes) : 0;
}

void ConnectionSetup::on_hop_connected(RelayedConnection& connection, const cci::Event& event, Instant now) {
  if (connection.phase != ConnectionPhase::dialling) return;
  const ConnectAttempt& attempt = *connection.attempt;
  Leg& leg = connection.legs[1];
  if (event.status != Status::success) {
    leg.live = false;
    // A router that is dead is no way; a destination that is dead is no answer.
    Status status = event.status;
    if (!attempt.hop.last && status != Status::version) status = Status::no_route;
    if (attempt.hop.last && status != Status::version && status != Status::refused) status = Status::unreachable;
    const std::string why = event.reason.empty() ? std::string(to_string(event.status)) : event.reason;
    note_answer(connection, status, connection.hop_uri + ": " + why);
    return dial_next(connection, now);
  }
  ConnectRequest request = attempt.request;
  request.crossed = static_cast<uint8_t>(attempt.request.crossed + 1);
  for (const Leg& each : connection.legs) request.max_send_bytes = std::min(request.max_send_bytes, payload_bytes_max(each));
  request.fragment_bytes = std::min(request.fragment_bytes, grants_.fragment_bytes());
  request.timeout = std::max<Duration>(attempt.deadline - now, std::chrono::milliseconds(1));
  connection.phase = ConnectionPhase::requesting;
  await_hop(connection, now);
  connection.attempt->requested_at = now;
  // End to end.
  for (const Leg& each : connection.legs) devices_.endpoint(each.device).set_send_timeout(each.connection, forever);
  std::vector<std::byte> message;
  encode(request, message);
  relay_.post(connection, 1, std::move(message));
}

void ConnectionSetup::on_hop_lost(RelayedConnection& connection, std::string_view why, Instant now) {
  const bool last = connection.attempt->hop.last;
  note_answer(connection, last ? Status::unreachable : Status::no_route, fmt::format("{}: {}", connection.hop_uri, why));
  dial_next(connection, now);
}

bool ConnectionSetup::on_reply(RelayedConnection& connection, Bytes message, Instant now) {
  auto reply = decode_connect_reply(message);
  if (!reply) {
    ender_.reject(connection, "malformed connect reply");
    return false;
  }
  // What comes back has the class of as many routers, and a higher class goes first.
  if (connection.legs[1].is_end && !reply->hops.empty()) {
    ender_.reject(connection, "an end that tells of routers beyond it");
    return false;
  }
  if (reply->status == Status::success) {
    open(connection, std::move(*reply), now);
    return true;
  }
  const bool last = connection.attempt->hop.last;
  if (reply->status == Status::no_route || (reply->status == Status::unreachable && !last)) {
    note_answer(connection, reply->status, std::move(reply->reason));
    dial_next(connection, now);
  } else {
    refuse(connection, RefusedAs::beyond, reply->status, reply->reason);
  }
  return false;
}

// A peer that has stood still is known by what it cannot choose: the destination by its address,
// wherever the router is, and the initiator by its address where it is next to us.
void ConnectionSetup::open(RelayedConnection& connection, ConnectReply reply, Instant now) {
  const std::unique_ptr<ConnectAttempt> attempt = std::move(connection.attempt);
  const std::array<Leg, 2>& legs = connection.legs;
  const RouterDevice& out = devices_[legs[1].device];
  const Duration round_trip = std::max(now - attempt->requested_at, ports::round_trip_min);
  connection.beyond = static_cast<uint8_t>(reply.hops.size());
  ports::HopInfo hop{out.scheme, connection.hop_uri, out.subnet.as, out.subnet.subnet, round_trip, out.rate_bits_per_s};
  if (const std::vector<ports::HopInfo> native = out.endpoint->hops(legs[1].connection); !native.empty()) {
    hop.peer = native.front().peer;
    hop.protection = native.front().protection;
  }
  reply.hops.insert(reply.hops.begin(), std::move(hop));
  reply.rate_bits_per_s = devices_[legs[0].device].rate_bits_per_s;
  reply.max_send_bytes =
      std::min({reply.max_send_bytes, attempt->request.max_send_bytes, payload_bytes_max(legs[0]), payload_bytes_max(legs[1])});
  reply.fragment_bytes = std::min({reply.fragment_bytes, attempt->request.fragment_bytes, grants_.fragment_bytes()});
  connection.phase = ConnectionPhase::open;
  connection.ends[1] = format_address(attempt->to);
  if (legs[0].is_end) connection.ends[0] = devices_.peer_of(legs[0].device, legs[0].connection);
  connections_.set_timer(connection, never);
  counters_.add(Counter::routed_connections);
  std::vector<std::byte> bytes;
  encode(reply, bytes);
  relay_.post(connection, 0, std::move(bytes));
}

void ConnectionSetup::refuse(RelayedConnection& connection, RefusedAs why, Status status, std::string_view reason) {
  counters_.add(Counter::connections_refused);
  if (traffic_ != nullptr) traffic_->add_refused(why);
  ConnectReply reply;
  reply.status = status;
  reply.reason = reason;
  std::vector<std::byte> message;
  encode(reply, message);
  if (connection.legs[0].live) relay_.post(connection, 0, std::move(message));
  ender_.close(connection, status, reason, 0);
}

}  // namespace ccixfer::routing
