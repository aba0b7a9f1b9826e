// Messages that wait in a router: its memory for them is all connections' together.
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// `count` messages to somebody who reads none, as far as they are taken.
size_t pour(Site& site, RawPeer& peer, uint64_t first, size_t count, size_t bytes) {
  size_t sent = 0;
  for (int rounds = 0; rounds < 2000 && sent < count && !peer.gone; ++rounds) {
    std::vector<std::byte> message;
    encode_message_header(first + sent, message);
    message.resize(message.size() + bytes);
    if (peer.send(message) == Status::success) {
      ++sent;
    } else {
      site.world.run_for(milliseconds(1));
    }
  }
  site.world.run_for(milliseconds(20));
  return sent;
}

}  // namespace

TEST_CASE("routed_message__the_memory_for_copies_is_full__who_filled_it_is_closed") {
  Site site;
  site.options.copied_bytes_max = 400'000;
  site.chain(1);
  RawPeer hoarder(site.world, site.fabric, "lan1", "10.0.0.51"), modest(site.world, site.fabric, "lan1", "10.0.0.52");
  for (RawPeer* peer : {&hoarder, &modest}) REQUIRE(peer->open("sim://10.0.0.1:7000", site.right->uri()));
  site.world.remove_actor(site.right->node, site.right.get());  // it stands still
  // What one lower connection has in flight, what is held in receive buffers, and the rest is copied.
  constexpr size_t before = 256 + 256;
  REQUIRE(pour(site, hoarder, 0, before + 95, 4000) == before + 95);
  REQUIRE_FALSE(hoarder.gone);
  REQUIRE(pour(site, modest, 0, 256 + 40, 1000) == 256 + 40);
  site.world.run_for(seconds(1));
  CHECK_FALSE(modest.gone);
  CHECK(hoarder.gone);
  // Its part is free again, at once.
  CHECK(pour(site, modest, 300, 100, 1000) == 100);
  CHECK_FALSE(modest.gone);
  site.world.add_actor(site.right->node, site.right.get());
}
