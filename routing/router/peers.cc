// Links to other routers: dialled as configured, greeted, one kept of two, dialled again when lost.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "routing/router/router_impl.h"

namespace ccixfer::routing {

void Router::Impl::dial_targets() {
  if (draining) return;
  for (Target& target : targets) {
    if (target.link != 0 || target.self || now < target.next_dial) continue;
    // The other side may have dialled us meanwhile.
    links.for_each([&](Link& link) {
      if (link.phase == LinkPhase::open && link.device == target.device && link.router == target.router && target.router != 0 &&
          link.node == target.node) {
        target.link = link.ref().packed();
        target.tried = true;
      }
    });
    if (target.link != 0) continue;
    Link& link = add_to(links);
    link.device = target.device;
    link.dialled = true;
    link.peer = link.peer_uri = target.uri;
    cci::ConnectOptions how;
    how.role = ports::Role::router;
    how.timeout = hop_dial_timeout;
    how.context = link.ref().packed();
    const auto connection = endpoint(target.device).connect(target.uri, how);
    target.next_dial = after(now, target.backoff);
    target.backoff = std::min<Duration>(target.backoff * 2, redial_max);
    if (!connection) {
      log(LogLevel::warning, "routing: peer {}: {}", target.uri, connection.error().message);
      target.tried = true;
      links.remove(link.index);
      continue;
    }
    link.connection = *connection;
    target.link = link.ref().packed();
  }
}

void Router::Impl::on_link_request(uint32_t device, cci::Event& event) {
  if (draining || links.size() >= links_max) {
    counters.add(Counter::connections_refused);
    static_cast<void>(endpoint(device).reject(event, draining ? "draining" : "too many peers"));
    return;
  }
  Link& link = add_to(links);
  link.device = device;
  link.phase = LinkPhase::accepting;
  link.connection = event.connection;
  if (endpoint(device).accept(event, link.ref().packed()) != Status::success) links.remove(link.index);
}

void Router::Impl::on_link_event(Link& link, cci::Event& event) {
  switch (event.type) {
    case cci::EventType::connect:
    case cci::EventType::accept:
      if (event.status != Status::success) return end_link(link, false, event.reason);
      if (!link.dialled) {
        link.peer = peer_of(link.device, link.connection);
        link.node = node_of(link.device, link.connection);
      }
      return greet(link);
    case cci::EventType::disconnected:
      return end_link(link, false, event.reason);
    case cci::EventType::keepalive_timed_out:
      return end_link(link, true, "no sign of life");
    case cci::EventType::receive:
      break;
    default:
      return;
  }
  const auto kind = kind_of(event.data());
  if (kind == MessageKind::router_hello && link.phase == LinkPhase::greeting) return on_hello(link, event.data());
  if (kind == MessageKind::record && link.phase == LinkPhase::open) {
    for (Target& target : targets) {
      if (target.link == link.ref().packed()) target.tried = true;
    }
    return on_record(link, record_of(event.data()));
  }
  if (kind == MessageKind::keepalive && link.phase == LinkPhase::open) {
    std::vector<std::byte> answer;
    encode_plain(MessageKind::keepalive_ack, answer);
    return post(link, std::move(answer));
  }
  if (kind == MessageKind::keepalive_ack && link.phase == LinkPhase::open) return on_latency_answer(link);
  counters.add(Counter::routed_rejected);
  end_link(link, true, "a message out of order");
}

void Router::Impl::greet(Link& link) {
  link.phase = LinkPhase::greeting;
  link.deadline = after(now, hop_request_timeout);
  std::vector<std::byte> message;
  encode(RouterHello{id, devices[link.device].subnet, endpoint(link.device).uri()}, message);
  post(link, std::move(message));
}

// Why this peer may not be one; "": it may. Source: routing §IV.C.3: between AS only over the WAN.
std::string Router::Impl::refusal_of(const Link& link, SubnetId peer) const {
  const RouterDevice& device = devices[link.device];
  const auto banned = cut_off.find(link.peer);
  if (banned != cut_off.end() && now < banned->second) return "cut off for bad records";
  if (peer.as == device.subnet.as) {
    return peer == device.subnet ? std::string()
                                 : fmt::format("it says that this is subnet {}:{}, we that it is {}:{}", peer.as, peer.subnet,
                                               device.subnet.as, device.subnet.subnet);
  }
  if (!device.wan)
    return fmt::format("it is of AS {}, and device {} does not lead out of AS {}", peer.as, device.name, device.subnet.as);
  if (!device.wan_to.empty() && std::find(device.wan_to.begin(), device.wan_to.end(), peer.as) == device.wan_to.end())
    return fmt::format("it is of AS {}, and wan_to of device {} does not name it", peer.as, device.name);
  return {};
}

// Of a link that we dialled: the address that the configuration gives, or, where that is a name, what is there says.
std::string Router::Impl::node_behind(std::string_view dialled, std::string_view said) {
  const auto known = address_of({}, dialled);
  const bool is_name =
      !known || (known->node.find(':') == std::string::npos && known->node.find_first_not_of("0123456789.") != std::string::npos);
  const auto address = is_name ? address_of({}, said) : known;
  return address ? address->node : std::string();
}

// Of two links between the same two devices the one that the lower URI dialled is kept; of two by the same dialler, the newer.
void Router::Impl::on_hello(Link& link, Bytes message) {
  const auto hello = decode_router_hello(message);
  if (!hello) {
    counters.add(Counter::routed_rejected);
    return end_link(link, true, "malformed hello");
  }
  const uint64_t me = link.ref().packed();
  if (hello->router == id) {
    for (Target& target : targets) {
      if (target.link == me) target.self = target.tried = true;
    }
    log(LogLevel::warning, "routing: peer {} is this router itself", link.peer_uri);
    return end_link(link, true, "that is myself");
  }
  link.peer_uri = hello->uri;
  if (link.dialled) link.node = node_behind(link.peer, hello->uri);
  if (const std::string refusal = refusal_of(link, hello->subnet); !refusal.empty()) {
    counters.add(Counter::records_rejected);
    log(LogLevel::warning, "routing: peer {}: {}", hello->uri, refusal);
    return end_link(link, true, refusal);
  }
  link.router = hello->router;
  link.as = hello->subnet.as;
  link.external = link.as != devices[link.device].subnet.as;
  link.deadline = never;
  endpoint(link.device).set_keepalive(link.connection, link_keepalive);
  link.phase = LinkPhase::open;
  for (Target& target : targets) {
    if (target.link == me) {
      target.router = hello->router;
      target.node = link.node;
      target.opened_at = now;
    }
  }
  Link* other = nullptr;
  links.for_each([&](Link& known) {
    if (&known != &link && known.phase == LinkPhase::open && known.device == link.device && known.router == link.router &&
        known.node == link.node)  // else one of them says that it is the other
      other = &known;
  });
  Link* loser = nullptr;
  if (other != nullptr) {
    const bool ours_wins = endpoint(link.device).uri() < hello->uri;
    loser = other->dialled == link.dialled || link.dialled == ours_wins ? other : &link;
    Link* winner = loser == other ? &link : other;
    for (Target& target : targets) {
      if (target.link == loser->ref().packed()) {
        target.link = winner->ref().packed();
        target.tried = true;
      }
    }
  }
  // Everything that is known goes out even on a link that will lose: the peer may still count on it.
  send_records(link);
  if (loser != nullptr) end_link(*loser, true, "a second link between the same devices");
}

// `tell`: the connection is there, and the peer hears of its end.
void Router::Impl::end_link(Link& link, bool tell, std::string_view why) {
  if (tell) {
    flush(link);
    endpoint(link.device).disconnect(link.connection);
  }
  const uint64_t me = link.ref().packed();
  for (Target& target : targets) {
    if (target.link != me) continue;
    target.link = 0;
    target.tried = true;
    if (target.opened_at != never && now - target.opened_at >= redial_max) target.backoff = redial_first;
    target.opened_at = never;
    target.next_dial = std::max(target.next_dial, after(now, redial_first));
    log(LogLevel::info, "routing: link to {} ended: {}", target.uri, why);
  }
  const bool was_open = link.phase == LinkPhase::open;
  const uint64_t router = link.router;
  links.remove(link.index);
  if (was_open) suspect(router);
}

void Router::Impl::post(Link& link, std::vector<std::byte> message) {
  link.out.push_back(std::move(message));
  flush(link);
}

bool Router::Impl::flush(Link& link) {
  while (!link.out.empty()) {
    const Status status = endpoint(link.device).send(link.connection, Bytes(link.out.front()), 0, true);
    if (status == Status::no_buffers || status == Status::again) {
      // A peer that takes nothing: what it misses comes again with the next refresh.
      if (link.out.size() > link_out_max) link.out.drop_front();
      return false;
    }
    link.out.drop_front();
  }
  return true;
}

void Router::Impl::on_link_timers() {
  links.for_each([&](Link& link) {
    if (link.deadline <= now) {
      counters.add(Counter::routed_rejected);
      end_link(link, true, "no hello in time");
    }
  });
}

}  // namespace ccixfer::routing
