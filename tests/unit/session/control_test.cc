// The two halves of the control channel by themselves.
#include "app/session/control.h"

#include <catch2/catch.hpp>

#include "app/session/limits.h"

using namespace ccixfer;
using namespace ccixfer::session;

namespace {

uint64_t entries_of(const Message& message) { return std::get<End>(message).entries; }
uint64_t entries_of(Bytes bytes) {
  const auto decoded = decode(bytes);
  REQUIRE(decoded);
  return entries_of(decoded->message);
}

}  // namespace

TEST_CASE("control_sender__posted__numbered_from_one_and_gone_when_delivered_in_order") {
  ControlSender sender;
  CHECK(sender.all_delivered());
  CHECK(sender.all_sent());
  CHECK_FALSE(sender.next());
  for (uint64_t i = 1; i <= 3; ++i) REQUIRE(sender.post(End{i}));
  for (uint64_t i = 1; i <= 3; ++i) {
    const auto next = sender.next();
    REQUIRE(next);
    CHECK(next->sequence == i);
    CHECK(entries_of(next->bytes) == i);
    CHECK_FALSE(sender.all_sent());
    sender.sent(i);
  }
  CHECK_FALSE(sender.next());
  CHECK(sender.all_sent());
  sender.ended(2, true);
  CHECK(sender.room() == control_messages_queued_max - 3);  // behind the first, which is under way
  sender.ended(1, false);                                   // its lane died: it is next again
  REQUIRE(sender.next());
  CHECK(sender.next()->sequence == 1);
  sender.ended(1, true);  // the end of a send that nobody waits for any more
  CHECK(sender.next()->sequence == 1);
  CHECK_FALSE(sender.all_sent());
  sender.sent(1);
  sender.ended(1, true);
  CHECK(sender.room() == control_messages_queued_max - 1);
  CHECK_FALSE(sender.all_delivered());
  for (const uint64_t of_nothing : {0u, 1u, 2u, 4u, 77u}) sender.ended(of_nothing, true);
  CHECK_FALSE(sender.all_delivered());
  sender.ended(3, true);
  CHECK(sender.all_delivered());
}

TEST_CASE("control_sender__full__its_room_its_reserve_and_no_more") {
  ControlSender sender;
  for (size_t i = 0; i < control_messages_queued_max + control_messages_reserve; ++i) {
    CHECK(sender.room() == (i < control_messages_queued_max ? control_messages_queued_max - i : 0));
    REQUIRE(sender.post(End{i}));
  }
  CHECK(sender.room() == 0);
  CHECK_FALSE(sender.post(End{1}));
}

TEST_CASE("control_sender__window__no_more_under_way_than_the_receiver_may_hold") {
  ControlSender sender;
  for (size_t i = 0; i < control_messages_in_flight_max + 5; ++i) REQUIRE(sender.post(End{i}));
  for (uint64_t i = 1; i <= control_messages_in_flight_max; ++i) {
    REQUIRE(sender.next());
    CHECK(sender.next()->sequence == i);
    sender.sent(i);
  }
  CHECK_FALSE(sender.next());
  sender.ended(2, true);
  CHECK_FALSE(sender.next());  // the first holds the window
  sender.ended(1, true);
  REQUIRE(sender.next());
  CHECK(sender.next()->sequence == control_messages_in_flight_max + 1);
}

TEST_CASE("control_receiver__any_order_and_twice__each_once_in_order_within_the_window") {
  ControlReceiver receiver;
  std::vector<Message> got;
  for (const uint64_t sequence : {2u, 2u, 3u}) CHECK(receiver.accept(sequence, End{sequence}, got));
  CHECK(got.empty());
  CHECK(receiver.accept(1, End{1}, got));
  REQUIRE(got.size() == 3);
  for (uint64_t i = 0; i < 3; ++i) CHECK(entries_of(got[i]) == i + 1);
  for (const uint64_t sequence : {1u, 2u, 3u}) CHECK(receiver.accept(sequence, End{99}, got));
  CHECK(got.size() == 3);
  CHECK(receiver.accept(3 + control_messages_ahead_max, End{7}, got));
  CHECK_FALSE(receiver.accept(3 + control_messages_ahead_max + 1, End{7}, got));
  CHECK(receiver.accept(4, End{4}, got));
  REQUIRE(got.size() == 4);
  CHECK(entries_of(got[3]) == 4);
}
