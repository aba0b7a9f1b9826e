#include "routing/router/router.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "core/base/hash.h"
#include "core/base/log.h"
#include "routing/router/admin_desk.h"
#include "routing/router/device_settings.h"
#include "routing/router/peer_links.h"
#include "routing/router/peer_rights.h"
#include "routing/router/planned_stop.h"
#include "routing/router/relayed_connections.h"

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
  for (const RouterDevice& device : devices) records.push_back(described(device, uri_of(device)));
  if (!record_fits(std::move(records)))
    return fail(ErrorKind::usage, "the router's record is too long: fewer devices, shorter addresses or fewer AS in wan_to");
  return parse_metrics(options.metric);
}

// From the addresses: a router that restarts is the same router.
uint64_t id_of(const std::vector<RouterDevice>& devices) {
  std::string all;
  for (const RouterDevice& device : devices) all += format_address(*address_of(device.subnet, uri_of(device))) + "\n";
  return xxh3_64(as_bytes(all));
}

Admission::As as_of(ports::Role role) {
  switch (role) {
    case ports::Role::hop:
      return Admission::As::connection;
    case ports::Role::router:
      return Admission::As::router;
    case ports::Role::admin:
      return Admission::As::administrator;
    case ports::Role::application:
      break;
  }
  return Admission::As::unknown;
}

bool measures_latency(const std::vector<Metric>& metric) {
  return std::find(metric.begin(), metric.end(), Metric::latency) != metric.end();
}

}  // namespace

// The parts of a router, in the order in which each needs the ones before it. Where one asks something of a later one, it asks
// here.
struct Router::Impl final : public ConnectionEnder {
  Impl(const RouterOptions& options, std::vector<RouterDevice> all, const std::shared_ptr<cci::MemoryTable>& memory,
       memory::BulkMemory fragments, ports::Entropy& entropy, Counters& counters, std::vector<Metric> metric);
  ~Impl() {
    relayed.account_for_all();
    devices.close();  // before the rest: nothing may read or write the pool after this
  }

  void close(RelayedConnection& connection, Status status, std::string_view reason, int told_by) override {
    relayed.close(connection, status, reason, told_by);
  }
  void reject(RelayedConnection& connection, std::string_view why) override { relayed.reject(connection, why); }

  void turn(Instant at, const std::function<Instant()>& clock);
  void tell_routers();
  bool round();
  void set_now(Instant at);
  void push();
  void drain();
  [[nodiscard]] bool drained() const;
  bool take_events(uint32_t device);
  void on_request(uint32_t device, cci::Event& event);
  void refuse(uint32_t device, cci::Event& event, const std::string& why);
  void on_event(cci::Event event);
  [[nodiscard]] Instant next_deadline() const;
  Result<void> reconfigure(const RouterOptions& options, std::vector<RouterDevice> settings);

  Counters& counters;
  const bool follows;  // links, records and questions for the map are another worker's
  const AdmissionObserver observer;
  const std::shared_ptr<Traffic> traffic;  // may be none
  Devices devices;
  PeerRights rights;
  RecordStore records;
  PeerLinks links;
  AdminDesk admins;
  ConnectionTable connections;
  ConnectionPlaces places;
  FragmentPool pool;
  StoodStill stood_still;
  BufferGrants grants;
  MessageRelay relay;
  FragmentForwarder forwarder;
  StandstillWatch watch;
  ConnectionSetup setup;
  RelayedConnections relayed;

  PlannedStop stop;
  PeersLogged strangers_logged;

  Instant now{};
  std::optional<uint64_t> new_rate;  // from the next turn on, which knows what time it is
  bool measures = false;             // latencies
  bool turn_due = false;             // asked for from outside since the last turn, or that turn had more to do than it may
  bool started = false;
};

Router::Impl::Impl(const RouterOptions& options, std::vector<RouterDevice> all, const std::shared_ptr<cci::MemoryTable>& memory,
                   memory::BulkMemory fragments, ports::Entropy& entropy, Counters& c, std::vector<Metric> metric)
    : counters(c),
      follows(options.follows),
      observer(options.observer),
      traffic(options.traffic),
      devices(std::move(all)),
      rights(options.peer_grants),
      records(
          id_of(devices.all()), devices[0].subnet.as, {options.record_refresh, options.record_lifetime},
          {metric, options.static_routes}, [this] { return devices.told(); },
          [this](const RouterRecord& record, Bytes raw, uint64_t except, const RouterRecord& before) {
            links.flood(record, raw, except, before);
          },
          counters),
      links(devices, records, rights, observer, counters, traffic.get()),
      admins(devices, records, observer, counters),
      places(options.connections_max),
      pool(lent_bytes(options), options.memory_bytes, options.mechanisms.classes, options.mechanisms.reserved,
           options.mechanisms.poison_returned, std::move(fragments)),
      grants(options.mechanisms, options.rate_bytes_per_s, pool, connections, stood_still, devices),
      relay(
          devices, *this, connections, options.copied_bytes_max,
          options.mechanisms.messages_apart ? std::function<bool()>() : [this] { return pool.has(0, 0); }, counters, traffic.get()),
      forwarder(options.mechanisms, devices, memory, pool, grants, connections, relay, *this, counters, traffic.get()),
      watch(options.mechanisms.progress, devices, pool, connections, stood_still, relay, *this),
      setup(devices, records, rights, connections, places, grants, relay, *this, entropy, counters, traffic.get()),
      relayed(devices, connections, places, setup, relay, forwarder, watch, observer, counters, traffic.get()),
      measures(measures_latency(metric)) {
  if (follows) return;
  for (uint32_t device = 0; device < devices.count(); ++device) {
    if (traffic) traffic->add_device(devices[device].name);
    links.set_peers(device, devices[device].peers, false, now);
  }
}

void Router::Impl::set_now(Instant at) {
  now = at;
  forwarder.set_now(at);
  relayed.set_now(at);
}

void Router::Impl::turn(Instant at, const std::function<Instant()>& clock) {
  set_now(at);
  if (new_rate) grants.set_rate(*std::exchange(new_rate, std::nullopt), now);
  if (!std::exchange(started, true) && !follows) links.measure_latencies(measures, now);
  drain();
  links.turn(now);
  relayed.run_timers();
  if (!follows) tell_routers();
  if (watch.look(now, forwarder.fragments(), grants)) forwarder.release_idle();
  bool any = true;
  for (int i = 0; i < rounds_per_turn_max && any; ++i) {
    if (i > 0 && clock) set_now(std::max(now, clock()));
    any = round();
  }
  if (!any) {  // room below may have come without an event: our sends are silent; and so buffers
    const uint32_t used = pool.used();
    push();
    any = pool.used() < used;
  }
  turn_due = any;
}

void Router::Impl::tell_routers() {
  if (devices.follow(now) && !stop.wanted()) records.tell_anew(now);
  records.turn(now);
  links.probe(now);
}

// What is here goes out, and what comes meanwhile is taken. True: something came, so that there may be more to do.
bool Router::Impl::round() {
  bool any = false;
  push();
  if (forwarder.grant_buffers()) watch.begin(now);
  for (uint32_t device = 0; device < devices.count(); ++device) {
    devices.endpoint(device).turn(now);
    any = take_events(device) || any;
  }
  any = forwarder.cut_through() || any;
  return forwarder.return_lent() || any;
}

void Router::Impl::push() {
  relayed.push();
  links.push();
  admins.push();
}

bool Router::Impl::take_events(uint32_t device) {
  bool any = false;
  while (auto event = devices.endpoint(device).get_event()) {
    any = true;
    event->type == cci::EventType::connect_request ? on_request(device, *event) : on_event(std::move(*event));
  }
  return any;
}

void Router::Impl::refuse(uint32_t device, cci::Event& event, const std::string& why) {
  Admission refused;
  refused.as = as_of(event.role);
  refused.peer = event.peer();
  refused.status = Status::refused;
  refused.reason = why;
  if (traffic) traffic->add_refused(RefusedAs::not_permitted);
  static_cast<void>(devices.endpoint(device).reject(event, why));
  if (observer) observer(refused);
}

void Router::Impl::on_request(uint32_t device, cci::Event& event) {
  if (const std::string why = rights.why_not(event.peer(), event.role); !why.empty()) {
    if (strangers_logged.first(event.peer().name())) log(LogLevel::warning, "routing: a connection is refused: {}", why);
    return refuse(device, event, why);
  }
  if (follows && event.role != ports::Role::hop) {
    counters.add(Counter::connections_refused);
    return refuse(device, event, "another worker of this router speaks to routers and administrators");
  }
  switch (event.role) {
    case ports::Role::hop:
      return relayed.on_request(device, event);
    case ports::Role::router:
      return links.on_request(device, event);
    case ports::Role::admin:
      return admins.on_request(device, event);
    default:
      counters.add(Counter::connections_refused);
      refuse(device, event, "this is a router: use it as one, or connect to the destination");
  }
}

void Router::Impl::on_event(cci::Event event) {
  const Ref ref = Ref::of(event.context);
  switch (ref.tag) {
    case Tag::connection:
      return relayed.on_event(ref, std::move(event));
    case Tag::fragment:
      return forwarder.on_event(ref, event.ending());
    case Tag::link:
      return links.on_event(ref, event, now);
    case Tag::admin:
      return admins.on_event(ref, event);
    default:
      return;
  }
}

Instant Router::Impl::next_deadline() const {
  if (turn_due || !started) return now;
  return std::min({devices.next_deadline(), follows ? never : records.next_deadline(), links.next_deadline(),
                   connections.next_deadline(), watch.next_deadline(), grants.next_deadline(now), stop.next_deadline()});
}

// A routed connection that is pinned to one router ends with it, and the layer above moves on. The record goes first: who hears of
// a connection that must move looks for another way at once. Source: README.md 'A planned stop'.
void Router::Impl::drain() {
  if (stop.begins(now)) {
    if (!follows) records.tell_now();
    relayed.tell_drain();
  }
  if (stop.closes(now)) relayed.close_all();
}

bool Router::Impl::drained() const {
  if (!stop.has_begun()) return false;
  if (stop.is_over(now)) return true;
  return connections.size() == 0 && forwarder.fragments().size() == 0 && links.all_told();
}

Result<void> Router::Impl::reconfigure(const RouterOptions& options, std::vector<RouterDevice> settings) {
  auto metric = parse_metrics(options.metric);
  if (!metric) return tl::unexpected<Error>(metric.error());
  const auto which = match_settings(settings, devices.all());
  if (!which) return tl::unexpected<Error>(which.error());
  measures = measures_latency(*metric);
  if (!follows) records.set_rules({std::move(*metric), options.static_routes});
  new_rate = options.rate_bytes_per_s;
  rights.change(options.peer_grants);
  const uint32_t before = devices.count();
  for (size_t i = 0; i < settings.size(); ++i) {
    const uint32_t device = (*which)[i];
    std::vector<std::string> peers = std::move(settings[i].peers);
    if (device >= before && traffic && !follows) traffic->add_device(settings[i].name);
    device < before ? devices.change(device, std::move(settings[i])) : devices.add(std::move(settings[i]));
    if (!follows) links.set_peers(device, std::move(peers), true, now);  // readiness was told long ago
  }
  turn_due = true;
  if (follows) return {};
  if (!measures) devices.forget_latencies();
  links.measure_latencies(measures, now);
  links.end_unserved(now);
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
  auto fragments = memory::BulkMemory::make(FragmentPool::used_bytes(lent_bytes(options), options.memory_bytes));
  if (!fragments) return tl::unexpected<Error>(fragments.error());
  std::unique_ptr<Router> router(new Router);
  router->impl_ =
      std::make_unique<Impl>(options, std::move(devices), memory, std::move(*fragments), entropy, counters, std::move(*metric));
  if (!router->impl_->forwarder.has_memory()) {
    const size_t bytes = router->impl_->pool.memory().size();
    return fail(ErrorKind::usage, fmt::format("a device takes no {} bytes of memory: raise the limit of locked memory, or give the "
                                              "router less memory",
                                              bytes));
  }
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
    if (const auto address = address_of(device.subnet, uri_of(device))) all.push_back(format_address(*address));
  }
  return all;
}

bool Router::has_device(std::string_view name) const {
  const auto& all = impl_->devices.all();
  return std::any_of(all.begin(), all.end(), [&](const RouterDevice& device) { return device.name == name; });
}

std::vector<std::pair<std::string, std::string>> Router::devices() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const RouterDevice& device : impl_->devices.all()) all.emplace_back(device.name, uri_of(device));
  return all;
}

Result<void> Router::reconfigure(const RouterOptions& options, std::vector<RouterDevice> devices) {
  return impl_->reconfigure(options, std::move(devices));
}

void Router::set_works(std::string_view device, bool works) {
  if (impl_->devices.set_works(device, works)) impl_->turn_due = true;
}

std::shared_ptr<const MapSnapshot> Router::map() { return impl_->records.snapshot(); }

void Router::follow(const std::shared_ptr<const MapSnapshot>& map) { impl_->records.follow(map); }

void Router::set_rate(uint64_t bytes_per_s) {
  impl_->new_rate = bytes_per_s;
  impl_->turn_due = true;  // what waits for the old rate may go on
}

void Router::review_links(Instant now) {
  if (!impl_->follows) impl_->links.end_unserved(now);
  impl_->turn_due = true;
}

void Router::drain() {
  impl_->stop.want();
  impl_->turn_due = true;
  if (!impl_->follows) impl_->records.withdraw();
  impl_->links.drain();
  impl_->relayed.drain();
}

bool Router::drained() const { return impl_->drained(); }
size_t Router::connections_open() const { return impl_->connections.size(); }
uint32_t Router::fragments_in_use() const { return impl_->pool.used(); }

std::vector<FragmentView> Router::fragments() const {
  std::vector<FragmentView> all;
  impl_->forwarder.fragments().for_each([&](const Fragment& fragment) {
    const RelayedConnection* connection = impl_->connections.find(fragment.connection);
    FragmentView view;
    view.crossed = fragment.offer.data_class;
    view.buffer_class = impl_->pool.class_of(fragment.offer.data_class);
    view.holds_buffer = static_cast<bool>(fragment.buffer);
    if (connection != nullptr && fragment.offer.from == 0) view.next = connection->hop_uri;
    all.push_back(std::move(view));
  });
  return all;
}

uint32_t Router::fragments_leaving_early() const { return impl_->forwarder.leaving_early(); }
size_t Router::links_open() const { return impl_->links.open(); }
size_t Router::links_out_bytes() const { return impl_->links.out_bytes(); }

RouterView Router::view() const {
  RouterView view;
  view.router = impl_->records.own().router();
  view.draining = impl_->stop.wanted();
  for (const RouterDevice& device : impl_->devices.all()) {
    view.devices.push_back({device.name, device.subnet, device.endpoint->uri(), device.rate_bits_per_s, device.latency_ns,
                            device.works, device.told, device.wan});
  }
  impl_->links.show(view);
  view.connections.reserve(impl_->connections.size());
  impl_->connections.for_each([&](const RelayedConnection& connection) { view.connections.push_back(view_of(connection)); });
  view.buffers_used = impl_->pool.used();
  view.buffers_count = impl_->pool.count();
  view.fragment_bytes = impl_->pool.fragment_bytes();
  return view;
}

ConnectionNames Router::names_of(uint64_t id) const {
  ConnectionNames names;
  const RelayedConnection* connection = impl_->connections.find(id);
  if (connection == nullptr) return names;
  const Leg& first = connection->legs[0];
  names.hops = {impl_->devices.node_of(first.device, first.connection), connection->hop_uri};
  names.destination = connection->ends[1];
  return names;
}

size_t Router::routers_known() const { return impl_->records.known(); }

}  // namespace ccixfer::routing
