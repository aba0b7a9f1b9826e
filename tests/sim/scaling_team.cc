#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>

#include "app/session/messages.h"
#include "app/simulate/site.h"
#include "tests/sim/scaling.h"

namespace ccixfer::testing {
namespace {

using std::chrono::microseconds, std::chrono::milliseconds, std::chrono::nanoseconds, std::chrono::seconds;

// app/simulate/README.md says where these come from.
constexpr uint64_t sender_bytes_per_s = 80'000'000;
constexpr sim::ProcessorOptions processor{nanoseconds(1000), nanoseconds(1000), microseconds(160)};
constexpr uint64_t bytes_each = 384u << 20;
constexpr uint64_t file_bytes = 1u << 20;  // of the task `files`
constexpr Duration longest = seconds(300);
constexpr uint64_t events_max = 500'000'000;
const std::string top = "/src", root = "/dst", path = "tree";

sim::LinkOptions calm() {
  sim::LinkOptions link;
  link.delay_min = link.delay_max = microseconds(50);
  link.rate_bytes_per_s = sender_bytes_per_s;
  link.window_bytes = 1u << 20;
  link.split_chance = link.again_chance = 0;
  return link;
}

sim::WorldOptions with_change_times() {
  sim::WorldOptions options;
  options.wall_start_ns += 1;
  return options;
}

sim::WorkPoolOptions work(unsigned threads) {
  sim::WorkPoolOptions options;
  options.threads = threads;
  options.work_min = options.work_max = milliseconds(1);
  return options;
}

void make_file(sim::SimFileSystem& files, const std::string& name, uint64_t size_bytes) {
  ports::OpenFlags flags;
  flags.mode = ports::OpenMode::write;
  flags.create = true;
  const int fd = files.open(ports::FileSystem::no_directory, name, flags, 0644);
  REQUIRE(fd >= 0);
  REQUIRE(files.truncate(fd, size_bytes) == 0);
  REQUIRE(files.close(fd) == 0);
}

}  // namespace

ScaledTeamResult run_team(uint64_t seed, uint16_t members, TeamTask task) {
  sim::World world(seed, with_change_times());
  sim::Fabric fabric(world, calm());
  sim::FileSystemOptions disk;
  disk.keeps_no_zeros = true;
  sim::SimFileSystem source(world, world.add_node("the parallel file system"), disk);
  source.make_directory(top);
  const uint64_t count = task == TeamTask::one_file ? 1 : members * (bytes_each / file_bytes);
  const uint64_t size_bytes = members * bytes_each / count;
  for (uint64_t i = 0; i < count; ++i) make_file(source, fmt::format("{}/f{:06}", top, i), size_bytes);
  source.sync_all();

  simulate::Site there(fabric, "receiver", {{"net", "10.0.0.1"}}, disk);
  there.work = work(8);
  there.buffers = 250;  // --memory 1G
  there.files.make_directory(root);
  world.set_processor(there.node, processor);
  simulate::Listener receiver(there, {false, root});
  REQUIRE(!receiver.error());
  std::vector<std::unique_ptr<simulate::Site>> sites;
  std::vector<std::unique_ptr<simulate::Dialler>> senders;
  for (uint16_t i = 0; i < members; ++i) {
    sites.push_back(std::make_unique<simulate::Site>(fabric, fmt::format("S{}", i),
                                                     std::vector<sim::Attachment>{{"net", fmt::format("10.0.1.{}", i + 1)}}));
    simulate::Site& site = *sites.back();
    site.parallel = &source;
    site.work = work(2);
    site.buffers = 4;
    world.set_processor(site.node, processor);
    simulate::DialPlan plan;
    plan.uri = receiver.uri();
    plan.directory = top;
    plan.path = path;
    plan.options = session::option_recursive | session::option_directory | session::option_links | session::option_permissions |
                   session::option_times;
    plan.lanes = 1;
    if (members > 1) {
      session::TeamWish& team = plan.team.emplace();
      team.name.fill(7);
      team.member = i + 1u;
      team.part = static_cast<uint16_t>(i + 1);
      team.parts = members;
      team.version = "sim";
    }
    senders.push_back(std::make_unique<simulate::Dialler>(site, plan));
  }
  const Instant began = world.now();
  const auto ended = [&] {
    return std::all_of(senders.begin(), senders.end(), [](const auto& sender) { return sender->ended(); });
  };
  ScaledTeamResult result;
  if (world.run_until(ended, after(world.now(), longest), events_max) != sim::RunEnd::reached) return result;
  const Duration took = world.now() - began;
  result.seconds = std::chrono::duration<double>(took).count();
  result.bytes_per_s = static_cast<double>(members * bytes_each) / result.seconds;
  result.receiver_busy = std::chrono::duration<double>(world.worked(there.node)).count() / result.seconds;
  result.is_whole = true;
  for (const auto& sender : senders) {
    result.sent_bytes.push_back(sender->tally().bytes_sent);
    if (sender->result().kind != ErrorKind::ok) result.is_whole = false;
  }
  for (uint64_t i = 0; i < count; ++i) {
    ports::FileStat stat;
    const std::string name = fmt::format("{}/{}/f{:06}", root, path, i);
    if (there.files.stat_at(ports::FileSystem::no_directory, name, stat, true) < 0 || stat.size_bytes != size_bytes)
      result.is_whole = false;
  }
  world.crash(there.node);
  receiver.bury();
  return result;
}

}  // namespace ccixfer::testing
