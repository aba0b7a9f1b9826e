#include "routing/router/router.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/hash.h"
#include "core/base/log.h"
#include "routing/router/router_impl.h"

namespace ccixfer::routing {
namespace {

constexpr int rounds_per_turn_max = 16;

// The fragments that a router lends. One a class there must be; where the memory does not hold so many they are shorter, and the
// connections over this router agree on that length.
uint32_t lent_bytes(const RouterOptions& options) {
  const uint64_t share = options.memory_bytes / options.mechanisms.classes;
  return share >= options.fragment_bytes ? options.fragment_bytes
                                         : static_cast<uint32_t>(share / fragment_bytes_floor * fragment_bytes_floor);
}

Result<std::vector<Metric>> check(const RouterOptions& options, const std::vector<RouterDevice>& devices) {
  if (devices.size() < 2) return fail(ErrorKind::usage, "a router needs devices on two subnets or more");
  if (devices.size() > devices_max) return fail(ErrorKind::usage, fmt::format("a router has at most {} devices", devices_max));
  if (options.fragment_bytes < fragment_bytes_floor) {
    return fail(ErrorKind::usage, fmt::format("fragment of {} bytes: at least {}", options.fragment_bytes, fragment_bytes_floor));
  }
  if (lent_bytes(options) < fragment_bytes_floor) {
    return fail(
        ErrorKind::usage,
        fmt::format("memory of {} bytes is too little: at least {}: {} fragments of {} bytes, one a class", options.memory_bytes,
                    uint64_t{options.mechanisms.classes} * fragment_bytes_floor, options.mechanisms.classes, fragment_bytes_floor));
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    if (auto fits = check_device(devices[i], std::span(devices).first(i)); !fits) return tl::unexpected<Error>(fits.error());
  }
  std::vector<DeviceRecord> records;
  records.reserve(devices.size());
  for (const RouterDevice& device : devices) records.push_back(described(device, device.endpoint->uri()));
  if (!record_fits(std::move(records)))
    return fail(ErrorKind::usage, "the router's record is too long: fewer devices, shorter addresses or fewer AS in wan_to");
  return parse_metrics(options.metric);
}

}  // namespace

Result<void> check_device(const RouterDevice& device, std::span<const RouterDevice> others) {
  for (const RouterDevice& other : others) {
    if (device.subnet.as != other.subnet.as) {
      return fail(ErrorKind::usage,
                  fmt::format("device {}: AS {}, but device {} is of AS {}: a router belongs to one AS; between two "
                              "AS stand two routers with WAN devices",
                              device.name, device.subnet.as, other.name, other.subnet.as));
    }
    if (device.subnet == other.subnet) {
      return fail(ErrorKind::usage, fmt::format("device {}: another device is on subnet {}:{} already", device.name,
                                                device.subnet.as, device.subnet.subnet));
    }
  }
  if (device.endpoint == nullptr || !address_of(device.subnet, device.endpoint->uri()))
    return fail(ErrorKind::usage, fmt::format("device {}: a router's device must listen", device.name));
  return {};
}

Router::Router() = default;
Router::~Router() = default;

Result<std::unique_ptr<Router>> Router::create(const RouterOptions& options, std::vector<RouterDevice> devices,
                                               std::shared_ptr<cci::MemoryTable> memory, ports::Entropy& entropy,
                                               Counters& counters) {
  auto metric = check(options, devices);
  if (!metric) return tl::unexpected<Error>(metric.error());
  std::unique_ptr<Router> router(new Router);
  router->impl_ = std::make_unique<Impl>(options, std::move(devices), std::move(memory), entropy, counters, std::move(*metric));
  return router;
}

void Router::turn(Instant now, const std::function<Instant()>& clock) { impl_->turn(now, clock); }
Instant Router::next_deadline() const { return impl_->next_deadline(); }

std::vector<int> Router::os_handles() const {
  std::vector<int> handles;
  for (const RouterDevice& device : impl_->devices) handles.push_back(device.endpoint->os_handle());
  return handles;
}

bool Router::ready() const {
  return impl_->started &&
         std::all_of(impl_->targets.begin(), impl_->targets.end(), [](const Target& target) { return target.tried; });
}

std::vector<std::string> Router::uris() const {
  std::vector<std::string> all;
  for (const RouterDevice& device : impl_->devices) {
    if (const auto address = address_of(device.subnet, device.endpoint->uri())) all.push_back(format_address(*address));
  }
  return all;
}

bool Router::has_device(std::string_view name) const {
  return std::any_of(impl_->devices.begin(), impl_->devices.end(), [&](const RouterDevice& device) { return device.name == name; });
}

std::vector<std::pair<std::string, std::string>> Router::devices() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const RouterDevice& device : impl_->devices) all.emplace_back(device.name, device.endpoint->uri());
  return all;
}

Result<void> Router::reconfigure(const RouterOptions& options, std::vector<RouterDevice> devices) {
  return impl_->reconfigure(options, std::move(devices));
}

void Router::drain() {
  impl_->draining = true;
  impl_->work = true;
}

bool Router::drained() const { return impl_->drained(); }
size_t Router::connections_open() const { return impl_->pairs.size(); }

uint32_t Router::fragments_in_use() const { return impl_->pool.used(); }

std::vector<FragmentView> Router::fragments() const {
  std::vector<FragmentView> all;
  impl_->fragments.for_each([&](const Fragment& fragment) {
    const Pair* pair = impl_->pair_of(fragment);
    FragmentView view;
    view.crossed = fragment.data_class;
    view.buffer_class = impl_->pool.class_of(fragment.data_class);
    view.holds_buffer = static_cast<bool>(fragment.buffer);
    if (pair != nullptr && fragment.from == 0) view.next = pair->hop_uri;
    all.push_back(std::move(view));
  });
  return all;
}

uint32_t Router::fragments_leaving_early() const {
  uint32_t count = 0;
  for (const uint64_t packed : impl_->cutting) {
    const Ref ref = Ref::of(packed);
    const Fragment* fragment = impl_->fragments.find(ref.index, ref.generation);
    if (fragment == nullptr || fragment->here != Here::arriving) continue;
    count += fragment->onward == Onward::exposed || fragment->onward == Onward::pushed ? 1 : 0;
  }
  return count;
}

size_t Router::links_open() const {
  size_t open = 0;
  impl_->links.for_each([&](const Link& link) { open += link.phase == LinkPhase::open ? 1 : 0; });
  return open;
}

size_t Router::routers_known() const {
  size_t known = 1;
  for (const auto& [router, record] : impl_->records) known += record.record.withdrawn ? 0 : 1;
  return known;
}

// --- Impl ---

Router::Impl::Impl(const RouterOptions& o, std::vector<RouterDevice> d, std::shared_ptr<cci::MemoryTable> m, ports::Entropy& e,
                   Counters& c, std::vector<Metric> order)
    : options(o),
      devices(std::move(d)),
      memory(std::move(m)),
      entropy(e),
      counters(c),
      metric(std::move(order)),
      pool(lent_bytes(o), o.memory_bytes, o.mechanisms.classes, o.mechanisms.reserved, o.mechanisms.poison_returned) {
  pool_handle = memory->register_region(pool.memory(), 0);
  // The id comes from the addresses: a router that restarts is the same router.
  std::string all;
  for (uint32_t i = 0; i < devices.size(); ++i) {
    all += format_address(*address_of(devices[i].subnet, devices[i].endpoint->uri())) + "\n";
    for (const std::string& uri : devices[i].peers) {
      Target target;
      target.device = i;
      target.uri = uri;
      targets.push_back(std::move(target));
    }
  }
  id = xxh3_64(as_bytes(all));
  make_own_record(false);
}

Router::Impl::~Impl() {
  devices.clear();  // first: nothing may read or write the pool after this
  fragments.for_each([&](Fragment& fragment) { end_fragment(fragment); });
  static_cast<void>(return_lent_buffers());  // all: nothing refers to them without a transport
  static_cast<void>(memory->deregister_region(pool_handle));
}

void Router::Impl::turn(Instant at, const std::function<Instant()>& clock) {
  now = at;
  if (!started) {
    started = true;
    next_refresh = after(now, options.record_refresh);
    next_aging = after(now, options.record_lifetime / 8);
    if (measures_latency()) next_probe = now;
  }
  if (draining) drain_turn();
  dial_targets();
  on_link_timers();
  run_timers();
  follow_devices();
  refresh_and_age();
  probe_latency();
  look_at_progress();
  bool any = true;
  for (int round = 0; round < rounds_per_turn_max && any; ++round) {
    if (round > 0 && clock) now = std::max(now, clock());
    any = false;
    push_active();
    grant_buffers();
    for (uint32_t device = 0; device < devices.size(); ++device) {
      devices[device].endpoint->turn(now);
      any = take_events(device) || any;
    }
    any = cut_through() || any;
    any = return_lent_buffers() || any;
  }
  if (!any) {  // room below may have come without an event: our sends are silent; and so buffers
    const uint32_t used = pool.used();
    push_active();
    any = pool.used() < used;
  }
  work = any;
}

Instant Router::Impl::next_deadline() const {
  if (work || !started) return now;
  Instant when = std::min({next_refresh, next_aging, next_probe, next_look});
  if (own_due) when = std::min(when, own_bucket.next);
  for (const RouterDevice& device : devices) when = std::min({when, device.endpoint->next_deadline(), settles_at(device)});
  when = std::min(when, timers.earliest());
  if (draining) when = std::min(when, drain_cut ? after(drain_until, drain_flush_timeout) : drain_until);
  for (const Target& target : targets) {
    if (target.link == 0 && !target.self && !draining) when = std::min(when, target.next_dial);
  }
  links.for_each([&](const Link& link) { when = std::min(when, link.deadline); });
  const bool waiting = std::any_of(turns.begin(), turns.end(), [](const auto& turn) { return !turn.empty(); });
  if (waiting && options.rate_bytes_per_s > 0 && rate_next > now) when = std::min(when, std::max(now, rate_next - rate_burst));
  return when;
}

bool Router::Impl::take_events(uint32_t device) {
  bool any = false;
  while (auto event = endpoint(device).get_event()) {
    any = true;
    on_event(device, std::move(*event));
  }
  return any;
}

void Router::Impl::on_event(uint32_t device, cci::Event event) {
  if (event.type == cci::EventType::connect_request) {
    switch (event.role) {
      case ports::Role::hop:
        return on_hop_request(device, event);
      case ports::Role::router:
        return on_link_request(device, event);
      case ports::Role::admin:
        return on_admin_request(device, event);
      default:
        counters.add(Counter::connections_refused);
        static_cast<void>(endpoint(device).reject(event, "this is a router: use it as one, or connect to the destination"));
        return;
    }
  }
  const Ref ref = Ref::of(event.context);
  switch (ref.tag) {
    case Tag::pair:
      if (Pair* pair = find_pair(ref)) on_pair_event(*pair, ref.side, std::move(event));
      return;
    case Tag::fragment:
      if (Fragment* fragment = fragments.find(ref.index, ref.generation))
        on_fragment_event(*fragment, ref.side == 1, event.ending());
      return;
    case Tag::link:
      if (Link* link = links.find(ref.index, ref.generation)) on_link_event(*link, event);
      return;
    case Tag::admin:
      if (Admin* admin = admins.find(ref.index, ref.generation)) on_admin_event(*admin, event);
      return;
    default:
      return;
  }
}

void Router::Impl::activate(Pair& pair) {
  if (pair.active) return;
  pair.active = true;
  active.push_back(pair.ref(0).packed());
}

void Router::Impl::push_active() {
  for (const uint64_t packed : std::exchange(active, {})) {
    Pair* pair = find_pair(Ref::of(packed));
    if (pair == nullptr) continue;
    pair->active = false;
    flush(*pair, 0);
    flush(*pair, 1);
    retry_stalled(*pair);
    if (pair->phase == PairPhase::closing) {
      try_finish(*pair);
    } else if (!pair->side[0].out.empty() || !pair->side[1].out.empty() || !pair->stalled.empty()) {
      activate(*pair);  // no room below: again when events came
    }
  }
  links.for_each([&](Link& link) {
    if (!link.out.empty()) flush(link);
  });
  admins.for_each([&](Admin& admin) {
    if (!admin.out.empty()) flush(admin);
  });
}

void Router::Impl::run_timers() {
  while (timers.earliest() <= now) {
    Pair& pair = *pairs.at(timers.earliest_slot());
    set_timer(pair, never);
    on_timer(pair);
  }
}

}  // namespace ccixfer::routing
