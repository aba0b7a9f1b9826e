#include <catch2/catch.hpp>

#include "app/main/dialled.h"
#include "app/main/forwarder.h"
#include "app/main/machine.h"
#include "app/main/transfer_loop.h"

namespace ccixfer::program {

TEST_CASE("lanes_for__round_trip__one_nearby_more_on_long_paths_and_bounded") {
  using namespace std::chrono_literals;
  CHECK(lanes_for(0ns) == 1);
  CHECK(lanes_for(1ms) == 1);
  CHECK(lanes_for(10ms) == 7);
  CHECK(lanes_for(100ms) == 16);
}

TEST_CASE("tally__transfer_over_two_sessions__counts_once_and_what_crossed_the_wire_adds_up") {
  Tally first;
  first.files = 100;
  first.files_failed = 3;
  first.bytes = 1000;
  first.bytes_total = 4000;
  first.bytes_sent = 1500;
  Tally second = first;
  second.files = 40;
  second.files_failed = 0;
  second.bytes = 700;
  second.bytes_total = 900;
  // Not as far as the first had come: its counts are what is known.
  const Tally early = continued(first, second);
  CHECK(early.files == 100);
  CHECK(early.files_failed == 3);
  CHECK(early.bytes == 1000);
  CHECK(early.bytes_total == 4000);
  CHECK(early.bytes_sent == 3000);
  second.files = 105;
  second.bytes = 900;
  const Tally farther = continued(first, second);
  CHECK(farther.files == 105);
  CHECK(farther.files_failed == 0);
  CHECK(farther.bytes == 900);
  CHECK(farther.bytes_total == 900);
  // It has come to the end of the tree: files that are no more in it do not count.
  second.files = 2;
  second.over = true;
  CHECK(continued(first, second).files == 2);
}

TEST_CASE("tally_of__what_the_source_could_not_list__counts_beside_the_files_that_failed") {
  recv::DestinationTotals totals;
  totals.files_failed = 3;
  totals.unlisted_failed = 2;
  totals.unlisted_vanished = 4;
  const Tally tally = tally_of(totals);
  CHECK(tally.files_failed == 5);
  CHECK(tally.files_vanished == 4);
  CHECK(end_of_tally(tally).kind == ErrorKind::partial);
}

// Push (send::Totals) and pull (recv::DestinationTotals) lead to the same Tally, and that to the same end: one failed and one
// changed file are 23 both ways, a changed file alone 24.
TEST_CASE("end_of_tally__failed_and_vanished__23_before_24_at_either_end") {
  for (const uint64_t failed : {0u, 1u, 2u}) {
    for (const uint64_t vanished : {0u, 1u, 2u}) {
      for (const bool unlisted : {false, true}) {
        recv::DestinationTotals totals;
        (unlisted ? totals.unlisted_failed : totals.files_failed) = failed;
        (unlisted ? totals.unlisted_vanished : totals.files_vanished) = vanished;
        Tally pushed;
        pushed.files_failed = failed;
        pushed.files_vanished = vanished;
        const ErrorKind expected = failed > 0 ? ErrorKind::partial : vanished > 0 ? ErrorKind::vanished : ErrorKind::ok;
        INFO(failed << " failed, " << vanished << " vanished");
        CHECK(end_of_tally(tally_of(totals)).kind == expected);
        CHECK(end_of_tally(pushed).kind == expected);
      }
    }
  }
  Tally both;
  both.files_failed = 1;
  both.files_vanished = 1;
  CHECK(end_of_tally(both).message.rfind("2 files failed", 0) == 0);
}

TEST_CASE("pool_buffers__too_little_memory__usage_that_says_how_much") {
  CHECK(pool_buffers(256u << 20) == 63u);
  const auto little = pool_buffers(16u << 20);
  REQUIRE_FALSE(little);
  CHECK(little.error().message.find("17MiB") != std::string::npos);
  CHECK(pool_buffers(17u << 20) == 4u);
}

namespace {

struct Recorder final : session::LinkUser {
  std::vector<std::string> seen;
  void on_lane_up(session::LaneIndex lane) override { seen.push_back("up " + std::to_string(lane)); }
  void on_lane_down(session::LaneIndex lane) override { seen.push_back("down " + std::to_string(lane)); }
  void on_lane_message(session::LaneIndex lane, const session::Message&) override {
    seen.push_back("lane message " + std::to_string(lane));
  }
  void on_message(const session::Message&) override { seen.emplace_back("message"); }
  void on_put(session::LaneIndex, uint64_t, Status) override { seen.emplace_back("put"); }
  void on_link_lost(const Error& error) override { seen.push_back("lost " + error.message); }
};

}  // namespace

TEST_CASE("forwarder__what_comes_before_the_machine__is_replayed_without_dead_lanes") {
  Forwarder forwarder;
  forwarder.on_lane_up(0);
  forwarder.on_lane_up(1);
  forwarder.on_lane_message(0, session::LaneOpen{});
  forwarder.on_lane_message(1, session::LaneOpen{});
  forwarder.on_lane_down(1);
  Recorder machine;
  forwarder.attach(machine);
  CHECK(machine.seen == std::vector<std::string>{"up 0", "lane message 0"});
  forwarder.on_message(session::Bye{});
  CHECK(machine.seen.back() == "message");
}

TEST_CASE("forwarder__open_in_parts__joined_and_bad_parts_end_the_session") {
  Forwarder good;
  good.on_message(session::OpenPart{5, 4, 0, "ab"});
  CHECK_FALSE(good.open());
  good.on_message(session::OpenPart{5, 4, 2, "cd"});
  REQUIRE(good.open());
  CHECK(good.open()->path == "abcd");
  CHECK(good.open()->options == 5);
  good.on_message(session::OpenPart{5, 4, 0, "ab"});
  CHECK(good.lost());
  Forwarder gap;
  gap.on_message(session::OpenPart{0, 4, 2, "cd"});
  CHECK(gap.lost()->kind == ErrorKind::protocol);
  Forwarder huge;
  huge.on_message(session::OpenPart{0, 0xFFFFFFFF, 0, "x"});
  CHECK(huge.lost());
}

TEST_CASE("forwarder__abort_that_ends_no_session__protocol_error") {
  for (const ErrorKind kind : {ErrorKind::ok, ErrorKind::partial, ErrorKind::vanished, ErrorKind::max_delete}) {
    Forwarder forwarder;
    forwarder.on_message(session::Abort{kind, "fine"});
    REQUIRE(forwarder.lost());
    CHECK(forwarder.lost()->kind == ErrorKind::protocol);
  }
  Forwarder honest;
  honest.on_message(session::Abort{ErrorKind::no_space, "full"});
  CHECK(honest.lost()->kind == ErrorKind::no_space);
}

TEST_CASE("forwarder__place_in_the_queue__is_its_owners_and_each_word_counts") {
  Forwarder forwarder;
  CHECK_FALSE(forwarder.queued());
  forwarder.on_message(session::Queued{3});
  forwarder.on_message(session::Queued{3});  // the same place again: those before it get on
  REQUIRE(forwarder.queued());
  CHECK(forwarder.queued()->before == 3);
  CHECK(forwarder.queue_news() == 2);
  for (int i = 0; i < 1000; ++i) forwarder.on_message(session::Queued{2});
  CHECK_FALSE(forwarder.lost());  // it waits for as long as it takes
  Recorder machine;
  forwarder.attach(machine);
  CHECK(machine.seen.empty());
}

TEST_CASE("reached__a_later_session_that_does_the_same_again__is_no_progress") {
  Reached most;
  CHECK(advance(most, {5, 1, 100}));
  CHECK_FALSE(advance(most, {0, 0, 0}));  // a new session
  CHECK_FALSE(advance(most, {5, 1, 100}));
  CHECK(advance(most, {6, 0, 0}));
  CHECK(advance(most, {0, 2, 0}));
  CHECK(advance(most, {0, 0, 101}));
  CHECK_FALSE(advance(most, {6, 2, 101}));
}

TEST_CASE("forwarder__flood_before_the_session_is_open__protocol_error") {
  Forwarder forwarder;
  for (size_t i = 0; i <= early_messages_max; ++i) forwarder.on_message(session::Durable{});
  REQUIRE(forwarder.lost());
  CHECK(forwarder.lost()->kind == ErrorKind::protocol);
}

}  // namespace ccixfer::program
