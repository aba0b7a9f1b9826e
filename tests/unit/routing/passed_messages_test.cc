// Messages of an open connection at a router: which pass, which only routers may say, and how many may wait.
#include "core/base/log.h"
#include "tests/unit/routing/passing.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;

TEST_CASE("router_messages__cut_short__are_malformed_and_close_the_connection") {
  const bool by_left = GENERATE(true, false);
  for (const MessageKind kind : {MessageKind::message, MessageKind::message_ack, MessageKind::fragment_ack,
                                 MessageKind::mailbox_hint, MessageKind::write_request, MessageKind::read_request,
                                 MessageKind::read_reply, MessageKind::fragment_released, MessageKind::bye}) {
    CAPTURE(by_left, static_cast<int>(kind));
    Passing met(false);
    RawPeer& from = by_left ? met.left : met.right;
    std::vector<std::byte> message = message_with(static_cast<uint8_t>(kind), "", {});
    message.resize(6);
    from.send(message);
    REQUIRE(met.run([&] { return met.left.gone && met.right.gone; }));
    CHECK(met.rejected() == 1);
    const RawPeer& other = by_left ? met.right : met.left;
    REQUIRE(other.received.size() == 1);
    REQUIRE(other.last(MessageKind::bye));
    CHECK(decode_bye(*other.last(MessageKind::bye))->status == Status::error);
    CHECK(decode_bye(*other.last(MessageKind::bye))->reason.find("malformed") == 0);
  }
}

TEST_CASE("router_messages__of_routers_only__pass_between_routers_and_not_from_ends") {
  for (const MessageKind kind : {MessageKind::draining, MessageKind::others_wait}) {
    CAPTURE(static_cast<int>(kind));
    {
      Passing met(false, 1);
      met.right.say_plain(kind);
      met.left.say_plain(kind);
      met.rest();
      const size_t passed = kind == MessageKind::draining ? 1 : 0;
      CHECK(met.left.received.size() == passed);
      CHECK(met.right.received.size() == passed);
      met.still_works();
    }
    Passing met(true, 0);
    (GENERATE(true, false) ? met.left : met.right).say_plain(kind);
    REQUIRE(met.run([&] { return met.left.gone && met.right.gone; }));
    CHECK(met.rejected() == 1);
  }
}

TEST_CASE("router_messages__ends_watch_one_another__told_to_the_last_router_silence_is_fine") {
  const bool right_is_end = GENERATE(true, false), watched = GENERATE(true, false);
  CAPTURE(right_is_end, watched);
  Passing met(right_is_end);
  if (watched) met.left.say_plain(MessageKind::end_to_end_keepalive);
  met.rest();
  CHECK(met.right.last(MessageKind::end_to_end_keepalive).has_value() == (watched && !right_is_end));
  met.right.freeze(true);
  met.world.run_for(seconds(60));
  CHECK(met.left.gone == !watched);
  if (watched) return;
  REQUIRE(met.left.last(MessageKind::bye));
  CHECK(decode_bye(*met.left.last(MessageKind::bye))->reason.find("10.9.0.10") != std::string::npos);
}

TEST_CASE("router_messages__to_one_who_reads_nothing__as_many_wait_as_may_then_it_is_closed") {
  Passing met(false);
  met.rest();
  met.right.freeze(true);
  // What the connection below has under way, and then what waits here.
  constexpr size_t below = 256;
  size_t sent = 0;
  const auto say = [&](size_t up_to) {
    while (sent < up_to && !met.left.gone) {
      std::vector<std::byte> message;
      encode(MessageAck{sent, Status::success}, message);
      if (met.left.send(message) == Status::success) {
        ++sent;
      } else {
        met.world.run_for(milliseconds(1));
      }
    }
    met.rest();
  };
  say(below + out_messages_max);
  CHECK_FALSE(met.left.gone);
  CHECK(met.rejected() == 0);
  say(below + out_messages_max + 1);
  CHECK(met.run([&] { return met.left.gone; }, seconds(1)));
  CHECK(met.rejected() == 1);
  // What was taken before is delivered, if it is read by and by; then why there is no more.
  met.right.freeze(false);
  REQUIRE(met.run([&] { return met.right.gone; }));
  REQUIRE(met.right.last(MessageKind::bye));
  CHECK(decode_bye(*met.right.last(MessageKind::bye))->reason == "more messages than can be held");
  CHECK(met.right.received.size() == below + out_messages_max + 2);
  CHECK(met.run([&] { return met.node->router->connections_open() == 0; }));
}

// Its own last word of the handshake comes late: until then nothing can be said to it, and it is told all the same.
TEST_CASE("router_messages__the_initiator_is_there_too_late__hears_why_all_the_same") {
  ports::TransportOptions below;
  below.handshake_timeout = seconds(60);
  Passing met(true, 0, 16, fragment_bytes, below);
  RawPeer late(met.world, met.fabric, "left", "10.0.0.88");
  cci::ConnectOptions how;
  how.role = ports::Role::hop;
  how.timeout = seconds(60);
  REQUIRE(late.endpoint->connect("sim://10.0.0.1:7000", how));
  late.wake();
  REQUIRE(met.run([&] { return met.node->router->connections_open() == 2; }));
  late.freeze(true);
  met.world.run_for(hop_request_timeout - seconds(1));
  CHECK(met.rejected() == 0);
  met.world.run_for(seconds(2));
  CHECK(met.rejected() == 1);
  CHECK_FALSE(late.answered);
  late.freeze(false);
  REQUIRE(met.run([&] { return late.gone; }));
  CHECK(late.answered);
  REQUIRE(late.last(MessageKind::bye));
  CHECK(decode_bye(*late.last(MessageKind::bye))->status == Status::error);
  CHECK(decode_bye(*late.last(MessageKind::bye))->reason == "no connect request in time");
  CHECK(met.node->router->connections_open() == 1);
  met.still_works();
}

// It takes nothing, so that its leg stays until the time for that is over, and it goes on talking.
TEST_CASE("router_messages__garbage_on_a_leg_that_closes__is_neither_counted_nor_logged") {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); }, LogLevel::warning);
  const std::shared_ptr<void> no_sink(nullptr, [](void*) { set_log_sink({}, LogLevel::info); });
  Passing met(true);
  met.left.holds = true;
  std::vector<std::byte> message;
  encode_plain(MessageKind::keepalive, message);
  while (met.rejected() == 0) {
    if (met.right.gone || met.right.send(message) != Status::success) met.world.run_for(milliseconds(1));
  }
  REQUIRE(lines.size() == 1);
  met.rest();
  for (int i = 0; i < 20; ++i) {
    REQUIRE(met.left.send({std::byte{0xee}, {}, {}, {}}) == Status::success);
    met.rest();
  }
  REQUIRE_FALSE(met.left.gone);
  CHECK(lines.size() == 1);
  CHECK(met.rejected() == 1);
  CHECK(met.run([&] { return met.node->router->connections_open() == 0; }, 2 * close_flush_timeout));
}
