#include "app/main/router_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/main/topology.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

using routing::ConnectionStep;
using routing::ConnectionView;
using routing::RouterView;

constexpr Duration standing_after = std::chrono::seconds(1);  // as long without a byte is nothing to speak of

std::string router_name(uint64_t router) { return router == 0 ? std::string() : fmt::format("{:016x}", router); }

report::StatusDevice device_of(const routing::DeviceView& view) {
  return {view.name,
          name_of(view.subnet),
          view.uri,
          view.rate_bits_per_s,
          static_cast<double>(view.latency_ns) / 1e9,
          view.works,
          view.told,
          view.wan};
}

std::string device_name(const RouterView& view, uint32_t device) {
  return device < view.devices.size() ? view.devices[device].name : std::string();
}

const char* words_of(ConnectionStep step) {
  switch (step) {
    case ConnectionStep::setting_up:
      return "setting up";
    case ConnectionStep::open:
      return "open";
    case ConnectionStep::closing:
      return "closing";
  }
  return "";
}

std::string words_of_standing(const ConnectionView& connection) {
  if (connection.stands < standing_after) return {};
  const char* const side = connection.stands_leg == 0 ? "the side of the initiator" : "the side of the destination";
  return fmt::format("{} {}", side, connection.stands_taking ? "takes nothing" : "sends nothing");
}

struct Ranked {
  const ConnectionView* view;
  double bytes_per_s;
};

void add_connections(report::StatusRouter& out, StatusTeller& teller, const RouterView& view, const routing::Router& router) {
  std::vector<Ranked> ranked;
  ranked.reserve(view.connections.size());
  for (const ConnectionView& connection : view.connections) {
    ranked.push_back({&connection, teller.rate(fmt::format("c{:x}", connection.id), connection.bytes)});
    out.setting_up += connection.step == ConnectionStep::setting_up ? 1u : 0u;
    out.closing += connection.step == ConnectionStep::closing ? 1u : 0u;
    out.standing += connection.stands >= standing_after ? 1u : 0u;
  }
  out.connections = ranked.size();
  const auto first = [](const Ranked& a, const Ranked& b) {
    const Duration a_stands = a.view->stands >= standing_after ? a.view->stands : Duration{0};
    const Duration b_stands = b.view->stands >= standing_after ? b.view->stands : Duration{0};
    return std::tuple(b_stands, b.bytes_per_s, a.view->id) < std::tuple(a_stands, a.bytes_per_s, b.view->id);
  };
  const size_t shown = std::min(ranked.size(), connections_shown_max);
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(shown), ranked.end(), first);
  out.more = ranked.size() - shown;
  for (size_t i = 0; i < shown; ++i) {
    const ConnectionView& connection = *ranked[i].view;
    routing::ConnectionNames names = router.names_of(connection.id);
    report::StatusConnection& line = out.listed.emplace_back();
    line.from = std::move(names.hops[0]);
    line.to = std::move(names.hops[1]);
    line.destination = std::move(names.destination);
    line.device_from = device_name(view, connection.devices[0]);
    line.device_to = connection.step == ConnectionStep::setting_up ? std::string() : device_name(view, connection.devices[1]);
    line.state = words_of(connection.step);
    line.bytes = connection.bytes;
    line.bytes_per_s = ranked[i].bytes_per_s;
    line.fragments = connection.fragments;
    line.buffers = connection.buffers;
    line.stands = words_of_standing(connection);
    if (!line.stands.empty()) line.stands_s = std::chrono::duration<double>(connection.stands).count();
  }
}

}  // namespace

report::Status of_router(StatusTeller& teller, const routing::Router& router, Instant now) {
  report::Status status = teller.begin(now);
  report::StatusRouter& out = status.router.emplace();
  const RouterView view = router.view();
  out.router = router_name(view.router);
  out.draining = view.draining;
  for (const routing::DeviceView& device : view.devices) out.devices.push_back(device_of(device));
  for (const routing::LinkView& link : view.links) {
    if (link.open) out.links.push_back({router_name(link.router), link.peer, device_name(view, link.device), true});
  }
  for (const routing::MissingLinkView& link : view.missing_links)
    out.links.push_back({"", link.uri, device_name(view, link.device), false});
  add_connections(out, teller, view, router);
  out.buffers_used = view.buffers_used;
  out.buffers_count = view.buffers_count;
  out.fragment_bytes = view.fragment_bytes;
  return status;
}

void add_workers(report::StatusRouter& router, const WorkersShare& share) {
  router.connections += share.connections;
  router.more += share.connections;
  router.buffers_used += share.buffers_used;
  router.buffers_count += share.buffers_count;
}

// Of one map. The other thread's, once it was given away: one closure at a time runs there.
struct MapWords::Known {
  std::shared_ptr<const routing::RouterMap> map;
  bool worked_out = false;
  report::StatusRouter words{};

  void work_out(const std::string& own);
};

void MapWords::Known::work_out(const std::string& own) {
  worked_out = true;
  const std::vector<routing::RouterRecord>& records = map->records();
  const size_t shown = std::min(records.size(), routers_shown_max);
  words.more_routers = records.size() - shown;
  std::vector<routing::SubnetId> from;
  for (const routing::RouterRecord& record : records) {
    const bool is_self = router_name(record.router) == own;
    if (is_self) {
      for (const routing::DeviceRecord& device : record.devices) from.push_back(device.subnet);
    }
    if (words.routers.size() >= shown) continue;
    report::StatusKnownRouter& known = words.routers.emplace_back();
    known.router = router_name(record.router);
    known.is_self = is_self;
    for (const routing::DeviceRecord& device : record.devices) {
      report::StatusDevice& line = known.devices.emplace_back();
      line.subnet = name_of(device.subnet);
      line.uri = device.uri;
      line.rate_bits_per_s = device.rate_bits_per_s;
      line.latency_s = static_cast<double>(device.latency_ns) / 1e9;
      line.wan = device.wan;
    }
  }
  if (words.more_routers > 0) {
    words.notes.push_back(fmt::format("{} routers are known: ask `ccixfer routes` for the routes", records.size()));
    return;
  }
  words.problems = problems_of(*map);
  for (const routing::SubnetId subnet : from) {
    for (const routing::SubnetId to : map->subnets()) {
      if (subnet == to) continue;
      if (words.routes.size() >= routes_shown_max) {
        words.notes.push_back(fmt::format("more than {} routes: ask `ccixfer routes` for the others", routes_shown_max));
        return;
      }
      const auto route = map->chosen(subnet, to);
      if (!route) continue;
      report::StatusRoute& line = words.routes.emplace_back();
      line.from = name_of(subnet);
      line.to = name_of(to);
      for (const routing::SubnetId crossed : route->subnets) line.subnets.push_back(name_of(crossed));
    }
  }
}

std::function<void(report::Status&)> MapWords::of(std::shared_ptr<const routing::RouterMap> map) {
  if (!known_ || known_->map != map) {
    known_ = std::make_shared<Known>();
    known_->map = std::move(map);
  }
  return [known = known_](report::Status& status) {
    report::StatusRouter& router = *status.router;
    if (!known->worked_out) known->work_out(router.router);
    router.routers = known->words.routers;
    router.more_routers = known->words.more_routers;
    router.routes = known->words.routes;
    router.problems = known->words.problems;
    router.notes = known->words.notes;
  };
}

}  // namespace ccixfer::program
