// A routed connection at a router: two lower connections. Upstream hears of success only after downstream said so; the loss of
// either side closes the other with the reason.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "routing/router/router_impl.h"

namespace ccixfer::routing {
namespace {

uint32_t payload_bytes_max(uint32_t lower_bytes) {
  return lower_bytes > message_header_bytes ? lower_bytes - static_cast<uint32_t>(message_header_bytes) : 0;
}

bool setting_up_phase(PairPhase phase) { return phase != PairPhase::open && phase != PairPhase::closing; }

}  // namespace

void Router::Impl::on_timer(Pair& pair) {
  switch (pair.phase) {
    case PairPhase::accepting:
    case PairPhase::awaiting_request:
      return reject_peer(pair, "no connect request in time");
    case PairPhase::dialling:
    case PairPhase::requesting:
      if (now >= pair.deadline) {
        const std::string late = words_of({pair.hop_uri, pair.phase == PairPhase::requesting});
        return refuse(pair, Status::timed_out, pair.answer_reason.empty() ? late : pair.answer_reason);
      }
      pair.hop_late_at = never;
      set_timer(pair, pair.deadline);
      {
        std::vector<std::byte> message;
        encode(HopWaits{pair.hop_uri, pair.phase == PairPhase::requesting}, message);
        return post(pair, 0, std::move(message));
      }
    case PairPhase::closing:  // what could not be sent by now is lost
      for (Side& side : pair.side) {
        for (Outgoing& outgoing : side.out) forget(pair, outgoing);
        side.out.clear();
      }
      return try_finish(pair);
    default:
      return;
  }
}

// From now on the hop that is tried has hop_patience to answer before the initiator is told its name.
void Router::Impl::await_hop(Pair& pair) {
  pair.hop_late_at = after(now, hop_patience);
  set_timer(pair, std::min(pair.hop_late_at, pair.deadline));
}

void Router::Impl::on_hop_request(uint32_t device, cci::Event& event) {
  if (stop.wanted() || pairs.size() >= pairs_max || setting_up >= pairs_setting_up_max) {
    counters.add(Counter::connections_refused);
    static_cast<void>(
        endpoint(device).reject(event, stop.wanted() ? "this router is draining" : "this router has too many connections"));
    return;
  }
  Pair& pair = add_to(pairs);
  pair.side[0].device = device;
  pair.side[0].connection = event.connection;
  if (endpoint(device).accept(event, pair.ref(0).packed()) != Status::success) return pairs.remove(pair.index);
  pair.side[0].live = true;
  ++setting_up;
  set_timer(pair, after(now, hop_request_timeout));
}

void Router::Impl::on_pair_event(Pair& pair, uint8_t which, cci::Event event) {
  Side& side = pair.side[which];
  switch (event.type) {
    case cci::EventType::accept:
      if (pair.phase != PairPhase::accepting) return;
      if (event.status == Status::success) {
        pair.phase = PairPhase::awaiting_request;
      } else {
        side.live = false;
        close_pair(pair, event.status, event.reason, which);
      }
      return;
    case cci::EventType::connect:
      return on_downstream_connected(pair, event);
    case cci::EventType::send:
      // One of our own messages, a silent one, failed though the connection lives: an end that takes none within the send timeout
      // would wait for ever for what it says. Of one that is gone, what was in flight fails first: the event behind it knows why.
      if (!endpoint(side.device).send_timeout(event.connection)) return;
      if (event.status == Status::receiver_not_ready || event.status == Status::timed_out) {
        close_pair(pair, event.status, "an end takes no messages", nobody);
      }
      return;
    case cci::EventType::receive:
      if (side.connection == event.connection && side.live) on_routing_message(pair, which, std::move(event));
      return;
    case cci::EventType::mailbox_ready: {
      if (side.connection != event.connection || pair.phase != PairPhase::open) return;
      std::vector<std::byte> message;
      encode(MailboxHint{event.mailbox, event.ending().detail}, message);
      return post(pair, static_cast<uint8_t>(1 - which), std::move(message));
    }
    case cci::EventType::keepalive_timed_out:
      if (side.connection != event.connection || pair.phase != PairPhase::open) return;
      return close_pair(pair, Status::disconnected, "a hop is lost: " + side_name(pair, which) + ": it does not answer", nobody);
    case cci::EventType::disconnected:
      if (side.connection != event.connection) return;
      side.live = false;
      if (which == 1 && pair.phase == PairPhase::requesting) {
        note_answer(pair, pair.hop.last ? Status::unreachable : Status::no_route, pair.hop_uri + ": " + event.reason);
        return dial_next(pair);
      }
      return close_pair(pair, Status::disconnected,
                        (which == 1 && pair.side[1].is_end ? "the peer is lost: " : "a hop is lost: ") + side_name(pair, which) +
                            ": " + event.reason,
                        which);
    default:
      return;
  }
}

std::string Router::Impl::side_name(const Pair& pair, uint8_t which) const {
  return which == 1 ? pair.hop_uri : "the side of the initiator";
}

void Router::Impl::on_connect_request(Pair& pair, Bytes message) {
  auto request = decode_connect_request(message);
  const auto to = request ? parse_address(request->destination) : Result<Address>(fail(ErrorKind::usage, ""));
  if (!request || !to) return reject_peer(pair, "malformed connect request");
  pair.request = std::move(*request);
  pair.to = *to;
  pair.side[0].is_end = pair.request.crossed == 0;
  pair.deadline = after(now, pair.request.timeout);
  set_timer(pair, pair.deadline);
  if (stop.wanted()) return refuse(pair, Status::no_route, draining_reason(pair.side[0].device));
  // The hop limit ends what a map in change may let circle.
  if (pair.request.crossed >= hops_max) return refuse(pair, Status::no_route, "more than eight routers");
  if (const ClaimFault fault = claim_fault(pair); fault.status != Status::success) {
    note_liar(pair.side[0], fault.reason);
    return refuse(pair, fault.status, fmt::format("router {}: {}", endpoint(pair.side[0].device).uri(), fault.reason));
  }
  const SubnetId in = devices[pair.side[0].device].subnet;
  auto hops = records.next_hops(pair.request.source, in, pair.to.subnet);
  if (hops.empty()) {
    return refuse(pair, Status::no_route,
                  fmt::format("router {} knows no way to subnet {}:{}", endpoint(pair.side[0].device).uri(), pair.to.subnet.as,
                              pair.to.subnet.subnet));
  }
  // Equals take turns, from one by chance on: parallel routers share the load, and lanes that come together are spread.
  if (!next_equal) next_equal = entropy.next_u64();
  ++*next_equal;
  for (size_t i = 0, equals = 1; i < hops.size(); i += equals, equals = 1) {
    while (i + equals < hops.size() && hops[i + equals].rank == hops[i].rank) ++equals;
    const auto group = hops.begin() + static_cast<std::ptrdiff_t>(i);
    const auto first = static_cast<std::ptrdiff_t>(*next_equal % equals);
    std::rotate(group, group + first, group + static_cast<std::ptrdiff_t>(equals));
  }
  if (hops.size() > candidates_tried_max) hops.resize(candidates_tried_max);
  std::reverse(hops.begin(), hops.end());
  pair.candidates = std::move(hops);
  dial_next(pair);
}

ClaimFault Router::Impl::claim_fault(const Pair& pair) {
  if (devices.is_own(pair.to)) return {Status::refused, "that is this router itself: connect to what is behind it"};
  const RouterDevice& device = devices[pair.side[0].device];
  const DeviceRecord in{device.subnet, 0, 0, device.transit, device.wan, device.wan_to, device.endpoint->uri(), 0};
  return check_claim({pair.request.source, pair.request.crossed, pair.to.subnet}, in, records.own().router(), records.map());
}

// Counted each time, logged once for whoever it is: one line tells an administrator of a wrong configuration or a stranger.
void Router::Impl::note_liar(const Side& side, std::string_view what) {
  counters.add(Counter::routed_rejected);
  const std::string peer = devices.peer_of(side.device, side.connection);
  if (liars_logged.size() >= liars_logged_max || !liars_logged.insert(peer).second) return;
  log(LogLevel::warning, "routing: a connect request from {} is refused: {}", peer, what);
}

void Router::Impl::drop_downstream(Pair& pair) {
  Side& side = pair.side[1];
  if (side.live) endpoint(side.device).disconnect(side.connection);
  for (Outgoing& outgoing : side.out) forget(pair, outgoing);
  side = Side{};
}

void Router::Impl::dial_next(Pair& pair) {
  drop_downstream(pair);
  while (!pair.candidates.empty()) {
    pair.hop = std::move(pair.candidates.back());
    pair.candidates.pop_back();
    Side& side = pair.side[1];
    side.device = pair.hop.device;
    side.is_end = pair.hop.last;
    pair.hop_uri = pair.hop.last ? native_uri(pair.to, scheme(pair.hop.device)) : pair.hop.uri;
    cci::ConnectOptions how;
    how.role = ports::Role::hop;
    how.timeout = hop_dial_timeout;
    how.context = pair.ref(1).packed();
    const auto connection = endpoint(side.device).connect(pair.hop_uri, how);
    if (connection) {
      side.connection = *connection;
      side.live = true;
      pair.phase = PairPhase::dialling;
      await_hop(pair);
      return;
    }
    note_answer(pair, pair.hop.last ? Status::unreachable : Status::no_route, pair.hop_uri + ": " + connection.error().message);
  }
  refuse(pair, pair.answer, pair.answer_reason);
}

// A router that knows a way whose end does not answer says more than one that is dead or knows none.
void Router::Impl::note_answer(Pair& pair, Status status, std::string reason) {
  if (!pair.answer_reason.empty() && status == Status::no_route && pair.answer != Status::no_route) return;
  pair.answer = status;
  pair.answer_reason = reason.empty() ? std::string(to_string(status)) : std::move(reason);
}

void Router::Impl::on_downstream_connected(Pair& pair, const cci::Event& event) {
  if (pair.phase != PairPhase::dialling) return;
  Side& side = pair.side[1];
  if (event.status != Status::success) {
    side.live = false;
    // A router that is dead is no way; a destination that is dead is no answer.
    Status status = event.status;
    if (!pair.hop.last && status != Status::version) status = Status::no_route;
    if (pair.hop.last && status != Status::version && status != Status::refused) status = Status::unreachable;
    note_answer(pair, status, pair.hop_uri + ": " + (event.reason.empty() ? std::string(to_string(event.status)) : event.reason));
    return dial_next(pair);
  }
  ConnectRequest request = pair.request;
  request.crossed = static_cast<uint8_t>(pair.request.crossed + 1);
  for (const Side& each : pair.side) {
    request.max_send_bytes =
        std::min(request.max_send_bytes, payload_bytes_max(endpoint(each.device).max_send_bytes(each.connection)));
  }
  request.fragment_bytes = std::min(request.fragment_bytes, pool.fragment_bytes());
  if (pair.deadline != never) request.timeout = std::max<Duration>(pair.deadline - now, std::chrono::milliseconds(1));
  pair.phase = PairPhase::requesting;
  await_hop(pair);
  pair.requested_at = now;
  for (const Side& each : pair.side) endpoint(each.device).set_send_timeout(each.connection, forever);  // that is end to end
  std::vector<std::byte> message;
  encode(request, message);
  post(pair, 1, std::move(message));
}

void Router::Impl::on_connect_reply(Pair& pair, Bytes message) {
  auto reply = decode_connect_reply(message);
  if (!reply) return reject_peer(pair, "malformed connect reply");
  if (reply->status != Status::success) {
    const bool another = reply->status == Status::no_route || (reply->status == Status::unreachable && !pair.hop.last);
    if (!another) return refuse(pair, reply->status, reply->reason);
    note_answer(pair, reply->status, reply->reason);
    return dial_next(pair);
  }
  const auto beyond = static_cast<uint8_t>(reply->hops.size());
  const RouterDevice& out = devices[pair.side[1].device];
  const Duration round_trip = std::max(now - pair.requested_at, ports::round_trip_min);
  reply->hops.insert(reply->hops.begin(),
                     {out.scheme, pair.hop_uri, out.subnet.as, out.subnet.subnet, round_trip, out.rate_bits_per_s});
  reply->rate_bits_per_s = devices[pair.side[0].device].rate_bits_per_s;
  reply->max_send_bytes = std::min({reply->max_send_bytes, pair.request.max_send_bytes,
                                    payload_bytes_max(endpoint(pair.side[0].device).max_send_bytes(pair.side[0].connection)),
                                    payload_bytes_max(endpoint(pair.side[1].device).max_send_bytes(pair.side[1].connection))});
  reply->fragment_bytes = std::min({reply->fragment_bytes, pair.request.fragment_bytes, pool.fragment_bytes()});
  pair.phase = PairPhase::open;
  pair.beyond = beyond;
  name_ends(pair);
  --setting_up;
  pair.request.data.clear();
  pair.candidates.clear();
  set_timer(pair, never);
  counters.add(Counter::routed_connections);
  std::vector<std::byte> bytes;
  encode(*reply, bytes);
  post(pair, 0, std::move(bytes));
}

// Ends a connect that did not succeed: upstream gets the answer.
void Router::Impl::refuse(Pair& pair, Status status, std::string_view reason) {
  counters.add(Counter::connections_refused);
  ConnectReply reply;
  reply.status = status;
  reply.reason = reason;
  std::vector<std::byte> message;
  encode(reply, message);
  if (pair.side[0].live) post(pair, 0, std::move(message));
  close_pair(pair, status, reason, 0);
}

void Router::Impl::reject_peer(Pair& pair, std::string_view why) {
  counters.add(Counter::routed_rejected);
  log(LogLevel::warning, "routing: connection closed: {}", why);
  close_pair(pair, Status::error, why, nobody);
}

// `told_by`: the side that knows already (it said so, or is gone), or nobody.
void Router::Impl::close_pair(Pair& pair, Status status, std::string_view reason, int told_by) {
  if (pair.phase == PairPhase::closing) return activate(pair);
  const bool was_setting_up = setting_up_phase(pair.phase);
  if (was_setting_up) --setting_up;
  if (was_setting_up && pair.phase != PairPhase::requesting) drop_downstream(pair);  // nobody there knows of us yet
  if (pair.phase == PairPhase::open)
    counters.add(Counter::connections_lost, told_by >= 0 && pair.side[static_cast<size_t>(told_by)].live ? 0 : 1);
  pair.phase = PairPhase::closing;
  set_timer(pair, after(now, stop.wanted() ? drain_flush_timeout : close_flush_timeout));
  for (uint8_t which = 0; which < 2; ++which) {
    if (told_by == which || !pair.side[which].live) continue;
    std::vector<std::byte> message;
    encode(Bye{status, std::string(reason)}, message);
    post(pair, which, std::move(message));
  }
  drop_fragments(pair);
  activate(pair);
}

// What is queued for a living side goes out first; then its connection is closed, orderly. Called from push_active and timers.
void Router::Impl::try_finish(Pair& pair) {
  bool waits = false;
  for (Side& side : pair.side) {
    if (!side.live) {
      for (Outgoing& outgoing : side.out) forget(pair, outgoing);
      side.out.clear();
      continue;
    }
    if (!side.out.empty()) {
      waits = true;
      continue;
    }
    endpoint(side.device).disconnect(side.connection);
    side.live = false;
  }
  if (waits) {
    if (!pair.active) activate(pair);
    return;
  }
  set_timer(pair, never);
  pairs.remove(pair.index);
}

}  // namespace ccixfer::routing
