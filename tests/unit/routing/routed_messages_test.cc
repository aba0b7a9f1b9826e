// Messages of an open routed connection, from end to end.
#include "routing/transport/routed_messages.h"

#include <catch2/catch.hpp>

#include "tests/unit/routing/routed_parts.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using test::RoutedParts;

namespace {

struct Met : RoutedParts {
  Met() { messages.open(connection); }
  void begin(uint64_t token, std::string_view text = "hello") {
    const Bytes part = as_bytes(text);
    messages.begin(connection, {&part, 1}, token);
  }
  void push() { messages.push(connection, now); }
  [[nodiscard]] bool acknowledged(uint64_t next, Status status = Status::success) {
    return messages.on_acknowledgement(connection, bytes_of(MessageAck{next, status}), now);
  }
  void comes(uint64_t number, std::string_view text = "hello") {
    std::vector<std::byte> message;
    encode_message_header(number, message);
    message.insert(message.end(), as_bytes(text).begin(), as_bytes(text).end());
    messages.on_message(connection, message);
  }
  RoutedConnection& connection = add();
  RoutedMessages messages{connections, post, ender, above};
};

}  // namespace

TEST_CASE("routed_messages__sent__are_numbered_and_end_when_the_far_end_has_them") {
  Met met;
  met.begin(5, "one");
  met.begin(6, "two");
  CHECK(met.count_active() == 1);
  CHECK(met.log->sends.empty());
  met.push();
  REQUIRE(met.log->sends.size() == 2);
  const auto second = decode_message(met.last_said());
  REQUIRE(second);
  CHECK(second->id == 1);
  CHECK(as_text(second->payload) == "two");
  CHECK(met.connection.messages.begun == 2);
  CHECK(met.acknowledged(1));
  CHECK(met.above.completed == std::vector<uint64_t>{5});
  CHECK(met.acknowledged(2));
  CHECK(met.above.completed == std::vector<uint64_t>{5, 6});
  CHECK(met.connection.messages.begun == 0);
}

TEST_CASE("routed_messages__no_room_below__the_next_one_waits_for_the_one_before") {
  Met met;
  met.log->answer = Status::no_buffers;
  met.begin(5);
  met.begin(6);
  met.push();
  CHECK(met.connection.hop.size() == 1);
  CHECK(met.count_active() == 1);
  met.log->answer = Status::success;
  met.post.flush(met.connection);
  met.push();
  CHECK(met.log->sends.size() == 2);
  CHECK(met.count_active() == 0);
}

TEST_CASE("routed_messages__arrived__are_delivered_in_order_and_then_acknowledged") {
  Met met;
  met.above.has_buffer = true;
  met.comes(0);
  met.comes(1, "there");
  REQUIRE(met.above.messages.size() == 2);
  CHECK(as_text(Bytes(met.above.messages[1])) == "there");
  CHECK(met.log->sends.empty());
  CHECK(met.count_active() == 1);
  met.push();
  const auto ack = decode_message_ack(met.last_said());
  REQUIRE(ack);
  CHECK(ack->next == 2);
  CHECK(ack->status == Status::success);
}

TEST_CASE("routed_messages__arrived_without_a_buffer_above__are_refused_until_resent") {
  Met met;
  met.comes(0);
  met.comes(1);
  met.push();
  auto ack = decode_message_ack(met.last_said());
  REQUIRE(ack);
  CHECK(ack->next == 0);
  CHECK(ack->status == Status::receiver_not_ready);
  CHECK(met.above.messages.empty());
  met.above.has_buffer = true;
  met.comes(0);
  met.push();
  ack = decode_message_ack(met.last_said());
  CHECK(ack->next == 1);
  CHECK(ack->status == Status::success);
}

TEST_CASE("routed_messages__a_peer_that_breaks_the_rules__is_rejected") {
  Met met;
  switch (GENERATE(0, 1, 2, 3, 4)) {
    case 0:
      met.messages.on_message(met.connection, as_bytes("xyz"));
      break;
    case 1:
      met.comes(messages_in_flight_max + 1);
      break;
    case 2:
      met.comes(0, std::string(1001, 'x'));
      break;
    case 3:
      CHECK_FALSE(met.acknowledged(1));
      break;
    default:
      met.begin(5);
      met.push();
      CHECK_FALSE(met.acknowledged(0, Status::refused));
  }
  CHECK_FALSE(met.ender.rejected.empty());
  CHECK(met.above.completed.empty());
}

TEST_CASE("routed_messages__an_announcement_that_arrives__ends_its_operation_as_that_ended") {
  Met met;
  const ports::OperationResult ending(Status::success, 9);
  met.messages.announce(met.connection, as_bytes("done"), 5, ending);
  met.begin(6);
  met.messages.announce(met.connection, as_bytes("done"), 7, Status::success);
  met.push();
  CHECK(met.acknowledged(2));
  CHECK(met.above.completed == std::vector<uint64_t>{5, 6});
  CHECK(met.above.endings[0].detail == 9);
  CHECK(met.above.endings[1].detail == ports::OperationResult::none);
  met.messages.fail_all(met.connection);
  CHECK(met.above.completed.back() == 7);
  CHECK_FALSE(met.above.endings.back().good());
  CHECK(met.connection.messages.announced.empty());
}

TEST_CASE("routed_messages__a_send_timeout__ends_what_nobody_answers") {
  Met met;
  met.connection.messages.send_timeout = std::chrono::seconds(2);
  met.begin(5);
  met.push();
  met.now += std::chrono::seconds(2) - Duration{1};
  met.messages.run_timer(met.connection, met.now);
  CHECK(met.above.completed.empty());
  met.messages.run_timer(met.connection, met.now + Duration{1});
  CHECK(met.above.completed == std::vector<uint64_t>{5});
  CHECK(met.above.endings[0].status == Status::timed_out);
}

TEST_CASE("routed_messages__unreliable__end_when_they_are_out") {
  Met met;
  met.connection.path.attribute = ports::Attribute::unreliable;
  met.messages.open(met.connection);
  met.begin(5);
  met.push();
  CHECK(met.above.completed == std::vector<uint64_t>{5});
}
