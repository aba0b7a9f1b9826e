// Routing messages on their way to the next hop of a connection.
#include "routing/transport/hop_post.h"

#include <catch2/catch.hpp>

#include "tests/unit/routing/routed_parts.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using test::RoutedParts;

TEST_CASE("hop_post__room_below__goes_at_once") {
  RoutedParts met;
  RoutedConnection& connection = met.add();
  met.post.say(connection, Bye{Status::disconnected, "gone"});
  CHECK(met.said() == std::vector<MessageKind>{MessageKind::bye});
  CHECK(decode_bye(met.last_said())->reason == "gone");
  CHECK(met.count_active() == 0);
}

TEST_CASE("hop_post__no_room_below__waits_in_order_and_its_connection_is_active") {
  RoutedParts met;
  RoutedConnection& connection = met.add();
  met.log->answer = GENERATE(Status::no_buffers, Status::again);
  met.post.say_plain(connection, MessageKind::connect_ack);
  met.post.say_plain(connection, MessageKind::keepalive);
  CHECK(met.said().empty());
  CHECK(met.count_active() == 1);
  met.log->answer = Status::success;
  met.post.flush(connection);
  CHECK(met.said() == std::vector<MessageKind>{MessageKind::connect_ack, MessageKind::keepalive});
  CHECK(connection.hop.empty());
}

TEST_CASE("hop_post__a_flood_of_answers__is_bounded_and_what_matters_is_not") {
  RoutedParts met;
  RoutedConnection& connection = met.add();
  met.log->answer = Status::no_buffers;
  for (size_t i = 0; i < out_replies_max + 10; ++i) met.post.say_plain(connection, MessageKind::keepalive_ack);
  CHECK(connection.hop.size() == out_replies_max + 1);
  met.post.say(connection, Bye{});
  CHECK(connection.hop.size() == out_replies_max + 2);
}

TEST_CASE("hop_post__a_message_of_the_application__its_sender_hears_when_it_is_out") {
  RoutedParts met;
  RoutedConnection& connection = met.add();
  reliability::MessageSender& sender = connection.messages.sender;
  const auto nobody = [](const auto&, Status) {};
  sender.open(4, false);
  sender.push({}, {}, forever);
  std::vector<std::byte> message;
  encode_message_header(0, message);
  met.log->answer = Status::no_buffers;
  met.post.post_message(connection, message, sender.take(nobody).flight);
  CHECK_FALSE(sender.acknowledge(1, Status::success, met.now, nobody));
  met.log->answer = Status::success;
  met.post.flush(connection);
  CHECK(met.said() == std::vector<MessageKind>{MessageKind::message});
  CHECK(sender.acknowledge(1, Status::success, met.now, nobody));
}
