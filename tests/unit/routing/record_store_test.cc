// What a router makes of the records that it hears, and when it tells its own.
#include "routing/router/record_store.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;
using std::chrono::seconds;

namespace {

constexpr uint64_t own_id = 1;
const RecordPeer neighbour{70, 1, false}, stranger{71, 2, true};

// A router with a device on 1:1 and a WAN device on 1:9. No peer is there: what is flooded is
// noted.
struct Told {
  Told()
      : store(
            own_id, 1, {}, {{Metric::hops}, {}},
            [this] {
              return std::vector<ToldDevice>{{0, {{1, 1}, 1'000'000'000, 0, true, false, {}, "sim://10.0.0.1:7", latency_ns}},
                                             {4, {{1, 9}, 1'000'000'000, 0, true, true, {}, "sim://10.9.0.1:7", 0}}};
            },
            [this](const RouterRecord& record, Bytes, uint64_t except, const RouterRecord& replaced) {
              flooded.push_back(record);
              before.push_back(replaced);
              excepted.push_back(except);
            },
            counters) {
    store.turn(now);
  }
  std::string hear(const RecordPeer& from, const RouterRecord& record) {
    std::vector<std::byte> bytes;
    REQUIRE(encode_record(record, bytes));
    flooded.clear();
    excepted.clear();
    before.clear();
    return std::string(store.hear(from, bytes, now));
  }
  static RouterRecord of_router(uint64_t id, uint64_t instance, uint32_t as = 1, uint32_t subnet = 2) {
    RouterRecord record{id, instance, false, {}};
    const uint32_t shared = as == 1 ? 1 : 7;
    const std::string address = "sim://10.1." + std::to_string(as) + "." + std::to_string(id);
    record.devices.push_back({{as, shared}, 1'000'000'000, 0, true, as != 1, {}, address + ":7", 0});
    record.devices.push_back({{as, subnet}, 1'000'000'000, 0, true, false, {}, address + ":8", 0});
    return record;
  }
  static RouterRecord gone(uint64_t id, uint64_t instance) { return {id, instance, true, {}}; }
  void pass(Duration time) {
    now += time;
    store.turn(now);
  }

  Counters counters;
  Instant now = Instant{} + seconds(100);
  uint64_t latency_ns = 0;
  std::vector<RouterRecord> flooded;
  std::vector<uint64_t> excepted;
  std::vector<RouterRecord> before;
  RecordStore store;
};

}  // namespace

TEST_CASE("record_store__a_record__is_passed_on_once_and_not_to_where_it_came_from") {
  Told told;
  const RouterRecord record = Told::of_router(5, 3);
  CHECK(told.hear(neighbour, record).empty());
  REQUIRE(told.flooded.size() == 1);
  CHECK(told.flooded[0] == record);
  CHECK(told.excepted[0] == neighbour.link);
  CHECK(told.hear(neighbour, record).empty());
  CHECK(told.flooded.empty());
  CHECK(told.hear(neighbour, Told::of_router(5, 2)).empty());
  CHECK(told.flooded.empty());
  CHECK(told.store.known() == 2);
}

TEST_CASE("record_store__a_record_that_is_passed_on__comes_with_the_one_that_it_replaces") {
  Told told;
  const RouterRecord first = Told::of_router(5, 3), next = Told::of_router(5, 4, 1, 3);
  REQUIRE(told.hear(neighbour, first).empty());
  CHECK(told.before.at(0).devices.empty());
  REQUIRE(told.hear(neighbour, next).empty());
  CHECK(told.before.at(0) == first);
  told.before.clear();
  told.store.suspect(1, 5, told.now);
  CHECK(told.before.at(0) == next);
  told.before.clear();
  told.latency_ns = 1000;
  told.store.tell_now();
  CHECK(told.before.at(0).devices.at(0).latency_ns == 0);
  CHECK(told.flooded.back().devices.at(0).latency_ns == 1000);
}

TEST_CASE("record_store__a_record_is_heard__the_map_has_the_way_and_its_device") {
  Told told;
  CHECK(told.store.next_hops({1, 9}, {1, 9}, {1, 2}).empty());
  CHECK(told.hear(neighbour, Told::of_router(5, 3)).empty());
  const auto hops = told.store.next_hops({1, 9}, {1, 9}, {1, 2});
  REQUIRE(hops.size() == 1);
  CHECK(hops[0].device == 0);
  const auto back = told.store.next_hops({1, 2}, {1, 1}, {1, 9});
  REQUIRE(back.size() == 1);
  CHECK(back[0].device == 4);
}

TEST_CASE("record_store__what_a_peer_may_not_tell__is_refused_and_changes_nothing") {
  Told told;
  CHECK(told.store.hear(neighbour, {}, told.now) == "a malformed record");
  CHECK(told.hear(neighbour, Told::of_router(5, 3, 2)) == "a record of an AS that it may not bring");
  CHECK(told.hear(neighbour, Told::of_router(5, instance_max + 1)) == "a record from the future");
  REQUIRE(told.hear(neighbour, Told::of_router(5, 3)).empty());
  CHECK(told.hear(neighbour, Told::of_router(5, 4 + instance_jump_max)) == "a record from the future");
  CHECK(told.store.known() == 2);
  CHECK(told.flooded.empty());
}

// They may have been invented by anybody behind the peer that brings them.
TEST_CASE("record_store__instances_that_nobody_can_have__are_dropped_and_nobody_is_at_fault") {
  Told told;
  CHECK(told.hear(neighbour, Told::of_router(5, instance_jump_max + 1)).empty());
  CHECK(told.hear(neighbour, Told::of_router(own_id, 2 + instance_jump_max)).empty());
  CHECK(told.hear(neighbour, Told::gone(own_id, 2 + instance_jump_max)).empty());
  CHECK(told.hear(stranger, Told::of_router(own_id, 9, 2)).empty());
  CHECK(told.counters.get(Counter::records_rejected) == 4);
  CHECK(told.store.known() == 1);
  CHECK(told.flooded.empty());
  CHECK(told.store.own().instance() == 1);
  CHECK(told.hear(neighbour, Told::of_router(5, instance_jump_max)).empty());
  CHECK(told.store.known() == 2);
}

TEST_CASE("record_store__two_as_say_the_same_number__each_is_believed_of_its_own_router") {
  const RecordPeer four{72, 4, true, 5}, five{73, 5, true, 5};
  Told told;
  const auto is_reached = [&](uint32_t as) { return !told.store.next_hops({1, 1}, {1, 1}, {as, 2}).empty(); };
  CHECK(told.hear(four, Told::of_router(5, 3, 4)).empty());
  CHECK(told.hear(five, Told::of_router(5, 2, 5)).empty());
  CHECK(told.hear(neighbour, Told::of_router(5, 1)).empty());
  CHECK(told.store.known() == 4);
  CHECK((is_reached(4) && is_reached(5)));
  CHECK(told.hear(five, Told::gone(5, 4)).empty());
  CHECK((is_reached(4) && !is_reached(5)));
  told.flooded.clear();
  told.store.suspect(4, 5, told.now);
  CHECK_FALSE(is_reached(4));
  CHECK(told.store.known() == 2);
  CHECK_FALSE(told.store.next_hops({1, 9}, {1, 9}, {1, 2}).empty());  // ours stays, and nobody hears that it has gone
  CHECK(std::none_of(told.flooded.begin(), told.flooded.end(), [](const RouterRecord& record) { return record.router == 5; }));
}

TEST_CASE("record_store__a_record_of_another_as__only_our_own_says_that_it_is_reached") {
  Told told;
  CHECK(told.hear(stranger, Told::of_router(6, 1, 2)).empty());
  REQUIRE(told.flooded.size() == 1);
  CHECK(told.flooded[0].router == own_id);
  CHECK(told.flooded[0].devices[1].reaches == std::vector<uint32_t>{2});
  size_t inside = 0;
  told.store.for_each_heard([&](const RouterRecord& record, Bytes, bool foreign) {
    CHECK(foreign);
    inside += record.devices.size();
  });
  CHECK(inside == 1);  // its WAN device
}

TEST_CASE("record_store__a_router_that_says_too_much__is_refused") {
  Told told;
  for (uint64_t i = 1; i <= RecordBucket::burst; ++i) CHECK(told.hear(neighbour, Told::of_router(5, i)).empty());
  CHECK(told.hear(neighbour, Told::of_router(5, 100)) == "a router that floods");
}

TEST_CASE("record_store__not_heard_of_for_its_lifetime__is_forgotten") {
  Told told;
  CHECK(told.hear(neighbour, Told::of_router(5, 3)).empty());
  told.pass(seconds(119));
  CHECK(told.store.known() == 2);
  told.pass(seconds(15));
  CHECK(told.store.known() == 1);
  CHECK(told.store.next_hops({1, 9}, {1, 9}, {1, 2}).empty());
}

TEST_CASE("record_store__suspected__is_withdrawn_in_its_name_and_is_back_with_its_next_word") {
  Told told;
  CHECK(told.hear(neighbour, Told::of_router(5, 3)).empty());
  told.flooded.clear();
  told.store.suspect(1, 5, told.now);
  REQUIRE(told.flooded.size() == 1);
  CHECK(told.flooded[0] == Told::gone(5, 3));
  CHECK(told.store.known() == 1);
  told.store.suspect(1, 5, told.now);
  CHECK(told.flooded.size() == 1);
  CHECK(told.hear(neighbour, Told::of_router(5, 3)).empty());
  CHECK(told.store.known() == 1);
  CHECK(told.hear(neighbour, Told::of_router(5, 4)).empty());
  CHECK(told.store.known() == 2);
}

TEST_CASE("record_store__our_own_record_in_anothers_words__is_told_with_the_next_instance") {
  Told told;
  CHECK(told.hear(neighbour, Told::gone(own_id, 40)).empty());
  REQUIRE(told.flooded.size() == 1);
  CHECK(told.flooded[0].instance == 41);
  CHECK_FALSE(told.flooded[0].withdrawn);
}

TEST_CASE("record_store__tell_anew__at_once_for_a_burst_and_then_when_its_bucket_allows") {
  Told told;
  for (uint32_t i = 0; i < RecordBucket::burst; ++i) told.store.tell_anew(told.now);
  CHECK(told.flooded.size() == RecordBucket::burst);
  told.latency_ns = 5;
  told.store.tell_anew(told.now);
  CHECK(told.flooded.size() == RecordBucket::burst);
  const Instant due = told.store.next_deadline();
  CHECK(due == told.now + RecordBucket::gap);
  told.pass(due - told.now);
  REQUIRE(told.flooded.size() == RecordBucket::burst + 1);
  CHECK(told.flooded.back().devices[0].latency_ns == 5);
  CHECK(told.store.next_deadline() > due);
}

TEST_CASE("record_store__time_goes_by__our_own_record_is_refreshed") {
  Told told;
  told.pass(seconds(29));
  told.pass(seconds(1));
  REQUIRE(told.flooded.size() == 1);
  CHECK(told.flooded[0].instance == 2);
  told.pass(seconds(30));
  CHECK(told.flooded.size() == 2);
}

TEST_CASE("record_store__withdrawn__every_word_of_ours_from_then_on_says_so") {
  Told told;
  told.store.withdraw();
  told.store.tell_now();
  REQUIRE(told.flooded.size() == 1);
  CHECK(told.flooded[0].withdrawn);
  CHECK(told.hear(neighbour, Told::of_router(5, 3)).empty());
  told.flooded.clear();
  told.store.suspect(1, 5, told.now);  // who stops looks after nobody
  CHECK(told.flooded.empty());
}

// Its new process begins to count anew, and we tell another AS nothing by which it could learn of its earlier life.
TEST_CASE("record_store__a_router_of_another_as_restarts__what_it_says_itself_is_believed") {
  const RecordPeer link{71, 2, true, 99}, other_link{72, 2, true, 98};
  Told told;
  const auto is_reached = [&] { return !told.store.next_hops({1, 1}, {1, 1}, {2, 2}).empty(); };
  CHECK(told.hear(link, Told::of_router(99, 500, 2)).empty());
  CHECK(is_reached());
  CHECK(told.hear(link, Told::of_router(99, 2, 2)).empty());  // as long as it lives this is an old one
  CHECK(told.hear(link, Told::of_router(99, 501, 2)).empty());
  const bool says_goodbye = GENERATE(false, true);
  if (says_goodbye) {
    CHECK(told.hear(link, Told::gone(99, 502)).empty());
  } else {
    told.store.suspect(2, 99, told.now);
  }
  CHECK_FALSE(is_reached());
  CHECK(told.hear(other_link, Told::of_router(99, 2, 2)).empty());  // a neighbour of it may have an old one
  CHECK_FALSE(is_reached());
  CHECK(told.hear(link, Told::of_router(99, 2, 2)).empty());
  CHECK(is_reached());
  CHECK(told.store.known() == 2);
  told.store.suspect(2, 99, told.now);
  CHECK_FALSE(is_reached());
}

// We have lost it, and its AS has not: nothing about it is new there.
TEST_CASE("record_store__a_router_of_another_as_is_out_of_reach__is_back_with_the_words_of_its_neighbour") {
  const RecordPeer link{71, 2, true, 99}, other_link{72, 2, true, 98};
  Told told;
  CHECK(told.hear(link, Told::of_router(99, 5, 2)).empty());
  told.store.suspect(2, 99, told.now);
  CHECK(told.store.known() == 1);
  CHECK(told.hear(other_link, Told::of_router(99, 5, 2)).empty());
  CHECK(told.store.known() == 2);
}

TEST_CASE("record_store__other_as_invent_routers__ours_find_room_and_nobody_is_at_fault") {
  Told told;
  uint64_t id = 1000;
  const auto tell = [&](const RecordPeer& from, size_t count) {
    for (const uint64_t end = id + count; id < end; ++id) CHECK(told.hear(from, Told::of_router(id, 1, from.as)).empty());
  };
  tell(stranger, foreign_records_of_as_max);
  CHECK(told.store.known() == 1 + foreign_records_of_as_max);
  CHECK(told.counters.get(Counter::records_rejected) == 0);
  tell(stranger, records_max);
  CHECK(told.store.known() == 1 + foreign_records_of_as_max);
  CHECK(told.counters.get(Counter::records_rejected) == records_max);
  for (uint32_t as = 3; as < 10; ++as) tell({70 + as, as, true}, foreign_records_of_as_max);
  CHECK(told.store.known() == 1 + foreign_records_max);
  tell(neighbour, records_max);
  CHECK(told.store.known() == 1 + foreign_records_max + records_max);
  CHECK(told.hear(neighbour, Told::of_router(id, 1)).empty());
  CHECK(told.store.known() == 1 + foreign_records_max + records_max);
  CHECK(told.hear(stranger, Told::of_router(1000, 2, 2)).empty());  // of one that is known
  CHECK(told.store.known() == 1 + foreign_records_max + records_max);
}
