#include "routing/router/peer_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "routing/router/latency.h"
#include "routing/transport/messages.h"

namespace ccixfer::routing {

PeerLinks::PeerLinks(Devices& devices, RecordStore& records, const PeerRights& rights, const AdmissionObserver& observer,
                     Counters& counters, Traffic* traffic)
    : devices_(devices), records_(records), rights_(rights), observer_(observer), counters_(counters), traffic_(traffic) {}

void PeerLinks::turn(Instant now) {
  dial(now);
  links_.for_each([&](Link& link) {
    if (link.deadline > now) return;
    counters_.add(Counter::routed_rejected);
    tell_observer(link, "no hello in time");
    end(link, true, "no hello in time", now);
  });
}

// The other side may have dialled us meanwhile.
bool PeerLinks::adopt(size_t peer) {
  const ConfiguredPeer& wanted = plan_[peer];
  uint64_t found = 0;
  links_.for_each([&](const Link& link) {
    if (link.phase == Phase::open && link.device == wanted.device && link.router == wanted.router && wanted.router != 0 &&
        link.node == wanted.node)
      found = link.ref();
  });
  if (found == 0) return false;
  plan_.has_link(peer, found);
  plan_.is_tried(peer);
  return true;
}

void PeerLinks::dial(Instant now) {
  if (draining_) return;
  for (const size_t peer : plan_.due(now)) {
    if (adopt(peer)) continue;
    const ConfiguredPeer& wanted = plan_[peer];
    Link& link = add_to(links_);
    link.device = wanted.device;
    link.dialled = true;
    link.peer_uri = wanted.uri;
    cci::ConnectOptions how;
    how.role = ports::Role::router;
    how.timeout = link_dial_timeout;
    how.context = link.ref();
    const auto connection = devices_.endpoint(wanted.device).connect(wanted.uri, how);
    plan_.dials(peer, now);
    if (!connection) {
      log(LogLevel::warning, "routing: peer {}: {}", wanted.uri, connection.error().message);
      plan_.is_tried(peer);
      links_.remove(link.index);
      continue;
    }
    link.connection = *connection;
    plan_.has_link(peer, link.ref());
  }
}

// A peer may have many links, one between each two devices, and more while lost ones are not noticed yet.
std::string PeerLinks::why_no_room(uint32_t device, const std::string& peer) const {
  if (links_.size() >= links_max) return "too many peers";
  size_t of_peer = 0, external = 0;
  links_.for_each([&](const Link& link) {
    of_peer += !link.dialled && link.peer == peer ? 1u : 0u;
    external += !link.dialled && devices_[link.device].wan ? 1u : 0u;
  });
  if (of_peer >= links_of_peer_max) return "too many links of one peer";
  return devices_[device].wan && external >= external_links_max ? "too many peers over WAN devices" : "";
}

void PeerLinks::on_request(uint32_t device, cci::Event& event) {
  cci::Endpoint& endpoint = devices_.endpoint(device);
  const std::string peer = devices_.name_of(device, event.peer());
  if (const std::string why = draining_ ? "draining" : why_no_room(device, peer); !why.empty()) {
    counters_.add(Counter::connections_refused);
    if (traffic_ != nullptr) traffic_->add_refused(draining_ ? RefusedAs::draining : RefusedAs::full);
    if (!draining_ && refused_logged_.first(peer)) log(LogLevel::warning, "routing: peer {}: {}", peer, why);
    if (observer_) observer_({.as = Admission::As::router, .peer = event.peer(), .status = Status::refused, .reason = why});
    static_cast<void>(endpoint.reject(event, why));
    return;
  }
  Link& link = add_to(links_);
  link.device = device;
  link.phase = Phase::accepting;
  link.connection = event.connection;
  link.peer = peer;
  if (endpoint.accept(event, link.ref()) != Status::success) links_.remove(link.index);
}

void PeerLinks::on_event(const Ref& ref, cci::Event& event, Instant now) {
  Link* link = links_.find(ref.index, ref.generation);
  if (link == nullptr) return;
  switch (event.type) {
    case cci::EventType::connect:
    case cci::EventType::accept:
      if (event.status != Status::success) return end(*link, false, event.reason, now);
      link->peer = devices_.peer_of(link->device, link->connection);
      link->node = devices_.node_of(link->device, link->connection);
      return greet(*link, now);
    case cci::EventType::disconnected:
      return end(*link, false, event.reason, now);
    case cci::EventType::keepalive_timed_out:
      return end(*link, true, "no sign of life", now);
    case cci::EventType::receive:
      return on_message(*link, event.data(), now);
    default:
      return;
  }
}

void PeerLinks::on_message(Link& link, Bytes message, Instant now) {
  const auto kind = kind_of(message);
  if (kind == MessageKind::router_hello && link.phase == Phase::greeting) return on_hello(link, message, now);
  if (kind == MessageKind::record && link.phase == Phase::open) return on_record(link, record_of(message), now);
  if (kind == MessageKind::keepalive && link.phase == Phase::open) {
    std::vector<std::byte> answer;
    encode_plain(MessageKind::keepalive_ack, answer);
    return post(link, std::move(answer));
  }
  if (kind == MessageKind::keepalive_ack && link.phase == Phase::open) return on_probe_answer(link, now);
  counters_.add(Counter::routed_rejected);
  end(link, true, "a message out of order", now);
}

void PeerLinks::greet(Link& link, Instant now) {
  link.phase = Phase::greeting;
  link.deadline = after(now, link_hello_timeout);
  std::vector<std::byte> message;
  encode(RouterHello{records_.own().router(), devices_[link.device].subnet, devices_.uri(link.device)}, message);
  post(link, std::move(message));
}

std::string PeerLinks::why_no_link(const Link& link, uint32_t as) const {
  return rights_.why_no_link(devices_.endpoint(link.device).peer(link.connection), as);
}

// Why this peer may not be one; "": it may. Source: routing §IV.C.3: between AS only over the WAN.
std::string PeerLinks::refusal_of(const Link& link, SubnetId peer, Instant now) const {
  const RouterDevice& device = devices_[link.device];
  if (bad_peers_.is_cut_off(link.peer, now)) return "cut off for bad records";
  if (std::string refusal = why_no_link(link, peer.as); !refusal.empty()) return refusal;
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

std::string node_behind(std::string_view dialled, std::string_view said) {
  const auto known = address_of({}, dialled);
  const bool is_name =
      !known || (known->node.find(':') == std::string::npos && known->node.find_first_not_of("0123456789.") != std::string::npos);
  const auto address = is_name ? address_of({}, said) : known;
  return address ? address->node : std::string();
}

void PeerLinks::on_hello(Link& link, Bytes message, Instant now) {
  const auto hello = decode_router_hello(message);
  if (!hello) {
    counters_.add(Counter::routed_rejected);
    return end(link, true, "malformed hello", now);
  }
  if (hello->router == records_.own().router()) {
    plan_.on_self(link.ref());
    log(LogLevel::warning, "routing: peer {} is this router itself: {}", link.peer_uri, link.peer);
    return end(link, true, "that is myself", now);
  }
  if (link.dialled) link.node = node_behind(link.peer_uri, hello->uri);
  link.peer_uri = hello->uri;
  if (const std::string refusal = refusal_of(link, hello->subnet, now); !refusal.empty()) {
    counters_.add(Counter::records_rejected);
    if (refused_logged_.first(link.peer)) {
      log(LogLevel::warning, "routing: peer {}, which says that it is {}: {}", link.peer, hello->uri, refusal);
    }
    tell_observer(link, refusal);
    return end(link, true, refusal, now);
  }
  link.router = hello->router;
  link.as = hello->subnet.as;
  link.external = link.as != devices_[link.device].subnet.as;
  link.deadline = never;
  devices_.endpoint(link.device).set_keepalive(link.connection, link_keepalive);
  link.phase = Phase::open;
  tell_observer(link, "");
  plan_.on_open(link.ref(), link.router, link.node, now);
  Link* loser = lose_one(link, hello->uri);
  // Everything that is known goes out even on a link that will lose: the peer may still count on
  // it.
  send_records(link);
  if (loser != nullptr) end(*loser, true, "a second link between the same devices", now);
}

void PeerLinks::tell_observer(const Link& link, std::string_view refusal) const {
  if (!observer_) return;
  observer_({.step = refusal.empty() ? Admission::Step::admitted : Admission::Step::refused,
             .as = Admission::As::router,
             .peer = devices_.endpoint(link.device).peer(link.connection),
             .to = link.peer_uri,
             .status = refusal.empty() ? Status::success : Status::refused,
             .reason = std::string(refusal)});
}

// Links of which one says that it is the other have different addresses.
PeerLinks::Link* PeerLinks::other_to_same_device(const Link& link) const {
  Link* other = nullptr;
  links_.for_each([&](Link& known) {
    if (&known != &link && known.phase == Phase::open && known.device == link.device && known.router == link.router &&
        known.node == link.node)
      other = &known;
  });
  return other;
}

// Of two links between the same two devices the one that the lower URI dialled is kept; of two by
// the same dialler, the newer.
PeerLinks::Link* PeerLinks::lose_one(Link& link, const std::string& uri) {
  Link* other = other_to_same_device(link);
  if (other == nullptr) return nullptr;
  const bool ours_wins = devices_.uri(link.device) < uri;
  Link* loser = other->dialled == link.dialled || link.dialled == ours_wins ? other : &link;
  const Link* winner = loser == other ? &link : other;
  plan_.on_replaced(loser->ref(), winner->ref());
  return loser;
}

// For people: who it is, and what it calls itself.
std::string PeerLinks::words_of(const Link& link) {
  return fmt::format("{}, which says that it is {} of AS {}", link.peer, link.peer_uri, link.as);
}

// A bad record is counted, dropped, and logged once a peer.
void PeerLinks::on_record(Link& link, Bytes bytes, Instant now) {
  plan_.on_answer(link.ref());
  const std::string_view fault = records_.hear({link.ref(), link.as, link.external, link.router}, bytes, now);
  if (fault.empty()) return;
  counters_.add(Counter::records_rejected);
  const BadPeers::Verdict verdict = bad_peers_.add(link.peer, now);
  if (verdict.to_log) log(LogLevel::warning, "routing: peer {}: {}: dropped", words_of(link), fault);
  if (!verdict.cut_off) return;
  log(LogLevel::warning, "routing: peer {} is cut off: {}", words_of(link), fault);
  const std::string peer = link.peer;
  links_.for_each([&](Link& each) {
    if (each.phase == Phase::open && each.peer == peer) end(each, true, "too many bad records", now);
  });
}

// `tell`: the connection is there, and the peer hears of its end.
void PeerLinks::end(Link& link, bool tell, std::string_view why, Instant now) {
  if (tell) {
    flush(link);
    devices_.endpoint(link.device).disconnect(link.connection);
  }
  for (const std::string& uri : plan_.on_end(link.ref(), now)) log(LogLevel::info, "routing: link to {} ended: {}", uri, why);
  const bool was_open = link.phase == Phase::open;
  const uint64_t router = link.router;
  const uint32_t as = link.as;
  out_bytes_ -= link.out_bytes;
  links_.remove(link.index);
  if (!was_open) return;
  bool is_linked = false;
  links_.for_each([&](const Link& other) {
    is_linked = is_linked || (other.phase == Phase::open && other.router == router && other.as == as);
  });
  if (!is_linked) records_.suspect(as, router, now);
}

// Inside our AS a record goes as it is, to another AS what that may know. A router of which nothing
// is left for another AS is withdrawn there; of one that never had anything for it that does not
// hear. Records of other AS go nowhere.
void PeerLinks::send_record(Link& link, const RouterRecord& record, Bytes raw, const RouterRecord& before) {
  std::vector<std::byte> message;
  if (!link.external) {
    encode_record_message(MessageKind::record, raw, message);
    return post(link, std::move(message));
  }
  RouterRecord seen = as_seen_by(link.as, record);
  seen.withdrawn = seen.withdrawn || (seen.devices.empty() && !as_seen_by(link.as, before).devices.empty());
  std::vector<std::byte> reduced;
  if ((seen.devices.empty() && !seen.withdrawn) || !encode_record(seen, reduced)) return;
  encode_record_message(MessageKind::record, reduced, message);
  post(link, std::move(message));
}

void PeerLinks::flood(const RouterRecord& record, Bytes raw, uint64_t except_link, const RouterRecord& before) {
  links_.for_each([&](Link& link) {
    if (link.ref() != except_link && link.phase == Phase::open) send_record(link, record, raw, before);
  });
}

// Our own first: the peer takes it as the sign that we have been heard.
void PeerLinks::send_records(Link& link) {
  send_record(link, records_.own().record(), records_.own().raw(), {});
  records_.for_each_heard([&](const RouterRecord& record, Bytes raw, bool foreign) {
    if (!foreign) send_record(link, record, raw, {});
  });
}

void PeerLinks::post(Link& link, std::vector<std::byte> message) {
  link.out_bytes += message.size();
  out_bytes_ += message.size();
  link.out.push_back(std::move(message));
  flush(link);
  keep_within_bounds();
}

void PeerLinks::drop_first(Link& link) {
  link.out_bytes -= link.out.front().size();
  out_bytes_ -= link.out.front().size();
  link.out.drop_front();
}

// Peers that take nothing: of the one for which most waits the oldest goes. What it misses comes again with the next refresh.
void PeerLinks::keep_within_bounds() {
  while (out_bytes_ > links_out_bytes_max) {
    Link* longest = nullptr;
    links_.for_each([&](Link& link) {
      if (longest == nullptr || link.out_bytes > longest->out_bytes) longest = &link;
    });
    drop_first(*longest);
  }
}

void PeerLinks::flush(Link& link) {
  while (!link.out.empty()) {
    const Status status = devices_.send(link.device, link.connection, Bytes(link.out.front()), 0);
    if (status == Status::no_buffers || status == Status::again) {
      // A peer that takes nothing: what it misses comes again with the next refresh.
      if (link.out.size() > link_out_max) drop_first(link);
      return;
    }
    drop_first(link);
  }
}

void PeerLinks::push() {
  links_.for_each([&](Link& link) { flush(link); });
}

void PeerLinks::measure_latencies(bool wanted, Instant now) { next_probe_ = wanted ? now : never; }

void PeerLinks::probe(Instant now) {
  if (now < next_probe_) return;
  next_probe_ = after(now, latency_probe_interval);
  links_.for_each([&](Link& link) {
    if (link.phase != Phase::open || link.probed_at != never || !link.out.empty()) return;
    link.probed_at = now;
    std::vector<std::byte> message;
    encode_plain(MessageKind::keepalive, message);
    post(link, std::move(message));
  });
}

// A subnet is as far as its farthest neighbour that we see.
void PeerLinks::on_probe_answer(Link& link, Instant now) {
  if (link.probed_at == never) return;  // an answer to nothing
  link.latency_ns = smoothed_latency_ns(link.latency_ns, now - std::exchange(link.probed_at, never));
  uint64_t worst_ns = 0;
  links_.for_each([&](const Link& other) {
    if (other.device == link.device && other.phase == Phase::open) worst_ns = std::max(worst_ns, other.latency_ns);
  });
  if (!is_worth_telling(devices_[link.device].latency_ns, worst_ns)) return;
  devices_.set_latency(link.device, worst_ns);
  records_.tell_anew(now);
}

void PeerLinks::set_peers(uint32_t device, std::vector<std::string> uris, bool tried, Instant now) {
  for (const uint64_t packed : plan_.keep_only(device, uris)) {
    Link* link = find_in(links_, packed);
    if (link != nullptr && link->dialled) end(*link, true, "no longer configured", now);
  }
  for (std::string& uri : uris) {
    if (!plan_.has(device, uri)) plan_.add(device, std::move(uri), tried);
  }
}

void PeerLinks::end_unserved(Instant now) {
  links_.for_each([&](Link& link) {
    if (link.phase != Phase::open) return;
    if (const std::string why = why_no_link(link, link.as); !why.empty()) return end(link, true, why, now);
    if (!link.external) return;
    const auto& to = devices_[link.device].wan_to;
    const bool served = devices_[link.device].wan && (to.empty() || std::find(to.begin(), to.end(), link.as) != to.end());
    if (!served) end(link, true, "no longer served", now);
  });
}

Instant PeerLinks::next_deadline() const {
  Instant when = draining_ ? next_probe_ : std::min(next_probe_, plan_.next_deadline());
  links_.for_each([&](const Link& link) { when = std::min(when, link.deadline); });
  return when;
}

size_t PeerLinks::open() const {
  size_t open = 0;
  links_.for_each([&](const Link& link) { open += link.phase == Phase::open ? 1 : 0; });
  return open;
}

void PeerLinks::show(RouterView& view) const {
  links_.for_each([&](const Link& link) {
    view.links.push_back({link.router, link.peer_uri.empty() ? link.node : link.peer_uri, link.device, link.phase == Phase::open});
  });
  plan_.for_each([&](const ConfiguredPeer& peer, uint64_t packed) {
    const Link* link = find_in(links_, packed);
    if (link == nullptr || link->phase != Phase::open) view.missing_links.push_back({peer.uri, peer.device});
  });
}

bool PeerLinks::all_told() const {
  bool told = true;
  links_.for_each([&](const Link& link) { told = told && link.out.empty(); });
  return told;
}

}  // namespace ccixfer::routing
