// Names that are the receiver's own, and what is said of a disk that does not answer.
#include <catch2/catch.hpp>
#include <string>

#include "app/session/disk_watch.h"
#include "app/session/reserved.h"

using namespace ccixfer;
using namespace ccixfer::session;

TEST_CASE("reserved__names_of_the_receiver_in_any_case__and_no_others") {
  for (const char* name : {".ccixfer", ".CCIXFER", ".cCiXfEr", ".ccixfer.00.part", ".CcixFER.x.PART"}) {
    INFO(name);
    CHECK(is_reserved_name(name));
  }
  for (const char* name : {"", ".", "ccixfer", ".ccixfe", ".ccixfers", ".ccixfer.part", ".ccixfer.x.parts", "[ccixfer",
                           ".ccixfer.x", ".ccixfers.part", ".ccixfer-old.part"}) {
    INFO(name);
    CHECK_FALSE(is_reserved_name(name));
  }
}

TEST_CASE("stuck_disk__who_did_not_answer__is_said_from_the_patience_on") {
  using namespace std::chrono_literals;
  CHECK(stuck_disk(89s, 89s, 90s, "the sender's").empty());
  CHECK(stuck_disk(90s, 89s, 90s, "the sender's") == "the disk here has not answered for 90 s");
  CHECK(stuck_disk(89s, 90s, 90s, "the sender's") == "the sender's disk has not answered for 90 s");
  CHECK(stuck_disk(100s, 95s, 90s, "the sender's") == "the sender's disk has not answered for 95 s");
}

TEST_CASE("peers_disk__heard__alive_as_long_as_it_moves_or_its_silence_is_short") {
  using namespace std::chrono_literals;
  PeersDisk disk;
  CHECK(disk.heard({1, 100'000}, 90s));
  CHECK_FALSE(disk.heard({1, 90'000}, 90s));
  CHECK(disk.silent() == 90s);
  CHECK(disk.heard({1, 89'999}, 90s));
  CHECK(disk.heard({2, ~uint64_t{0}}, 90s));
  CHECK(disk.silent() > 90s);
  CHECK(disk.silent() < forever);
}

TEST_CASE("disk_watch__held_back_on_purpose__counts_as_life_and_the_peer_is_to_hear_of_it") {
  using namespace std::chrono_literals;
  DiskWatch watch;
  Instant now{5h};
  watch.look(now, 0, 7);
  for (int i = 0; i < 3; ++i) {
    now += alive_interval;
    watch.hold_back();
    watch.look(now, 0, 7);
    CHECK(watch.waiting());
    CHECK(watch.moved());
    CHECK(watch.silent(now) == 0s);
    CHECK(watch.next_deadline() != never);
    CHECK(watch.alive_due(now) == (i > 0));
  }
  now += alive_interval;
  watch.look(now, 0, 7);
  CHECK_FALSE(watch.waiting());
  CHECK_FALSE(watch.moved());
  CHECK(watch.next_deadline() == never);
}
