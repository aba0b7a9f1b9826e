#include "routing/router/router.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/hash.h"
#include "core/base/log.h"
#include "routing/router/device_settings.h"
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

// From the addresses: a router that restarts is the same router.
uint64_t id_of(const std::vector<RouterDevice>& devices) {
  std::string all;
  for (const RouterDevice& device : devices) all += format_address(*address_of(device.subnet, device.endpoint->uri())) + "\n";
  return xxh3_64(as_bytes(all));
}

bool measures_latency(const std::vector<Metric>& metric) {
  return std::find(metric.begin(), metric.end(), Metric::latency) != metric.end();
}

}  // namespace

Router::Impl::Impl(const RouterOptions& o, std::vector<RouterDevice> all, std::shared_ptr<cci::MemoryTable> m, ports::Entropy& e,
                   Counters& c, std::vector<Metric> metric)
    : options(o),
      counters(c),
      devices(std::move(all)),
      records(
          id_of(devices.all()), devices[0].subnet.as, {o.record_refresh, o.record_lifetime}, {metric, o.static_routes},
          [this] { return devices.told(); },
          [this](const RouterRecord& record, Bytes raw, uint64_t except) { links.flood(record, raw, except); }, counters),
      links(devices, records, counters),
      admins(devices, records, counters),
      memory(std::move(m)),
      entropy(e),
      measures(measures_latency(metric)),
      pool(lent_bytes(o), o.memory_bytes, o.mechanisms.classes, o.mechanisms.reserved, o.mechanisms.poison_returned) {
  pool_handle = memory->register_region(pool.memory(), 0);
  for (uint32_t device = 0; device < devices.count(); ++device) links.set_peers(device, devices[device].peers, false, now);
}

Router::Impl::~Impl() {
  devices.close();  // first: nothing may read or write the pool after this
  fragments.for_each([&](Fragment& fragment) { end_fragment(fragment); });
  static_cast<void>(return_lent_buffers());  // all: nothing refers to them without a transport
  static_cast<void>(memory->deregister_region(pool_handle));
}

void Router::Impl::turn(Instant at, const std::function<Instant()>& clock) {
  now = at;
  if (!std::exchange(started, true)) links.measure_latencies(measures, now);
  drain();
  links.turn(now);
  run_timers();
  if (devices.follow(now) && !stop.wanted()) records.tell_anew(now);
  records.turn(now);
  links.probe(now);
  look_at_progress();
  bool any = true;
  for (int round = 0; round < rounds_per_turn_max && any; ++round) {
    if (round > 0 && clock) now = std::max(now, clock());
    any = false;
    push();
    grant_buffers();
    for (uint32_t device = 0; device < devices.count(); ++device) {
      endpoint(device).turn(now);
      any = take_events(device) || any;
    }
    any = cut_through() || any;
    any = return_lent_buffers() || any;
  }
  if (!any) {  // room below may have come without an event: our sends are silent; and so buffers
    const uint32_t used = pool.used();
    push();
    any = pool.used() < used;
  }
  work = any;
}

void Router::Impl::push() {
  push_active();
  links.push();
  admins.push();
}

bool Router::Impl::take_events(uint32_t device) {
  bool any = false;
  while (auto event = devices.endpoint(device).get_event()) {
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
        return links.on_request(device, event);
      case ports::Role::admin:
        return admins.on_request(device, event);
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
      return links.on_event(ref, event, now);
    case Tag::admin:
      return admins.on_event(ref, event);
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
}

void Router::Impl::run_timers() {
  while (timers.earliest() <= now) {
    Pair& pair = *pairs.at(timers.earliest_slot());
    set_timer(pair, never);
    on_timer(pair);
  }
}

Instant Router::Impl::next_deadline() const {
  if (work || !started) return now;
  Instant when = std::min({devices.next_deadline(), records.next_deadline(), links.next_deadline(), timers.earliest(), next_look,
                           stop.next_deadline()});
  const bool waiting = std::any_of(turns.begin(), turns.end(), [](const auto& turn) { return !turn.empty(); });
  if (waiting && options.rate_bytes_per_s > 0 && rate_next > now) when = std::min(when, std::max(now, rate_next - rate_burst));
  return when;
}

// A routed connection that is pinned to one router ends with it, and the layer above moves on. The record goes first: who hears of
// a connection that must move looks for another way at once. Source: README.md 'A planned stop'.
void Router::Impl::drain() {
  if (stop.begins(now)) {
    records.tell_now();
    log(LogLevel::info, "routing: draining, {} connections", pairs.size());
    pairs.for_each([&](Pair& pair) {
      if (pair.phase == PairPhase::dialling || pair.phase == PairPhase::requesting)
        return refuse(pair, Status::no_route, draining_reason(pair.side[0].device));
      for (uint8_t which = 0; which < 2 && pair.phase == PairPhase::open; ++which) {
        std::vector<std::byte> message;
        encode_plain(MessageKind::draining, message);
        post(pair, which, std::move(message));
      }
    });
  }
  if (!stop.closes(now)) return;
  pairs.for_each([&](Pair& pair) {
    if (pair.phase == PairPhase::closing) return set_timer(pair, after(now, drain_flush_timeout));
    close_pair(pair, Status::disconnected, draining_reason(pair.side[0].device), nobody);
  });
}

std::string Router::Impl::draining_reason(uint32_t device) const { return fmt::format("router {} stops", endpoint(device).uri()); }

bool Router::Impl::drained() const {
  if (!stop.has_begun()) return false;
  if (stop.is_over(now)) return true;
  return pairs.size() == 0 && fragments.size() == 0 && links.all_told();
}

Result<void> Router::Impl::reconfigure(const RouterOptions& anew, std::vector<RouterDevice> settings) {
  auto metric = parse_metrics(anew.metric);
  if (!metric) return tl::unexpected<Error>(metric.error());
  const auto which = match_settings(settings, devices.all());
  if (!which) return tl::unexpected<Error>(which.error());
  measures = measures_latency(*metric);
  records.set_rules({std::move(*metric), anew.static_routes});
  options.rate_bytes_per_s = anew.rate_bytes_per_s;
  const uint32_t before = devices.count();
  for (size_t i = 0; i < settings.size(); ++i) {
    const uint32_t device = (*which)[i];
    std::vector<std::string> peers = std::move(settings[i].peers);
    device < before ? devices.change(device, std::move(settings[i])) : devices.add(std::move(settings[i]));
    links.set_peers(device, std::move(peers), true, now);  // readiness was told long ago
  }
  if (!measures) devices.forget_latencies();
  links.measure_latencies(measures, now);
  links.end_unserved(now);
  work = true;
  records.tell_anew(now);
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
  for (const RouterDevice& device : impl_->devices.all()) handles.push_back(device.endpoint->os_handle());
  return handles;
}

bool Router::ready() const { return impl_->started && impl_->links.ready(); }

std::vector<std::string> Router::uris() const {
  std::vector<std::string> all;
  for (const RouterDevice& device : impl_->devices.all()) {
    if (const auto address = address_of(device.subnet, device.endpoint->uri())) all.push_back(format_address(*address));
  }
  return all;
}

bool Router::has_device(std::string_view name) const {
  const auto& all = impl_->devices.all();
  return std::any_of(all.begin(), all.end(), [&](const RouterDevice& device) { return device.name == name; });
}

std::vector<std::pair<std::string, std::string>> Router::devices() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const RouterDevice& device : impl_->devices.all()) all.emplace_back(device.name, device.endpoint->uri());
  return all;
}

Result<void> Router::reconfigure(const RouterOptions& options, std::vector<RouterDevice> devices) {
  return impl_->reconfigure(options, std::move(devices));
}

void Router::set_works(std::string_view device, bool works) {
  if (impl_->devices.set_works(device, works)) impl_->work = true;
}

void Router::drain() {
  impl_->stop.want();
  impl_->work = true;
  impl_->records.withdraw();
  impl_->links.drain();
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

size_t Router::links_open() const { return impl_->links.open(); }
size_t Router::routers_known() const { return impl_->records.known(); }

}  // namespace ccixfer::routing
