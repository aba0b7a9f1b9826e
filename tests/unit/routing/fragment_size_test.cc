// Routers in a row that lend fragments of different lengths: a connection agrees on the shortest, wherever on the way that is.
#include <algorithm>

#include "routing/transport/messages.h"
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::seconds;

namespace {

constexpr uint32_t kib = 1u << 10;

// The shortest first, in the middle and last: what a hop before it and what a hop behind it says counts in turn.
std::vector<uint32_t> unequal_lengths() {
  return GENERATE(values<std::vector<uint32_t>>(
      {{64 * kib, 32 * kib, 128 * kib}, {32 * kib, 128 * kib, 64 * kib}, {128 * kib, 64 * kib, 32 * kib}}));
}

}  // namespace

TEST_CASE("routed_fragments__routers_lend_unequal_ones__the_shortest_is_agreed") {
  const std::vector<uint32_t> lent = unequal_lengths();
  CAPTURE(lent);
  Site site;
  site.chain(3, lent);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const auto hops = site.left->endpoint->hops(connection);
  REQUIRE(hops.size() == 4);
  for (const ports::HopInfo& hop : hops) CHECK(hop.fragment_bytes == 32 * kib);
  struct End {
    App* from;
    App* to;
    cci::Connection connection;
  };
  // The acceptor is told no hops: that it agreed on the same shows in what it cuts (a router counts each fragment, and closes the
  // connection over one that is longer than its own).
  for (const End& end :
       {End{site.left.get(), site.right.get(), connection}, End{site.right.get(), site.left.get(), site.right->accepted}}) {
    for (const bool write : {true, false}) {
      CAPTURE(end.from == site.left.get(), write);
      constexpr size_t bytes = 10 * 32 * kib;  // whole ones: neither fewer nor more can be made of it
      const auto data = pattern(bytes, write ? 1 : 2);
      std::vector<std::byte> target(bytes + 64, std::byte{0xee});
      App& owner = write ? *end.from : *end.to;
      App& getter = write ? *end.to : *end.from;
      const auto source = owner.memory->register_region(Bytes(data));
      const auto sink = getter.memory->register_region(MutableBytes(target), cci::access_write);
      std::vector<uint64_t> before;
      for (const auto& router : site.routers) before.push_back(router->counters.get(Counter::routed_fragments));
      cci::RmaOptions rma;
      rma.write = write;
      rma.local = write ? source : sink;
      rma.remote.handle = write ? sink : source;
      (write ? rma.remote.offset_bytes : rma.local_offset_bytes) = 32;
      rma.length_bytes = bytes;
      CHECK(site.rma(*end.from, end.connection, rma) == Status::success);
      CHECK(std::equal(data.begin(), data.end(), target.begin() + 32));
      CHECK(target[31] == std::byte{0xee});
      CHECK(target[bytes + 32] == std::byte{0xee});
      for (size_t i = 0; i < site.routers.size(); ++i) {
        CHECK(site.routers[i]->counters.get(Counter::routed_fragments) == before[i] + 10);
      }
    }
  }
}

// Whatever the ends say, neither is told of more than each router has, nor than the other end takes.
TEST_CASE("routed_fragments__ends_that_ask_for_and_answer_anything__the_shortest_of_all") {
  // And a router on its own, whose bounds no other one repeats.
  const bool alone = GENERATE(false, true);
  const std::vector<uint32_t> lent = alone ? std::vector<uint32_t>{32 * kib} : unequal_lengths();
  struct Said {
    uint32_t asked, answered;                  // fragment_bytes
    uint32_t asked_to_send, answered_to_send;  // max_send_bytes
  };
  const Said said = GENERATE(Said{4096 * kib, 4096 * kib, 1u << 30, 1u << 30}, Said{8 * kib, 4096 * kib, 500, 1u << 30},
                             Said{4096 * kib, 16 * kib, 1u << 30, 400});
  CAPTURE(lent, said.asked, said.answered);
  Site site;
  site.chain(lent.size(), lent);
  RawPeer initiator(site.world, site.fabric, "lan1", "10.0.0.77");
  RawPeer acceptor(site.world, site.fabric, "lan2", "10.0.0.77");
  acceptor.accepts = true;
  REQUIRE(initiator.connect("sim://10.0.0.1:7000", ports::Role::hop));
  ConnectRequest request = RawPeer::usual_request("cci://1:2:10.0.0.77:7000");
  request.fragment_bytes = said.asked;
  request.max_send_bytes = said.asked_to_send;
  REQUIRE(initiator.say(request) == Status::success);
  REQUIRE(site.run([&] { return acceptor.last(MessageKind::connect_request).has_value(); }, seconds(10)));
  const auto requested = decode_connect_request(*acceptor.last(MessageKind::connect_request));
  REQUIRE(requested);
  CHECK(requested->fragment_bytes == std::min(said.asked, 32 * kib));
  CHECK(requested->max_send_bytes == std::min(said.asked_to_send, acceptor.hop_payload_bytes()));
  ConnectReply reply;
  reply.status = Status::success;
  reply.fragment_bytes = said.answered;
  reply.max_send_bytes = said.answered_to_send;
  REQUIRE(acceptor.say(reply) == Status::success);
  REQUIRE(site.run([&] { return initiator.last(MessageKind::connect_reply).has_value(); }, seconds(10)));
  const auto replied = decode_connect_reply(*initiator.last(MessageKind::connect_reply));
  REQUIRE(replied);
  REQUIRE(replied->status == Status::success);
  CHECK(replied->fragment_bytes == std::min({said.asked, said.answered, 32 * kib}));
  CHECK(replied->max_send_bytes == std::min({said.asked_to_send, said.answered_to_send, initiator.hop_payload_bytes()}));
}
