// Messages that pass through a router, and what waits when there is no room below.
#include "routing/router/message_relay.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

struct Network final : MessageSender {
  [[nodiscard]] Status send(uint32_t device, cci::Connection, Bytes message, uint64_t context) override {
    if (answer == Status::success) sent.emplace_back(message.begin(), message.end());
    devices.push_back(device);
    contexts.push_back(context);
    return answer;
  }
  Status answer = Status::success;
  std::vector<std::vector<std::byte>> sent;
  std::vector<uint32_t> devices;
  std::vector<uint64_t> contexts;
};

struct Ender final : ConnectionEnder {
  void close(RelayedConnection& connection, Status, std::string_view, int) override { connection.phase = ConnectionPhase::closing; }
  void reject(RelayedConnection& connection, std::string_view) override {
    rejected.push_back(&connection);
    connection.phase = ConnectionPhase::closing;
  }
  std::vector<const RelayedConnection*> rejected;
};

std::vector<std::byte> message_of(uint8_t first, size_t bytes = 4) {
  std::vector<std::byte> message(bytes);
  message[0] = static_cast<std::byte>(first);
  return message;
}

struct Relaying {
  RelayedConnection& open() {
    RelayedConnection& connection = table.add();
    connection.phase = ConnectionPhase::open;
    for (uint32_t i = 0; i < 2; ++i) {
      connection.legs[i].device = i;
      connection.legs[i].live = true;
    }
    return connection;
  }
  bool may_send = true;
  Counters counters;
  Network network;
  Ender ender;
  ConnectionTable table;
  MessageRelay relay{network, ender, table, 1000, [this] { return may_send; }, counters};
};

}  // namespace

TEST_CASE("message_relay__room_below__goes_out_on_the_other_leg_and_nothing_waits") {
  Relaying met;
  RelayedConnection& connection = met.open();
  met.relay.pass_on(connection, 0, message_of(7));
  CHECK(met.network.sent == std::vector<std::vector<std::byte>>{message_of(7)});
  CHECK(met.network.devices == std::vector<uint32_t>{1});
  CHECK(met.network.contexts == std::vector<uint64_t>{connection.ref(1)});
  CHECK(connection.legs[1].out.empty());
  CHECK_FALSE(met.table.any_active());
}

TEST_CASE("message_relay__no_room_below__waits_in_order_and_is_counted_until_it_has_gone") {
  const Status full = GENERATE(Status::no_buffers, Status::again);
  Relaying met;
  RelayedConnection& connection = met.open();
  met.network.answer = full;
  met.relay.post(connection, 1, message_of(1));
  met.relay.post(connection, 1, message_of(2));
  CHECK(connection.copied_bytes == 8);
  CHECK(met.table.any_active());
  met.network.answer = Status::success;
  met.relay.post(connection, 1, message_of(3));
  CHECK(met.network.sent == std::vector<std::vector<std::byte>>{message_of(1), message_of(2), message_of(3)});
  CHECK(connection.copied_bytes == 0);
  CHECK(connection.legs[1].out.empty());
}

TEST_CASE("message_relay__may_not_send_now__waits_until_it_may") {
  Relaying met;
  RelayedConnection& connection = met.open();
  met.may_send = false;
  met.relay.post_plain(connection, 0, MessageKind::keepalive);
  CHECK(met.network.sent.empty());
  met.may_send = true;
  met.relay.flush(connection, 1);
  CHECK(met.network.sent.empty());
  met.relay.flush(connection, 0);
  CHECK(met.network.sent.size() == 1);
}

TEST_CASE("message_relay__what_fails_otherwise__is_gone") {
  Relaying met;
  RelayedConnection& connection = met.open();
  met.network.answer = Status::not_found;
  met.relay.post(connection, 1, message_of(1));
  CHECK(connection.legs[1].out.empty());
  CHECK(met.ender.rejected.empty());
}

TEST_CASE("message_relay__a_leg_that_is_not_live__is_told_nothing") {
  Relaying met;
  RelayedConnection& connection = met.open();
  connection.legs[1].live = false;
  met.relay.post(connection, 1, message_of(1));
  CHECK(met.network.devices.empty());
  CHECK(connection.legs[1].out.empty());
}

TEST_CASE("message_relay__more_than_may_wait_on_a_leg__is_rejected_unless_it_closes_anyway") {
  const bool closing = GENERATE(false, true);
  Relaying met;
  RelayedConnection& connection = met.open();
  if (closing) connection.phase = ConnectionPhase::closing;
  met.network.answer = Status::again;
  for (size_t i = 0; i < out_messages_max; ++i) met.relay.post(connection, 1, std::vector<std::byte>());
  CHECK(met.ender.rejected.empty());
  met.relay.post(connection, 1, std::vector<std::byte>());
  CHECK(met.ender.rejected.size() == (closing ? 0 : 1));
}

TEST_CASE("message_relay__the_memory_for_copies_is_full__who_has_most_of_it_gives_it_back") {
  Relaying met;
  RelayedConnection& modest = met.open();
  RelayedConnection& hoarder = met.open();
  met.network.answer = Status::again;
  met.relay.post(hoarder, 0, message_of(1, 600));
  met.relay.post(modest, 1, message_of(2, 400));
  CHECK(met.ender.rejected.empty());
  met.relay.post(modest, 1, message_of(3, 4));
  CHECK(met.ender.rejected == std::vector<const RelayedConnection*>{&hoarder});
  CHECK(hoarder.copied_bytes == 0);
  CHECK(hoarder.legs[0].out.empty());
  CHECK(modest.copied_bytes == 404);
  met.relay.post(modest, 1, message_of(3, 500));  // there is room again
  CHECK(met.ender.rejected.size() == 1);
}

TEST_CASE("message_relay__not_a_message__is_rejected") {
  Relaying met;
  RelayedConnection& connection = met.open();
  met.relay.forward(connection, 0, {});
  CHECK(met.ender.rejected.size() == 1);
  CHECK(met.counters.get(Counter::routed_messages) == 0);
}
