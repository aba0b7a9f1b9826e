// What a router says of a fragment, and to which of its neighbours.
#include "routing/router/fragment_answers.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

struct Network final : MessageSender {
  [[nodiscard]] Status send(uint32_t device, cci::Connection, Bytes message, uint64_t) override {
    to = device;
    said.assign(message.begin(), message.end());
    return Status::success;
  }
  uint32_t to = UINT32_MAX;  // the leg
  std::vector<std::byte> said;
};
struct Ender final : ConnectionEnder {
  void close(RelayedConnection&, Status, std::string_view, int) override {}
  void reject(RelayedConnection&, std::string_view) override {}
};

struct Answering {
  Answering() {
    for (uint32_t leg = 0; leg < 2; ++leg) {
      connection.legs[leg].device = leg;
      connection.legs[leg].live = true;
    }
    offer.cookie = 7;
    offer.length_bytes = 100;
    offer.data_class = 2;
    offer.remote.offset_bytes = 3;
  }
  Counters counters;
  Network network;
  Ender ender;
  ConnectionTable table;
  RelayedConnection& connection = table.add();
  MessageRelay relay{network, ender, table, 1000, {}, counters};
  FragmentAnswers answers{relay};
  FragmentOffer offer;
};

}  // namespace

TEST_CASE("fragment_answers__taken__is_told_where_the_data_came_from_unless_that_is_an_end") {
  Answering met;
  met.offer.from = 1;
  met.offer.of_read = true;
  met.answers.taken(met.connection, met.offer);
  CHECK(met.network.to == 1);
  const auto taken = decode_fragment_released(met.network.said);
  REQUIRE(taken);
  CHECK(taken->cookie == 7);
  CHECK(taken->of_read);
  met.network.said.clear();
  met.offer.from_end = true;
  met.answers.taken(met.connection, met.offer);
  CHECK(met.network.said.empty());
}

TEST_CASE("fragment_answers__a_write_that_ends__is_acknowledged_where_the_data_came_from") {
  const bool fails = GENERATE(false, true);
  Answering met;
  if (fails) met.answers.failed(met.connection, met.offer, Status::range);
  if (!fails) met.answers.acknowledge(met.connection, met.offer, Status::success);
  CHECK(met.network.to == 0);
  const auto ack = decode_fragment_ack(met.network.said);
  REQUIRE(ack);
  CHECK(ack->cookie == 7);
  CHECK(ack->ending.status == (fails ? Status::range : Status::success));
}

TEST_CASE("fragment_answers__a_read_that_fails__is_answered_where_the_data_would_have_gone") {
  Answering met;
  met.offer.from = 1;
  met.offer.of_read = true;
  met.answers.failed(met.connection, met.offer, Status::range);
  CHECK(met.network.to == 0);
  const auto reply = decode_fragment(met.network.said);
  REQUIRE(reply);
  CHECK(reply->kind == MessageKind::read_reply);
  CHECK(reply->ending.status == Status::range);
}

TEST_CASE("fragment_answers__offered_on__has_crossed_one_router_more") {
  const bool of_read = GENERATE(false, true);
  Answering met;
  met.offer.of_read = of_read;
  ports::Handle exposed;
  exposed.kind = ports::HandleKind::region;
  exposed.number = 9;
  met.answers.offer_on(met.connection, met.offer, exposed);
  CHECK(met.network.to == 1);
  const auto offered = decode_fragment(met.network.said);
  REQUIRE(offered);
  CHECK(offered->kind == (of_read ? MessageKind::read_reply : MessageKind::write_request));
  CHECK(offered->cookie == 7);
  CHECK(offered->length_bytes == 100);
  CHECK(offered->data_class == 3);
  CHECK(offered->exposed.number == 9);
}
