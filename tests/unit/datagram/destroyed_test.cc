// An endpoint that is destroyed with connections: what its peers hear, and what it gives back.
#include "tests/unit/datagram/rig.h"

namespace ccixfer::datagram::testing {
namespace {

TEST_CASE("datagram__endpoint_is_destroyed__says_goodbye_as_often_as_may_be_lost") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.open();
  rig.b.transport.reset();
  peer.settle();
  REQUIRE(peer.all<EndNoticeFrame>().size() == end_notices);
  REQUIRE(peer.all<EndNoticeFrame>()[0].notice.status == Status::disconnected);
  REQUIRE(peer.all<EndNoticeFrame>()[0].notice.reason == "the endpoint was destroyed");
}

TEST_CASE("datagram__endpoint_is_destroyed_while_the_host_is_full__still_says_goodbye") {
  Rig rig;
  RawPeer peer(rig, "p");
  const ConnectionId id = peer.open();
  sim::DatagramLinkOptions link;
  link.again_chance = 1;
  link.again_max = 2ms;
  rig.fabric.set_link(link);
  REQUIRE(rig.b.send(id, filled(10, 1), 1) == Status::success);
  const uint64_t before = rig.fabric.totals().sent;
  rig.b.transport->turn(rig.world.now());  // finds no room, perhaps after this packet
  rig.b.transport.reset();
  peer.settle();
  REQUIRE(rig.fabric.totals().sent - before == 1 + end_notices);
  REQUIRE(peer.all<EndNoticeFrame>().size() == end_notices);
}

TEST_CASE("datagram__endpoint_is_destroyed__half_a_put_holds_its_buffer_no_more") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.open();
  rvma::MailboxTable& mailboxes = rig.b.memory.mailboxes();
  REQUIRE(mailboxes.open(7, {.key = 9}) == Status::success);
  const uint32_t chunk_bytes = chunk_bytes_of(8192);
  Buffer buffer(2 * chunk_bytes);
  REQUIRE(mailboxes.post(7, buffer, 0) == Status::success);
  ports::RemoteRef remote;
  remote.handle.kind = ports::HandleKind::mailbox;
  remote.handle.number = 7;
  remote.handle.key = 9;
  remote.put.source = 1;
  remote.put.operation = 1;
  const Buffer half(chunk_bytes, std::byte{1});
  peer.frames([&](wire::Writer& out) { encode(out, RmaWriteFrame{1 << 16, 2 * chunk_bytes, 0, remote, {}}); });
  peer.frames_short([&](wire::Writer& out) { encode(out, RmaWriteMoreFrame{1 << 16, 0, half}); });
  REQUIRE(buffer[0] == std::byte{1});
  REQUIRE(mailboxes.close(7) == Status::success);
  REQUIRE_FALSE(mailboxes.next_completion());  // the buffer is still the peer's
  rig.b.transport.reset();
  const auto given_back = mailboxes.next_completion();
  REQUIRE(given_back);
  REQUIRE(given_back->status == Status::cancelled);
}

}  // namespace
}  // namespace ccixfer::datagram::testing
