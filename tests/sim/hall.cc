#include "tests/sim/hall.h"

#include <fmt/format.h>

#include "app/session/messages.h"
#include "tests/sim/seeds.h"

namespace ccixfer::testing {

using simulate::Dialler;
using simulate::Listener;
using simulate::Site;

namespace {

const std::string network = "hall";
constexpr uint64_t events_max = 50'000'000;
constexpr uint32_t archive =
    session::option_recursive | session::option_links | session::option_permissions | session::option_times;

}  // namespace

Hall::Hall(uint64_t seed, uint32_t receiver_buffers, const sim::LinkOptions& link, const sim::WorldOptions& nodes)
    : world(seed, nodes), fabric(world, link), receiver(fabric, "D", {{network, "10.0.0.1"}}) {
  receiver.buffers = receiver_buffers;
  receiver.verbose = verbose() ? 2 : 0;
  receiver.files.make_directory("/dst");
}

Hall::~Hall() {
  if (world.alive(receiver.node)) world.crash(receiver.node);
  if (listener) listener->bury();
  for (const auto& guest : guests) {
    if (world.alive(guest->site->node)) world.crash(guest->site->node);
    if (guest->dialler) guest->dialler->bury();
  }
}

void Hall::listen(const simulate::ListenPlan& listen_plan) {
  plan = listen_plan;
  listener = std::make_unique<Listener>(receiver, plan);
}

Hall::Guest& Hall::add_guest(const std::function<void(sim::SimFileSystem& files, size_t index)>& fill) {
  Guest& guest = *guests.emplace_back(std::make_unique<Guest>());
  const size_t index = guests.size() - 1;
  guest.site =
      std::make_unique<Site>(fabric, fmt::format("S{}", index),
                             std::vector<sim::Attachment>{{network, fmt::format("10.0.{}.{}", 1 + index / 200, 1 + index % 200)}});
  guest.site->verbose = verbose() ? 2 : 0;
  guest.site->files.make_directory("/src");
  fill(guest.site->files, index);
  guest.tree = guest.site->files.tree("/src");
  guest.path = fmt::format("g{}", index);
  return guest;
}

void Hall::start(Guest& guest, Duration timeout, std::optional<uint32_t> retries) {
  simulate::DialPlan dial;
  dial.timeout = timeout;
  dial.retries = retries;
  start(guest, dial);
}

void Hall::start(Guest& guest, simulate::DialPlan dial) {
  dial.directory = "/src";
  dial.path = guest.path;
  dial.uri = fmt::format("sim://10.0.0.1:{}", simulate::receiver_port);
  dial.options = archive | session::option_directory;
  dial.lanes = 1;
  guest.dialler = std::make_unique<Dialler>(*guest.site, dial);
}

void Hall::rest(Duration time) {
  world.at(after(world.now(), time), [] {});
  world.run_for(time);
}

void Hall::crash_receiver() {
  world.crash(receiver.node);
  listener->bury();
  listener.reset();
}

void Hall::restart_receiver() {
  if (receiver.files.down()) receiver.files.mount();
  world.restart(receiver.node);
  listener = std::make_unique<Listener>(receiver, plan);
}

bool Hall::run_until(const std::function<bool()>& done, Duration longest) {
  return world.run_until(done, after(world.now(), longest), events_max) == sim::RunEnd::reached;
}

bool Hall::run_to_the_end(Duration longest) {
  const Instant began = world.now();
  return run_until(
      [&] {
        bool all = true;
        for (const auto& guest : guests) {
          if (!guest->dialler) continue;
          guest->waited = guest->waited || guest->dialler->place().has_value();
          if (!guest->dialler->ended()) {
            all = false;
          } else if (guest->ended_at == Duration(0)) {
            guest->ended_at = world.now() - began;
          }
        }
        return all;
      },
      longest);
}

std::string Hall::missing(const Guest& guest) const {
  return simulate::difference(guest.tree, receiver.files.tree("/dst/" + guest.path), true);
}

}  // namespace ccixfer::testing
