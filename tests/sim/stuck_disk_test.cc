// A disk that never answers: who waits for it ends in bounded time, says which disk, and touches nothing that its jobs still use.
#include <catch2/catch.hpp>

#include "app/session/disk_watch.h"
#include "tests/sim/swarm.h"

using namespace ccixfer;
using namespace std::chrono_literals;
using namespace ccixfer::testing;

namespace {

constexpr double timeout_s = 20;

// One file from S to D. No job in the stuck disk ever ends.
struct StuckWorld {
  StuckWorld(bool pull, bool receiver_is_stuck) {
    source.files.put("/src/a", std::string(100'000, 'a'), 0644);
    target.files.make_directory("/dst");
    (receiver_is_stuck ? target : source).work.stuck_chance = 1;
    listener = std::make_unique<Listener>(pull ? source : target, ListenPlan{pull, pull ? "/src" : "/dst"});
    DialPlan plan;
    plan.pull = pull;
    plan.uri = listener->uri();
    plan.directory = pull ? "/dst" : "/src";
    plan.options = session::option_recursive | session::option_directory;
    plan.lanes = 1;
    plan.timeout = std::chrono::seconds(static_cast<int>(timeout_s));
    dialler = std::make_unique<Dialler>(pull ? target : source, plan);
  }
  ~StuckWorld() {
    for (Site* site : {&source, &target}) world.crash(site->node);
    listener->bury();
    dialler->bury();
  }
  double run_until_left() {  // virtual seconds
    const Instant began = world.now();
    const auto left = [this] { return dialler->may_be_left(); };
    REQUIRE(world.run_until(left, after(world.now(), 30min), 3'000'000) == sim::RunEnd::reached);
    return std::chrono::duration<double>(world.now() - began).count();
  }

  sim::World world{7};
  sim::Fabric fabric{world, {}};
  Site source{fabric, "S", {{"net", "10.0.0.2"}}};
  Site target{fabric, "D", {{"net", "10.0.0.3"}}};
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Dialler> dialler;
};

}  // namespace

TEST_CASE("stuck_disk__either_side_push_or_pull__30_that_names_the_disk_in_bounded_time") {
  const bool pull = GENERATE(false, true);
  const bool receiver_is_stuck = GENERATE(false, true);
  INFO("pull " << pull << ", of the receiver " << receiver_is_stuck);
  StuckWorld world(pull, receiver_is_stuck);
  const double seconds = world.run_until_left();
  const Error& result = world.dialler->result();
  CHECK(result.kind == ErrorKind::timeout);
  CHECK(seconds > (session::disk_timeouts - 1) * timeout_s);
  CHECK(seconds < (session::disk_timeouts + 1) * timeout_s);
  const bool own = pull == receiver_is_stuck;
  INFO(result.message);
  CHECK(result.message.rfind(own    ? "the disk here has not answered for"
                             : pull ? "the sender's disk has not answered for"
                                    : "the receiver's disk has not answered for",
                             0) == 0);
  CHECK(world.dialler->is_in_use() == (pull && receiver_is_stuck));
}

TEST_CASE("stuck_disk__pull_is_interrupted__its_process_may_end_and_destroys_nothing") {
  StuckWorld world(true, true);
  world.world.run_for(30s);
  REQUIRE_FALSE(world.dialler->may_be_left());
  world.dialler->interrupt();
  world.world.wake(world.target.node);
  CHECK(world.run_until_left() < 5);
  CHECK(world.dialler->result().kind == ErrorKind::interrupted);
  CHECK(world.dialler->is_in_use());
}
