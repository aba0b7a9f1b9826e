// What the application asks of an open routed connection, and the order that fences ask for.
#include "routing/transport/routed_operations.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/routing/routed_parts.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using test::RoutedParts;

namespace {

struct Met : RoutedParts {
  Met() { messages.open(connection); }
  ~Met() { lower.reset(); }
  Status send(uint64_t token, size_t bytes = 5) {
    const std::vector<std::byte> message(bytes);
    const Bytes part(message);
    return operations.send(connection, {&part, 1}, token);
  }
  Status write(uint64_t token, bool fence = false, std::string_view announcement = {}) {
    ports::RmaRequest request;
    request.source = Bytes(local);
    request.local.region = region;
    request.remote.handle.kind = ports::HandleKind::region;
    request.fence = fence;
    request.has_completion_message = !announcement.empty();
    request.completion_message = as_bytes(announcement);
    return operations.rma(connection, request, token);
  }
  Status read(uint64_t token) {
    ports::RmaRequest request;
    request.write = false;
    request.destination = MutableBytes(local);
    request.local.region = region;
    request.remote.handle.kind = ports::HandleKind::region;
    return operations.rma(connection, request, token);
  }
  void push() {
    operations.push(connection);
    messages.push(connection, now);
  }
  // The fragments that were asked for since the last call.
  std::vector<FragmentMessage> asked() {
    std::vector<FragmentMessage> found;
    for (const auto& each : std::exchange(log->sends, {})) {
      if (const auto fragment = decode_fragment(as_bytes(each.bytes))) found.push_back(*fragment);
    }
    return found;
  }
  void acknowledge(const FragmentMessage& fragment, Status status = Status::success) {
    operations.on_fragment_ack(connection, bytes_of(FragmentAck{fragment.cookie, status}));
  }
  FragmentMessage reply_to(const FragmentMessage& fragment) {
    FragmentMessage reply;
    reply.kind = MessageKind::read_reply;
    reply.cookie = fragment.cookie;
    reply.length_bytes = fragment.length_bytes;
    reply.exposed = {ports::HandleKind::region, 1, 2, 3, 4, 5, fragment.length_bytes};
    return reply;
  }
  [[nodiscard]] uint64_t rejected() const { return counters.get(Counter::routed_rejected); }

  std::vector<std::byte> local = std::vector<std::byte>(1000);
  ports::Handle region = memory->register_region(MutableBytes(local), cci::access_read_parts);
  RoutedConnection& connection = add();
  RoutedMessages messages{connections, post, ender, above};
  RoutedOperations operations{2, *lower, *memory, connections, post, messages, ender, above, counters};
};

}  // namespace

TEST_CASE("routed_operations__sends__are_refused_when_too_long_too_many_or_too_late") {
  Met met;
  CHECK(met.send(1, 1001) == Status::message_size);
  for (uint64_t i = 0; i < messages_in_flight_max; ++i) REQUIRE(met.send(i, 1000) == Status::success);
  CHECK(met.send(99) == Status::no_buffers);
  met.connection.end.left = true;
  CHECK(met.send(99) == Status::disconnected);
  CHECK(met.write(99) == Status::disconnected);
}

TEST_CASE("routed_operations__rma__is_refused_when_too_many_or_its_message_is_too_long") {
  Met met;
  CHECK(met.write(1, false, std::string(1001, 'x')) == Status::message_size);
  for (uint64_t i = 0; i < routed_operations_max; ++i) REQUIRE(met.write(i) == Status::success);
  CHECK(met.write(99) == Status::no_buffers);
}

TEST_CASE("routed_operations__a_write__ends_when_its_fragment_is_acknowledged") {
  Met met;
  REQUIRE(met.write(5) == Status::success);
  CHECK_FALSE(RoutedOperations::is_idle(met.connection));
  met.push();
  const auto asked = met.asked();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].length_bytes == 1000);
  met.acknowledge(asked[0]);
  CHECK(met.above.completed == std::vector<uint64_t>{5});
  CHECK(RoutedOperations::is_idle(met.connection));
  met.acknowledge(asked[0]);
  CHECK(met.rejected() == 1);
}

TEST_CASE("routed_operations__more_fragments_than_may_be_in_flight__follow_one_another") {
  Met met;
  for (uint64_t token = 1; token <= 3; ++token) REQUIRE(met.write(token) == Status::success);
  met.push();
  const auto first = met.asked();
  REQUIRE(first.size() == 2);
  met.acknowledge(first[0]);
  CHECK(met.count_active() == 1);
  met.push();
  CHECK(met.asked().size() == 1);
}

TEST_CASE("routed_operations__a_completion_message__goes_after_the_data_and_ends_the_write") {
  Met met;
  REQUIRE(met.write(5, false, "done") == Status::success);
  met.push();
  const auto asked = met.asked();
  met.acknowledge(asked[0]);
  CHECK(met.above.completed.empty());
  met.push();
  CHECK(as_text(decode_message(met.last_said())->payload) == "done");
  CHECK_FALSE(RoutedOperations::is_idle(met.connection));
  CHECK(met.messages.on_acknowledgement(met.connection, RoutedParts::bytes_of(MessageAck{1, Status::success}), met.now));
  CHECK(met.above.completed == std::vector<uint64_t>{5});
}

TEST_CASE("routed_operations__a_read__pulls_what_the_next_router_has_and_tells_it") {
  Met met;
  REQUIRE(met.read(5) == Status::success);
  met.push();
  const auto asked = met.asked();
  REQUIRE(asked.size() == 1);
  met.log->answer = Status::no_buffers;
  met.operations.on_read_reply(met.connection, RoutedParts::bytes_of(met.reply_to(asked[0])));
  CHECK(met.log->rmas.empty());
  CHECK(met.count_active() == 1);
  met.log->answer = Status::success;
  met.push();
  REQUIRE(met.log->rmas.size() == 1);
  CHECK_FALSE(met.log->rmas[0].rma.write);
  met.operations.on_lower_read_ended(met.connection, asked[0].cookie, Status::success);
  CHECK(met.above.completed == std::vector<uint64_t>{5});
  CHECK(met.said() == std::vector<MessageKind>{MessageKind::fragment_released});
}

TEST_CASE("routed_operations__asked_behind_a_fence__begins_when_all_before_has_ended") {
  Met met;
  REQUIRE(met.write(1) == Status::success);
  REQUIRE(met.write(2, true) == Status::success);
  REQUIRE(met.send(3) == Status::success);
  met.push();
  const auto first = met.asked();
  REQUIRE(first.size() == 1);
  CHECK(met.connection.fenced.messages() == 1);
  met.acknowledge(first[0]);
  CHECK(met.connection.fenced.empty());
  met.push();
  CHECK(met.said() == std::vector<MessageKind>{MessageKind::write_request, MessageKind::message});
}

TEST_CASE("routed_operations__a_fence_before_which_a_message_is_under_way__waits_for_that") {
  Met met;
  REQUIRE(met.send(1) == Status::success);
  REQUIRE(met.write(2, true) == Status::success);
  met.push();
  CHECK(met.said() == std::vector<MessageKind>{MessageKind::message});
  REQUIRE(met.messages.on_acknowledgement(met.connection, RoutedParts::bytes_of(MessageAck{1, Status::success}), met.now));
  met.operations.release(met.connection);
  met.push();
  CHECK(met.said().back() == MessageKind::write_request);
}

TEST_CASE("routed_operations__what_no_router_may_say__is_counted_or_ends_the_connection") {
  Met met;
  met.operations.on_fragment_released(met.connection, RoutedParts::bytes_of(FragmentReleased{1, false}));
  FragmentMessage unknown;
  unknown.cookie = 99;
  unknown.length_bytes = 1000;
  met.operations.on_read_reply(met.connection, RoutedParts::bytes_of(met.reply_to(unknown)));
  CHECK(met.rejected() == 2);
  REQUIRE(met.read(5) == Status::success);
  met.push();
  const auto asked = met.asked();
  met.operations.on_fragment_released(met.connection, RoutedParts::bytes_of(FragmentReleased{asked[0].cookie, true}));
  CHECK(met.rejected() == 3);
  CHECK(met.ender.rejected.empty());
  FragmentMessage reply = met.reply_to(asked[0]);
  --reply.length_bytes;
  switch (GENERATE(0, 1, 2, 3)) {
    case 0:
      met.operations.on_read_reply(met.connection, RoutedParts::bytes_of(reply));
      break;
    case 1:
      met.operations.on_read_reply(met.connection, as_bytes("xyz"));
      break;
    case 2:
      met.operations.on_fragment_ack(met.connection, as_bytes("xyz"));
      break;
    default:
      met.operations.on_fragment_released(met.connection, as_bytes("xyz"));
  }
  CHECK_FALSE(met.ender.rejected.empty());
}

TEST_CASE("routed_operations__over__all_end_but_a_read_that_the_network_still_writes") {
  Met met;
  REQUIRE(met.write(1) == Status::success);
  REQUIRE(met.read(2) == Status::success);
  met.push();
  const auto asked = met.asked();
  REQUIRE(asked.size() == 2);
  REQUIRE(met.write(3, true) == Status::success);
  REQUIRE(met.send(4) == Status::success);
  met.operations.on_read_reply(met.connection, RoutedParts::bytes_of(met.reply_to(asked[1])));
  met.connection.phase = Phase::leaving;
  met.operations.withdraw(met.connection);
  CHECK_FALSE(met.operations.end_all(met.connection));
  std::vector<uint64_t> ended = met.above.completed;
  std::ranges::sort(ended);
  CHECK(ended == std::vector<uint64_t>{1, 3, 4});
  met.operations.on_lower_read_ended(met.connection, asked[1].cookie, Status::success);
  CHECK(met.operations.end_all(met.connection));
  CHECK(met.above.completed.back() == 2);
}

TEST_CASE("routed_operations__lent_to_the_network__ends_when_the_network_has_let_go") {
  Met met;
  REQUIRE(met.write(5) == Status::success);
  met.push();
  const auto asked = met.asked();
  ports::RmaTarget& target = met.network->target();
  ports::RemoteRef exposed;
  exposed.handle = asked[0].exposed;
  const ports::Admission read = target.begin_read(1, exposed, 1000);
  REQUIRE(target.lend(read.ticket));
  met.acknowledge(asked[0]);
  CHECK(met.above.completed.empty());
  met.operations.release_lent();
  CHECK(met.above.completed.empty());
  target.end_read(read.ticket);
  met.operations.release_lent();
  CHECK(met.above.completed == std::vector<uint64_t>{5});
}
