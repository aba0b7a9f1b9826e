// One transfer to a peer that has several addresses: they are tried in turn until one of them was reached.
#include <catch2/catch.hpp>

#include "tests/unit/main/dialled_rig.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;
using namespace std::chrono_literals;

using Words = std::vector<std::string>;

namespace {

struct Addresses {
  explicit Addresses(std::optional<uint32_t> retries)
      : rig([&](DialPlan& plan) {
          plan.retries = retries;
          plan.uris = {"fake://dead", "fake://deaf", "fake://far"};
        }) {
    rig.net.dial_status = [this](std::string_view uri) {
      dialled.emplace_back(uri);
      return uri == alive ? Status::success : Status::unreachable;
    };
  }
  std::string alive;
  Words dialled;
  DialledRig rig;
};

}  // namespace

TEST_CASE("dialled__several_addresses_and_no_retries__each_is_tried_once") {
  Addresses peer(0);
  SECTION("none answers") {
    REQUIRE(peer.rig.run_to_the_end());
    CHECK(peer.rig.transfer->result().kind == ErrorKind::no_answer);
    CHECK(peer.dialled == Words{"fake://dead", "fake://deaf", "fake://far"});
    CHECK(peer.rig.retries() == Words{"fake://dead: nobody answers", "fake://deaf: nobody answers"});
  }
  SECTION("the last one answers") {
    peer.alive = "fake://far";
    REQUIRE(peer.rig.run_until_moving());
    CHECK(peer.dialled == Words{"fake://dead", "fake://deaf", "fake://far"});
    CHECK(peer.rig.script.tries_changed_again == std::vector<bool>{false});
    peer.rig.script.error = Error{ErrorKind::network, "it broke"};
    peer.rig.script.finished = true;
    REQUIRE(peer.rig.run_to_the_end());
    CHECK(peer.rig.transfer->result().kind == ErrorKind::network);
    CHECK(peer.rig.script.made == 1);
  }
}

TEST_CASE("dialled__several_addresses_and_retries__all_of_them_are_one_attempt_until_one_was_reached") {
  Addresses peer(1);
  SECTION("none answers") {
    REQUIRE(peer.rig.run_to_the_end());
    CHECK(peer.dialled == Words{"fake://dead", "fake://deaf", "fake://far", "fake://dead", "fake://deaf", "fake://far"});
  }
  SECTION("one answers, and each of its sessions breaks") {
    peer.alive = "fake://far";
    peer.rig.script.error = Error{ErrorKind::network, "it broke"};
    peer.rig.script.finished = true;
    REQUIRE(peer.rig.run_to_the_end());
    CHECK(peer.rig.script.made == 2);
    CHECK(peer.dialled == Words{"fake://dead", "fake://deaf", "fake://far", "fake://far"});
  }
}
