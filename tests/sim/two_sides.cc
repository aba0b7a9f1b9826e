#include "tests/sim/two_sides.h"

#include <fmt/format.h>

#include "app/session/messages.h"
#include "core/base/units.h"
#include "tests/sim/seeds.h"

namespace ccixfer::testing {

using simulate::Site;

namespace {

constexpr Duration virtual_time_max = std::chrono::minutes(30);
constexpr uint64_t events_max = 5'000'000;
constexpr const char* networks[] = {"left", "right"};

}  // namespace

TwoSides::TwoSides(uint64_t seed, const sim::WorldOptions& options, const sim::LinkOptions& link, bool has_router)
    : world(seed, options), random(world.random().next()), fabric(world, link) {
  if (!has_router) return;
  router_site_ = std::make_unique<Site>(fabric, "router",
                                        std::vector<sim::Attachment>{{networks[0], "10.0.0.99"}, {networks[1], "10.0.1.99"}});
  simulate::RouterPlan plan;
  for (uint32_t i = 0; i < 2; ++i) plan.devices.push_back({router_site_->networks[i], {1, i}, {}});
  router_ = std::make_unique<simulate::RouterProcess>(*router_site_, plan);
}

std::unique_ptr<Site> TwoSides::site(const char* kind, uint32_t side, size_t number, const sim::FileSystemOptions& disk) {
  const char* network = networks[router_ ? side : 0];
  auto made = std::make_unique<Site>(fabric, fmt::format("{}{}", kind, number),
                                     std::vector<sim::Attachment>{{network, fmt::format("10.0.{}.{}", side, number + 1)}}, disk);
  if (router_) made->routing = simulate::Routing{{1, side}, {fmt::format("sim://10.0.{}.99:{}", side, simulate::router_port)}};
  made->verbose = verbose() ? 2 : 0;
  return made;
}

std::unique_ptr<Site> TwoSides::source(size_t number) { return site("S", 0, number, {}); }
std::unique_ptr<Site> TwoSides::destination(size_t number, const sim::FileSystemOptions& disk) {
  return site("D", 1, number, disk);
}

void TwoSides::sometime(Duration within, std::function<void()> action) {
  world.at(after(world.now(), random.exponential(within / 4)), std::move(action));
}

void TwoSides::plan_mending(const sim::LinkOptions& link) {
  world.at(after(world.now(), std::chrono::seconds(20)), [this, link] {
    sim::LinkOptions mended = link;
    mended.reset_mean = forever;
    mended.dial_failure_chance = mended.corrupt_chance = 0;
    for (const char* network : networks) fabric.set_link(network, mended);
  });
}

std::string TwoSides::run(const std::function<bool()>& ended, const std::string& whoever) {
  const sim::RunEnd end = world.run_until(ended, after(world.now(), virtual_time_max), events_max);
  if (end == sim::RunEnd::reached) return {};
  return end == sim::RunEnd::idle ? fmt::format("nothing happens any more and not all {} have ended", whoever)
                                  : fmt::format("not all {} ended in time", whoever);
}

simulate::DialPlan archive_plan(const std::string& uri, const std::string& path, uint16_t lanes) {
  simulate::DialPlan plan;
  plan.uri = uri;
  plan.path = path;
  plan.options = session::option_recursive | session::option_directory | session::option_links | session::option_permissions |
                 session::option_times;
  plan.lanes = lanes;
  plan.timeout = std::chrono::seconds(300);
  return plan;
}

std::string foreign_content(const sim::Tree& tree, const Allowed& allowed) {
  for (const auto& [name, entry] : tree) {
    if (name.starts_with(".ccixfer") || entry.stat.type != ports::FileType::regular) continue;
    const auto contents = allowed.find(name);
    if (contents == allowed.end()) return "nobody sent " + printable(name);
    if (!contents->second.contains(entry.content)) return printable(name) + " is no source's";
  }
  return {};
}

}  // namespace ccixfer::testing
