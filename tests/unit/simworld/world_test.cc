// The simulated world: events in their order, deadlines, crashes, and its work pool.
#include "transports/sim/world.h"

#include <catch2/catch.hpp>
#include <vector>

#include "core/ports/file_system.h"
#include "transports/sim/sim_file_system.h"
#include "transports/sim/sim_work_pool.h"

using namespace ccixfer;
using namespace std::chrono_literals;
using sim::NodeId;
using sim::RunEnd;
using sim::World;

namespace {

struct CountingActor final : sim::Actor {
  std::function<void(Instant)> on_turn = [](Instant) {};
  Instant deadline = never;
  std::vector<Instant> turns;
  void turn(Instant now) override {
    turns.push_back(now);
    if (deadline <= now) deadline = never;
    on_turn(now);
  }
  [[nodiscard]] Instant next_deadline() const override { return deadline; }
};

struct TestJob final : ports::Job {
  int* ran;
  int* done_count;
  int* alive;
  TestJob(int* r, int* d, int* a) : ran(r), done_count(d), alive(a) { ++*alive; }
  ~TestJob() override { --*alive; }
  void run(ports::FileSystem&) override { ++*ran; }
  void done() override { ++*done_count; }
};

}  // namespace

TEST_CASE("world__events_at_one_instant__happen_in_the_order_they_were_made") {
  World world(1);
  std::vector<int> order;
  world.at(Instant(5us), [&] { order.push_back(3); });
  world.at(Instant(2us), [&] {
    order.push_back(1);
    world.at(Instant(1us), [&] { order.push_back(2); });  // in the past: now
  });
  world.at(Instant(5us), [&] { order.push_back(4); });
  CHECK(world.run_for(1s) == RunEnd::idle);
  CHECK(order == std::vector<int>{1, 2, 3, 4});
  CHECK(world.now() == Instant(5us));
}

TEST_CASE("world__deadline_of_an_actor__turns_it_then") {
  World world(2);
  const NodeId node = world.add_node("n");
  CountingActor actor;
  actor.deadline = Instant(3ms);
  world.add_actor(node, &actor);
  CHECK(world.run_for(1s) == RunEnd::idle);
  REQUIRE(actor.turns.size() == 2);
  CHECK(actor.turns[1] == Instant(3ms));
}

TEST_CASE("world__deadline_that_stays_in_the_past__does_not_stop_the_clock") {
  World world(3);
  const NodeId node = world.add_node("n");
  CountingActor actor;
  actor.on_turn = [&](Instant now) { actor.deadline = now; };
  world.add_actor(node, &actor);
  CHECK(world.run_for(1ms) == RunEnd::deadline);
  CHECK(actor.turns.size() > 10);
  CHECK(world.run_until([] { return false; }, never, 1000) == RunEnd::too_many_events);
}

TEST_CASE("world__node_crashes__its_events_and_actors_are_forgotten_until_restart") {
  World world(4);
  const NodeId node = world.add_node("n");
  const NodeId other = world.add_node("o");
  CountingActor actor, other_actor;
  world.add_actor(node, &actor);
  world.add_actor(other, &other_actor);
  int happened = 0;
  world.at_node(node, Instant(2ms), [&] { happened += 1; });
  world.at_node(other, Instant(2ms), [&] { happened += 10; });
  world.at(Instant(1ms), [&] { world.crash(node); });
  world.at(Instant(1500us), [&] { world.restart(node); });
  world.run_for(1s);
  CHECK(happened == 10);
  CHECK(actor.turns.size() == 1);
  CHECK(other_actor.turns.size() == 2);
  CHECK(world.incarnation(node) == 2);
  world.wake(node);
  CHECK(world.run_for(1s) == RunEnd::idle);
  CHECK(actor.turns.size() == 1);
}

TEST_CASE("world__actor_removes_itself_and_adds_another_in_its_turn__is_fine") {
  World world(5);
  const NodeId node = world.add_node("n");
  CountingActor second;
  auto first = std::make_unique<CountingActor>();
  first->on_turn = [&](Instant) {
    world.remove_actor(node, first.get());
    world.add_actor(node, &second);
  };
  world.add_actor(node, first.get());
  world.run_for(1s);
  CHECK(first->turns.size() == 1);
  first.reset();
  world.wake(node);
  world.run_for(1s);
  CHECK(second.turns.size() >= 2);
}

TEST_CASE("sim_work_pool__jobs__run_at_virtual_instants_and_are_reaped") {
  World world(6);
  const NodeId node = world.add_node("n");
  sim::SimFileSystem files(world, node);
  sim::SimWorkPool pool(world, node, files);
  CountingActor actor;
  actor.on_turn = [&](Instant) { pool.reap(); };
  world.add_actor(node, &actor);
  int ran = 0, done = 0, alive = 0;
  for (int i = 0; i < 20; ++i) pool.submit(std::make_unique<TestJob>(&ran, &done, &alive));
  CHECK(pool.in_flight() == 20);
  CHECK(ran == 0);
  CHECK(world.run_until([&] { return done == 20; }, Instant(10s)) == RunEnd::reached);
  CHECK(ran == 20);
  CHECK(alive == 0);
  CHECK(pool.in_flight() == 0);
}

TEST_CASE("sim_work_pool__node_crashes__jobs_go_uncalled_unless_told") {
  const bool drain = GENERATE(false, true);
  World world(7);
  const NodeId node = world.add_node("n");
  sim::SimFileSystem files(world, node);
  auto pool = std::make_unique<sim::SimWorkPool>(world, node, files);
  int ran = 0, done = 0, alive = 0;
  for (int i = 0; i < 20; ++i) pool->submit(std::make_unique<TestJob>(&ran, &done, &alive));
  world.at(Instant(3ms), [&] { world.crash(node); });
  world.run_for(1s);
  CHECK(ran > 0);
  CHECK(ran < 20);
  CHECK(done == 0);
  CHECK(pool->reap() == 0);
  if (drain) {
    CHECK(pool->finish_dead() == 20);
    CHECK(pool->in_flight() == 0);
    CHECK(done == 20);
  }
  pool.reset();
  CHECK(alive == 0);
  CHECK(done == (drain ? 20 : 0));
  world.run_for(1s);
}

TEST_CASE("random__seeds__give_the_known_numbers_and_stay_in_bounds") {
  sim::Random a(42), b(42), c(43);
  CHECK(a.next() == b.next());
  CHECK(a.next() != c.next());
  for (int i = 0; i < 1000; ++i) {
    CHECK(a.below(7) < 7);
    CHECK(a.between(uint64_t{3}, uint64_t{5}) - 3 <= 2);
    CHECK(a.between(Duration(10), Duration(20)) <= Duration(20));
    CHECK(a.exponential(1ms) > Duration(0));
  }
  CHECK_FALSE(a.chance(0));
  CHECK(a.chance(1));
}

TEST_CASE("world__a_processor__the_next_turn_begins_when_it_has_done_its_work") {
  World world(3);
  const NodeId node = world.add_node("a");
  world.set_processor(node, {3us, 2us, 1ms});
  CountingActor actor;
  Instant free_at{};
  actor.on_turn = [&](Instant) {
    world.call(node, 1u << 20);
    free_at = world.free_at(node);
    world.wake(node);
  };
  world.add_actor(node, &actor);
  world.run_until([&] { return actor.turns.size() == 2; }, after(world.now(), 1s));
  REQUIRE(actor.turns.size() == 2);
  CHECK(actor.turns[1] - actor.turns[0] == 3us + 2us + 1ms);
  CHECK(free_at - actor.turns[1] == 3us + 2us + 1ms);
  CHECK(world.worked(node) == 2 * (3us + 2us + 1ms));
  world.remove_actor(node, &actor);
}
