// Bytes that no honest peer sends, to a router and to a routing endpoint: rejected and counted; never an abort, never a lost
// buffer; others go on.
#include "routing/transport/messages.h"
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

std::vector<std::byte> random_message(sim::Random& random, const cci::Handle& exposed) {
  std::vector<std::byte> message;
  FragmentMessage fragment;
  fragment.cookie = random.below(8);
  fragment.length_bytes = static_cast<uint32_t>(random.chance(0.5) ? random.next() : random.below(100'000));
  fragment.data_class = static_cast<uint8_t>(random.below(9));
  fragment.exposed = exposed;
  if (random.chance(0.3)) fragment.exposed.key ^= 1;
  fragment.remote.handle = exposed;
  fragment.ending = random.chance(0.5) ? Status::success : Status::error;
  switch (random.below(13)) {
    case 0:
      fragment.kind = MessageKind::write_request;
      encode(fragment, message);
      break;
    case 1:
      fragment.kind = MessageKind::read_request;
      encode(fragment, message);
      break;
    case 2:
      fragment.kind = MessageKind::read_reply;
      encode(fragment, message);
      break;
    case 3:
      encode(FragmentReleased{random.below(8), random.chance(0.5)}, message);
      break;
    case 4:
      encode(FragmentAck{random.below(8), Status::error}, message);
      break;
    case 5:
      encode(MessageAck{random.below(8), Status::success}, message);
      break;
    case 6:
      encode_message_header(random.next(), message);
      message.resize(message.size() + random.below(1000));
      break;
    case 7:
      encode_plain(random.chance(0.5) ? MessageKind::keepalive : MessageKind::connect_ack, message);
      break;
    case 8:
      encode_plain(MessageKind::end_to_end_keepalive, message);
      break;
    case 9:
      encode(ConnectReply{Status::success, "", 1000, 65536, {}}, message);
      break;
    case 10:
      encode(RouterHello{random.next(), {1, 1}, "sim://x:1"}, message);
      break;
    case 11:
      encode(MailboxHint{random.next(), random.next()}, message);
      break;
    default:
      message.resize(1 + random.below(200));
      for (std::byte& byte : message) byte = static_cast<std::byte>(random.next());
  }
  if (random.chance(0.2) && !message.empty()) message[random.below(message.size())] = static_cast<std::byte>(random.next());
  return message;
}

}  // namespace

TEST_CASE("routing_hostile__random_messages_into_open_connections__others_go_on") {
  const uint64_t seed = GENERATE(range(1u, 13u));
  INFO("seed " << seed);
  Site site(seed);
  site.chain(2);
  const cci::Connection good = site.connect(*site.left, *site.right);
  sim::Random random(seed);
  RawPeer rogue(site.world, site.fabric, "lan1", "10.0.0.66");
  const auto bytes = pattern(200'000, seed);
  const auto exposed = rogue.memory->register_region(Bytes(bytes));
  for (int round = 0; round < 8; ++round) {
    if (random.chance(0.3)) {
      // As a last router, straight to an application.
      REQUIRE(rogue.open("sim://10.0.0.2:7000", site.left->uri()));
    } else {
      REQUIRE(rogue.open("sim://10.0.0.1:7000", site.right->uri()));
    }
    for (int i = 0; i < 40 && !rogue.gone; ++i) {
      rogue.send(random_message(random, exposed));
      if (random.chance(0.2)) site.world.run_for(milliseconds(2));
    }
    site.world.run_for(milliseconds(50));
    rogue.endpoint->disconnect(rogue.connection);
  }
  site.world.run_for(seconds(1));
  CHECK(site.send(*site.left, good, "still fine") == Status::success);
  std::vector<std::byte> target(bytes.size());
  cci::RmaOptions rma;
  rma.local = site.left->memory->register_region(Bytes(bytes));
  rma.remote.handle = site.right->memory->register_region(MutableBytes(target), cci::access_write);
  rma.length_bytes = bytes.size();
  CHECK(site.rma(*site.left, good, rma) == Status::success);
  CHECK((target == bytes));
  site.left->endpoint->disconnect(good);
  site.left->wake();
  for (const auto& router : site.routers) {
    router->router->drain();
    CHECK(site.run([&] { return router->router->drained(); }, seconds(60)));
    CHECK(router->router->fragments_in_use() == 0);
  }
}

TEST_CASE("routing_hostile__any_first_message__the_hop_ends_or_is_answered") {
  Site site;
  site.chain(1);
  sim::Random random(9);
  RawPeer rogue(site.world, site.fabric, "lan1", "10.0.0.66");
  for (const char* uri : {"sim://10.0.0.1:7000", "sim://10.0.0.2:7000"}) {
    for (int i = 0; i < 60; ++i) {
      REQUIRE(rogue.connect(uri, ports::Role::hop));
      rogue.received.clear();
      rogue.send(random_message(random, {}));
      CHECK(site.run([&] { return rogue.gone || !rogue.received.empty(); }, seconds(20)));
      rogue.endpoint->disconnect(rogue.connection);
    }
  }
  CHECK(site.routers[0]->counters.get(Counter::routed_rejected) > 0);
  CHECK(site.left->counters.get(Counter::routed_rejected) > 0);
  CHECK(site.left->count(EventType::connect_request) == 0);
}

TEST_CASE("routing_hostile__silent_hop__ends_in_time") {
  Site site;
  site.chain(1);
  RawPeer rogue(site.world, site.fabric, "lan1", "10.0.0.66");
  for (const char* uri : {"sim://10.0.0.1:7000", "sim://10.0.0.2:7000"}) {
    REQUIRE(rogue.connect(uri, ports::Role::hop));
    CHECK(site.run([&] { return rogue.gone; }, seconds(15)));
  }
}

TEST_CASE("routing_hostile__garbage_as_a_router__the_map_stays") {
  Site site;
  site.chain(2);
  sim::Random random(3);
  RawPeer rogue(site.world, site.fabric, "lan1", "10.0.0.66");
  for (int i = 0; i < 40; ++i) {
    REQUIRE(rogue.connect("sim://10.0.0.1:7000", random.chance(0.5) ? ports::Role::router : ports::Role::admin));
    if (random.chance(0.7)) {
      std::vector<std::byte> hello;
      encode(RouterHello{random.next(), {1, 1}, "sim://10.0.0.66:1"}, hello);
      rogue.send(hello);
    }
    for (int j = 0; j < 5; ++j) {
      std::vector<std::byte> record(random.below(200));
      for (std::byte& byte : record) byte = static_cast<std::byte>(random.next());
      std::vector<std::byte> message;
      encode_record_message(MessageKind::record, record, message);
      rogue.send(message);
    }
    rogue.send(random_message(random, {}));
    site.world.run_for(milliseconds(20));
    rogue.endpoint->disconnect(rogue.connection);
  }
  site.world.run_for(seconds(1));
  site.connect(*site.left, *site.right);
}

// What it offered goes away while the last router writes it on: that write is given up, its status comes back, and all goes on.
TEST_CASE("routing_hostile__memory_withdrawn_in_mid_fragment__the_fed_write_ends_too") {
  Site site;
  sim::LinkOptions slow;
  slow.rate_bytes_per_s = 10'000'000;
  site.fabric.set_link("lan1", slow);
  constexpr uint32_t size = 1u << 20;  // four chunks
  site.options.fragment_bytes = size;
  site.options.memory_bytes = 12u * size;
  site.chain(1);
  Router& router = *site.routers[0]->router;
  RawPeer rogue(site.world, site.fabric, "lan1", "10.0.0.66");
  REQUIRE(rogue.open("sim://10.0.0.1:7000", site.right->uri()));
  const auto source = pattern(size, 1);
  std::vector<std::byte> target(size);
  FragmentMessage offer;
  offer.kind = MessageKind::write_request;
  offer.length_bytes = size;
  offer.remote.handle = site.right->memory->register_region(MutableBytes(target), cci::access_write);
  const auto write = [&](uint64_t cookie) {
    rogue.received.clear();
    offer.cookie = cookie;
    offer.exposed = rogue.memory->register_region(Bytes(source));
    std::vector<std::byte> message;
    encode(offer, message);
    rogue.send(message);
  };
  const auto answer = [&] {
    std::optional<Status> status;
    for (const auto& message : rogue.received) {
      if (kind_of(Bytes(message)) == MessageKind::fragment_ack) status = decode_fragment_ack(Bytes(message))->ending.status;
    }
    return status;
  };
  write(1);
  REQUIRE(site.run([&] { return router.fragments_leaving_early() == 1 && target[0] == source[0]; }));
  CHECK(rogue.memory->deregister_region(offer.exposed) != Status::rma_handle);  // busy: some of it is on its way
  REQUIRE(site.run([&] { return answer().has_value(); }, seconds(1)));
  CHECK(*answer() == Status::rma_handle);
  CHECK(router.fragments_in_use() == 0);
  CHECK_FALSE(rogue.gone);
  write(2);
  REQUIRE(site.run([&] { return answer().has_value(); }, seconds(1)));
  CHECK(*answer() == Status::success);
  CHECK(target == source);
}

TEST_CASE("routing_hostile__a_flood_of_fragments__ends_that_connection_only") {
  Site site;
  site.chain(1);
  const cci::Connection good = site.connect(*site.left, *site.right);
  RawPeer rogue(site.world, site.fabric, "lan1", "10.0.0.66");
  const auto bytes = pattern(60'000, 1);
  const auto exposed = rogue.memory->register_region(Bytes(bytes));
  REQUIRE(rogue.open("sim://10.0.0.1:7000", site.right->uri()));
  FragmentMessage fragment;
  fragment.length_bytes = 60'000;
  fragment.exposed = exposed;
  fragment.remote.handle = exposed;
  for (uint32_t i = 0; i < 3 * fragments_per_side_max && !rogue.gone; ++i) {
    fragment.cookie = i;
    std::vector<std::byte> message;
    encode(fragment, message);
    while (rogue.endpoint->send(rogue.connection, Bytes(message), 0, true) == Status::no_buffers)
      site.world.run_for(milliseconds(1));
  }
  site.world.run_for(seconds(1));
  CHECK(site.send(*site.left, good, "still fine") == Status::success);
}

// Message acknowledgements travel from end to end: what the far end says is judged by the endpoint, not by the routers.
TEST_CASE("hostile_end__answers_what_was_not_sent__closed_with_a_reason_and_counted") {
  Site site;
  site.chain(1);
  RawPeer rogue(site.world, site.fabric, "lan1", "10.0.0.66");
  REQUIRE(rogue.open("sim://10.0.0.1:7000", site.right->uri()));
  std::vector<std::byte> message;
  SECTION("an ack of a message never sent") { encode(MessageAck{1, Status::success}, message); }
  SECTION("a refusal of a message never sent") { encode(MessageAck{0, Status::receiver_not_ready}, message); }
  SECTION("an ack with a status of its own") { encode(MessageAck{0, Status::rma_op}, message); }
  SECTION("a message from the future") { encode_message_header(1, message); }
  SECTION("a message far from the future") { encode_message_header(uint64_t{1} << 60, message); }
  rogue.send(message);
  REQUIRE(site.run([&] { return site.right->count(EventType::disconnected) > 0; }, seconds(10)));
  const auto end = site.right->take(EventType::disconnected);
  CHECK(end->status == Status::error);
  CHECK_FALSE(end->reason.empty());
  CHECK(site.right->counters.get(Counter::routed_rejected) == 1);
  REQUIRE(site.run([&] { return rogue.gone; }, seconds(10)));
  site.right->events.clear();
  const cci::Connection connection = site.connect(*site.left, *site.right);
  CHECK(site.send(*site.left, connection, "others are served") == Status::success);
}

TEST_CASE("hostile_end__a_message_twice_or_beyond_the_window__closed") {
  const bool twice = GENERATE(true, false);
  Site site;
  site.chain(1);
  RawPeer rogue(site.world, site.fabric, "lan1", "10.0.0.66");
  REQUIRE(rogue.open("sim://10.0.0.1:7000", site.right->uri()));
  for (uint64_t i = 0; i < 3; ++i) {
    std::vector<std::byte> message;
    encode_message_header(twice ? i / 2 : i, message);
    rogue.send(message);
  }
  site.world.run_for(seconds(1));
  CHECK(site.right->count(EventType::receive) == (twice ? 1 : 3));
  CHECK(site.right->count(EventType::disconnected) == (twice ? 1 : 0));
}

TEST_CASE("router_hostile__an_end_that_says_that_it_is_a_router_and_stops__is_closed") {
  Site site;
  site.chain(2);
  RawPeer rogue(site.world, site.fabric, "lan1", "10.0.0.66");
  REQUIRE(rogue.open("sim://10.0.0.1:7000", site.right->uri()));
  std::vector<std::byte> message;
  encode_plain(MessageKind::draining, message);
  rogue.send(message);
  REQUIRE(site.run([&] { return rogue.gone; }, seconds(5)));
  CHECK(site.right->count(EventType::draining) == 0);
  CHECK(site.routers[0]->counters.get(Counter::routed_rejected) > 0);
}
