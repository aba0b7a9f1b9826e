// A further worker of a router: it forwards by the map that worker 0 gives it, and tells nobody anything.
#include "tests/unit/routing/routed_world.h"

namespace ccixfer::routing::test {
namespace {

// left - r1 - r2 - right, and a worker of r1 with devices of its own on the same networks, which `client` dials.
struct WithWorker {
  WithWorker() {
    site.chain(2);
    site.options.follows = true;
    site.add_router("w1",
                    {{.network = "lan1", .address = "10.0.0.3", .subnet = {1, 1}, .peers = {}, .uri = "sim://10.0.0.1:7000"},
                     {.network = "mid1", .address = "10.9.0.3", .subnet = {1, 11}, .peers = {}, .uri = "sim://10.9.0.1:7000"}});
    site.settle();
    client = std::make_unique<App>(site.world, site.fabric, "lan1", "10.0.0.4", SubnetId{1, 1},
                                   std::vector<std::string>{"sim://10.0.0.3:7000"});
  }
  [[nodiscard]] Router& router() const { return *site.routers[0]->router; }
  [[nodiscard]] Router& worker() const { return *site.routers[2]->router; }
  void follow() {
    worker().follow(router().map());
    site.world.wake(site.routers[2]->node);
  }
  Status status_of_connect() { return site.connect_event(*client, site.right->uri(), std::chrono::seconds(5)).status; }

  Site site;
  std::unique_ptr<App> client;
};

}  // namespace

TEST_CASE("worker__that_follows__forwards_by_the_map_it_was_given") {
  WithWorker with;
  CHECK(with.worker().ready());
  CHECK(with.worker().uris() == with.router().uris());
  CHECK(with.status_of_connect() == Status::no_route);  // it has heard of nobody
  with.follow();
  REQUIRE(with.status_of_connect() == Status::success);
  CHECK(with.worker().connections_open() == 1);
  CHECK(with.router().connections_open() == 0);
}

TEST_CASE("worker__when_the_map_changes__has_the_old_one_until_it_is_given_the_new") {
  WithWorker with;
  with.follow();
  const auto before = with.router().map();
  CHECK(with.router().map() == before);  // the same object, as nothing has changed
  with.site.kill(1);
  REQUIRE(with.site.run([&] { return with.router().map() != before && with.router().routers_known() == 1; }));
  with.follow();
  CHECK(with.status_of_connect() == Status::no_route);
}

TEST_CASE("worker__dialled_by_a_router__has_no_link") {
  WithWorker with;
  with.site.options.follows = false;
  with.site.add_router("r3", {{.network = "lan1", .address = "10.0.0.5", .subnet = {1, 1}, .peers = {"sim://10.0.0.3:7000"}},
                              {.network = "lan3", .address = "10.0.0.1", .subnet = {1, 3}, .peers = {}}});
  Router& third = *with.site.routers[3]->router;
  REQUIRE(with.site.run([&] { return third.ready(); }));  // its peer was tried once
  CHECK(third.links_open() == 0);
  CHECK(with.worker().links_open() == 0);
  CHECK(with.site.routers[2]->counters.get(Counter::connections_refused) >= 1);
}

TEST_CASE("worker__that_drains__ends_its_connections_and_withdraws_no_record") {
  WithWorker with;
  with.follow();
  REQUIRE(with.status_of_connect() == Status::success);
  with.worker().drain();
  with.site.world.wake(with.site.routers[2]->node);
  REQUIRE(with.site.run([&] { return with.worker().drained(); }));
  CHECK(with.worker().connections_open() == 0);
  CHECK(with.site.routers[1]->router->routers_known() == 2);
  CHECK(with.site.connect_event(*with.site.left, with.site.right->uri()).status == Status::success);  // through worker 0
}

}  // namespace ccixfer::routing::test
