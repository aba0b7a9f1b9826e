// Connections: whom to dial, through which router, and the end-to-end handshake.
#include <algorithm>
#include <utility>

#include "core/base/units.h"
#include "routing/transport/routed_impl.h"

namespace ccixfer::routing {
namespace {

constexpr std::string_view routed_prefix = "cci://";

uint32_t payload_bytes_max(uint32_t lower_bytes) {
  return lower_bytes > message_header_bytes ? lower_bytes - static_cast<uint32_t>(message_header_bytes) : 0;
}

}  // namespace

std::string RoutedTransport::scheme() const {
  const auto scheme_of = [](const std::string& uri) { return uri.substr(0, uri.find("://")); };
  if (!options_.scheme.empty()) return options_.scheme;
  if (const std::string own = lower_->uri(); !own.empty()) return scheme_of(own);
  return options_.routers.empty() ? "tcp" : scheme_of(options_.routers.front());
}

Result<ports::ConnectionId> RoutedTransport::dial(const ports::DialRequest& request) {
  if (request.uri.substr(0, routed_prefix.size()) != routed_prefix) return dial_direct(request, std::string(request.uri));
  auto address = parse_address(request.uri);
  if (!address) return tl::unexpected<Error>(address.error());
  if (request.uri.size() > destination_bytes_max) return fail(ErrorKind::usage, "the address is too long");
  // A peer on our own subnet is reached with every router down (routing §V.A).
  if (address->subnet == options_.subnet) return dial_direct(request, native_uri(*address, scheme()));
  RoutedConnection* slot = make_slot(Mode::routed, Phase::starting);
  if (slot == nullptr) return fail(ErrorKind::network, "too many connections");
  slot->attribute = request.attribute;
  slot->attempts = std::make_unique<RouterAttempts>(request);
  activate(*slot);
  return slot->id;
}

Result<ports::ConnectionId> RoutedTransport::dial_direct(const ports::DialRequest& request, const std::string& native) {
  RoutedConnection* slot = make_slot(Mode::direct, Phase::dialling);
  if (slot == nullptr) return fail(ErrorKind::network, "too many connections");
  const auto lower = lower_->connect(native, {request.role, request.attribute, request.data, request.timeout, slot->id.packed()});
  if (!lower) {
    free_slot(*slot);
    return tl::unexpected<Error>(lower.error());
  }
  attach(*slot, *lower);
  work_ = true;
  return slot->id;
}

void RoutedTransport::start(RoutedConnection& slot) {
  if (options_.routers.empty()) return fail_dial(slot, Status::no_route, "no router is configured on this subnet");
  std::vector<std::string> routers = options_.routers;
  // Clients begin with any of them, by chance (routing §VI); the next connection with the next one, so that the lanes of one
  // session are spread too. The last of the list is dialled first.
  if (!next_router_) next_router_ = entropy_.next_u64() % routers.size();
  std::rotate(routers.begin(), routers.begin() + static_cast<std::ptrdiff_t>(*next_router_), routers.end());
  next_router_ = (*next_router_ + 1) % routers.size();
  slot.attempts->begin(std::move(routers), now_);
  set_timer(slot, slot.attempts->deadline());
  dial_next(slot);
}

void RoutedTransport::dial_next(RoutedConnection& slot) {
  RouterAttempts& attempts = *slot.attempts;
  while (attempts.next()) {
    const auto lower = lower_->connect(
        attempts.router(), {ports::Role::hop, ports::Attribute::reliable_ordered, {}, attempts.patience(now_), slot.id.packed()});
    if (lower) {
      attach(slot, *lower);
      slot.phase = Phase::dialling;
      return;
    }
    attempts.note_unreachable(lower.error().message);
  }
  fail_dial(slot, attempts.answer().status, attempts.answer().reason);
}

void RoutedTransport::fail_dial(RoutedConnection& slot, Status status, std::string_view reason) {
  if (slot.hop.is_live()) lower_->disconnect(slot.hop.connection());
  sink_->on_connected(slot.id, status, {}, reason);
  free_slot(slot);
}

void RoutedTransport::on_lower_connected(RoutedConnection& slot, const cci::Event& event) {
  if (slot.phase != Phase::dialling) return;
  if (slot.mode == Mode::direct) {
    if (event.status != Status::success) {
      slot.hop.lose();
      return fail_dial(slot, event.status, event.reason);
    }
    return direct_opened(slot);
  }
  if (event.status != Status::success) {
    detach(slot);
    if (event.status == Status::version) {
      slot.attempts->note_another_version(event.reason);
    } else {
      slot.attempts->note_unreachable(event.reason);
    }
    return dial_next(slot);
  }
  ConnectRequest request = slot.attempts->ask(now_);
  request.source = options_.subnet;
  request.max_send_bytes = payload_bytes_max(lower_->max_send_bytes(slot.hop.connection()));
  request.fragment_bytes = options_.fragment_bytes_max;
  std::vector<std::byte> message;
  encode(request, message);
  slot.phase = Phase::requesting;
  post(slot, std::move(message));
}

void RoutedTransport::on_connect_reply(RoutedConnection& slot, Bytes message) {
  const auto reply = decode_connect_reply(message);
  if (!reply) {
    counters_.add(Counter::routed_rejected);
    slot.attempts->note(Told::the_end, Status::error, "router " + slot.attempts->router() + ": malformed reply");
    return fail_dial(slot, slot.attempts->answer().status, slot.attempts->answer().reason);
  }
  if (reply->status != Status::success) {
    if (!slot.attempts->note_reply(*reply)) {
      return fail_dial(slot, slot.attempts->answer().status, slot.attempts->answer().reason);
    }
    lower_->disconnect(slot.hop.connection());
    detach(slot);
    return dial_next(slot);
  }
  slot.limits.max_send_bytes = std::min(reply->max_send_bytes, payload_bytes_max(lower_->max_send_bytes(slot.hop.connection())));
  slot.fragment_bytes = std::min(reply->fragment_bytes, options_.fragment_bytes_max);
  slot.hops = {{scheme(), slot.attempts->router(), options_.subnet.as, options_.subnet.subnet, slot.attempts->round_trip(now_),
                reply->rate_bits_per_s}};
  slot.hops.insert(slot.hops.end(), reply->hops.begin(), reply->hops.end());
  post_plain(slot, MessageKind::connect_ack);
  opened(slot);
  sink_->on_connected(slot.id, Status::success, slot.limits, {});
}

void RoutedTransport::opened(RoutedConnection& slot) {
  const bool unreliable = slot.attribute == ports::Attribute::unreliable;
  slot.messages.open(messages_in_flight_max, unreliable);
  slot.incoming.open(messages_in_flight_max, unreliable);
  slot.phase = Phase::open;
  slot.attempts.reset();
  slot.deadline = never;
  slot.far_end.heard(now_);
  if (slot.far_end.is_asked()) watch_hops(slot);
  keep_alive(slot);
}

// A direct connection is open as soon as the lower endpoint says so, or its first message comes.
void RoutedTransport::direct_opened(RoutedConnection& slot) {
  const bool dialled = slot.phase == Phase::dialling;
  slot.phase = Phase::open;
  slot.limits = {lower_->max_send_bytes(slot.hop.connection())};
  if (dialled) {
    sink_->on_connected(slot.id, Status::success, slot.limits, {});
  } else {
    sink_->on_accepted(slot.id, Status::success, slot.limits);
  }
}

// --- The accepting side ---

void RoutedTransport::on_lower_request(cci::Event event) {
  const bool is_hop = event.role == ports::Role::hop;
  if (is_hop && pending_ >= options_.pending_requests_max) return backlog_.push_back(std::move(event));
  RoutedConnection* slot = make_slot(is_hop ? Mode::routed : Mode::direct, Phase::offered);
  if (slot == nullptr) {
    counters_.add(Counter::connections_refused);
    static_cast<void>(lower_->reject(event, "too many connections"));
    return;
  }
  if (!is_hop) {
    slot->request = std::move(event);
    sink_->on_connect_request(slot->id, slot->request.role, slot->request.attribute, slot->request.data());
    return;
  }
  slot->phase = Phase::hop_accepting;
  if (lower_->accept(event, slot->id.packed()) != Status::success) return free_slot(*slot);
  attach(*slot, event.connection);
  ++pending_;
}

void RoutedTransport::take_backlog() {
  while (!backlog_.empty() && pending_ < options_.pending_requests_max) {
    cci::Event event = backlog_.pop_front();
    on_lower_request(std::move(event));
  }
}

void RoutedTransport::on_lower_accepted(RoutedConnection& slot, const cci::Event& event) {
  if (slot.mode == Mode::direct) {
    if (slot.phase != Phase::accepting) return;
    if (event.status == Status::success) return direct_opened(slot);
    sink_->on_accepted(slot.id, event.status, {});
    return free_slot(slot);
  }
  if (slot.phase != Phase::hop_accepting) return;
  if (event.status != Status::success) {
    --pending_;
    return free_slot(slot);
  }
  slot.phase = Phase::awaiting_request;
  slot.deadline = after(now_, request_timeout);
  set_timer(slot, slot.deadline);
}

void RoutedTransport::on_connect_request(RoutedConnection& slot, Bytes message) {
  auto request = decode_connect_request(message);
  if (!request) return reject_peer(slot, "malformed connect request");
  const auto to = parse_address(request->destination);
  if (!to || to->subnet != options_.subnet || request->crossed > hops_max) return reject_peer(slot, "not for this endpoint");
  slot.attribute = request->attribute;
  slot.limits.max_send_bytes = std::min(request->max_send_bytes, payload_bytes_max(lower_->max_send_bytes(slot.hop.connection())));
  slot.fragment_bytes = std::min(request->fragment_bytes, options_.fragment_bytes_max);
  slot.phase = Phase::offered;
  slot.deadline = never;
  set_timer(slot, never);
  sink_->on_connect_request(slot.id, request->role, slot.attribute, request->data);
}

Status RoutedTransport::accept(ports::ConnectionId request) {
  RoutedConnection* slot = find(request);
  if (slot == nullptr || slot->phase != Phase::offered) return Status::not_found;
  slot->phase = Phase::accepting;
  work_ = true;
  if (slot->mode == Mode::direct) {
    cci::Event event = std::move(slot->request);
    const Status status = lower_->accept(event, slot->id.packed());
    if (status == Status::success) {
      attach(*slot, event.connection);
    } else {
      free_slot(*slot);
    }
    return status;
  }
  --pending_;
  ConnectReply reply;
  reply.status = Status::success;
  reply.max_send_bytes = slot->limits.max_send_bytes;
  reply.fragment_bytes = slot->fragment_bytes;
  std::vector<std::byte> message;
  encode(reply, message);
  post(*slot, std::move(message));
  slot->accept_unstamped = true;
  activate(*slot);
  return Status::success;
}

Status RoutedTransport::reject(ports::ConnectionId request, std::string_view reason) {
  RoutedConnection* slot = find(request);
  if (slot == nullptr || slot->phase != Phase::offered) return Status::not_found;
  work_ = true;
  if (slot->mode == Mode::direct) {
    cci::Event event = std::move(slot->request);
    const Status status = lower_->reject(event, reason);
    free_slot(*slot);
    return status;
  }
  ConnectReply reply;
  reply.status = Status::refused;
  reply.reason = reason;
  std::vector<std::byte> message;
  encode(reply, message);
  post(*slot, std::move(message));
  close_slot(*slot, Status::refused, reason, false);
  slot->tell_sink = false;
  return Status::success;
}

void RoutedTransport::on_connect_ack(RoutedConnection& slot) {
  opened(slot);
  sink_->on_accepted(slot.id, Status::success, slot.limits);
  if (slot.draining) sink_->on_draining(slot.id);
}

// --- Time ---

void RoutedTransport::on_timer(RoutedConnection& slot) {
  switch (slot.phase) {
    case Phase::starting:
    case Phase::dialling:
    case Phase::requesting:
      return fail_dial(slot, Status::timed_out, slot.attempts->why_late());
    case Phase::awaiting_request:
      return reject_peer(slot, "no connect request in time");
    case Phase::accepting:
      return close_slot(slot, Status::timed_out, "no acknowledgement in time", true);
    case Phase::open:
      if (slot.left && slot.deadline <= now_) return close_slot(slot, Status::disconnected, "the peer disconnected", true);
      slot.messages.timer(now_, [&](const auto& owner, Status status) { message_ended(slot, owner, status); });
      release_waiting(slot);
      activate(slot);
      return keep_alive(slot);
    default:
      return;
  }
}

// Our application watches the far end: no hop of the chain, the first included, ends the connection for its silence.
void RoutedTransport::watch_hops(RoutedConnection& slot) {
  lower_->set_keepalive(slot.hop.connection(), Duration::zero());
  post_plain(slot, MessageKind::end_to_end_keepalive);
  activate(slot);
}

void RoutedTransport::keep_alive(RoutedConnection& slot) {
  const FarEndWatch::Look look = slot.far_end.look(now_, options_.keepalive);
  switch (look.verdict) {
    case FarEndWatch::Verdict::quiet:
      break;
    case FarEndWatch::Verdict::probe:
      post_plain(slot, MessageKind::keepalive);
      break;
    case FarEndWatch::Verdict::tell:
      if (!slot.left) sink_->on_keepalive_timeout(slot.id);
      break;
    case FarEndWatch::Verdict::lost:
      return close_slot(slot, Status::timed_out, "the far end does not answer", true);
  }
  set_timer(slot, std::min({look.next, slot.messages.deadline(), slot.left ? slot.deadline : never}));
}

}  // namespace ccixfer::routing
