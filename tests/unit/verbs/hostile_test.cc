// What a peer may post that no net of ours does: its pair is closed, nobody else notices, and no slot is lost.
#include "tests/unit/verbs/raw_peer.h"

namespace ccixfer::verbs {
namespace {

constexpr rdma::Access everything{true, true, true};

TEST_CASE("verbs_net__a_peer_that_posts_what_it_likes__is_cut_off_alone") {
  VerbsNetOptions few;
  few.receive_slots = 4;
  Host a, b(few);
  const Connected good = connect(a, b);
  Region target(b, 8192, everything, 1);
  const auto closed_with = [&](PairId pair, const char* words) {
    until({&a, &b}, [&] { return b.told.closed_pairs.count(pair) == 1; });
    CHECK(b.told.came[pair].empty());
    CAPTURE(b.told.closed_pairs[pair].reason);
    CHECK(b.told.closed_pairs[pair].status == Status::disconnected);
    CHECK(b.told.closed_pairs[pair].reason.find(words) != std::string::npos);
  };
  const auto misbehave = [&](const std::function<void(RawPeer&)>& act, const char* words) {
    RawPeer peer(b);
    act(peer);
    closed_with(peer.pair, words);
  };
  // More often than there are slots: each is posted again.
  for (int i = 0; i < 6; ++i) {
    misbehave([](RawPeer& peer) { peer.post(IBV_WR_SEND, 0); }, "it is no message");
    // The length that the card tells is that of the write, and not of what stands in the slot.
    misbehave([&](RawPeer& peer) { peer.post(IBV_WR_RDMA_WRITE_WITH_IMM, 100, target.address(), target.keys.remote_key); },
              "it is no message");
    misbehave([](RawPeer& peer) { peer.post(IBV_WR_SEND, 16384); }, "cannot be received: local");
  }
  // Our card refuses these by itself. Soft-RoCE does not tell us, so the pair stands until the peer goes.
  const auto try_in_vain = [&](const std::function<void(RawPeer&)>& act) {
    PairId pair = 0;
    {
      RawPeer peer(b);
      pair = peer.pair;
      act(peer);
      CHECK(peer.completion() != IBV_WC_SUCCESS);
    }
    closed_with(pair, "");
  };
  try_in_vain([&](RawPeer& peer) { peer.post(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, target.address() + 4096, target.keys.remote_key); });
  try_in_vain([&](RawPeer& peer) { peer.post(IBV_WR_RDMA_WRITE, 10, target.address(), target.keys.remote_key + 0x100); });
  try_in_vain([&](RawPeer& peer) { peer.post(IBV_WR_RDMA_WRITE, 10, target.address() - 1, target.keys.remote_key); });
  CHECK(std::all_of(target.bytes.begin(), target.bytes.begin() + 100, [](std::byte byte) { return byte == std::byte{0}; }));
  CHECK(std::equal(target.bytes.begin() + 100, target.bytes.end(), pattern(8192, 1).begin() + 100));
  for (unsigned i = 0; i < 20; ++i) REQUIRE(send(a, good.at_dialler, pattern(500, i)));
  until({&a, &b}, [&] { return b.told.came[good.at_acceptor].size() == 20; });
  CHECK(a.told.closed_pairs.empty());
}

TEST_CASE("verbs_net__a_peer_that_lets_nobody_read__is_refused") {
  Host b;
  rdma_cm_id* id = nullptr;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  const std::string uri = b.net->uri();
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(uri.substr(uri.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(0x0a090001);
  int connected = 0;
  bool is_done = false;
  std::thread dialler([&] {
    REQUIRE(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP) == 0);
    REQUIRE(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 2000) == 0);
    REQUIRE(rdma_resolve_route(id, 2000) == 0);
    ibv_qp_init_attr wanted{};
    wanted.cap.max_send_wr = wanted.cap.max_recv_wr = 1;
    wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
    wanted.qp_type = IBV_QPT_RC;
    REQUIRE(rdma_create_qp(id, nullptr, &wanted) == 0);
    rdma_conn_param asked{};
    connected = rdma_connect(id, &asked);
    is_done = true;
    b.net->set_deadline(Instant::min());
  });
  while (!is_done) static_cast<void>(b.turn(50));
  dialler.join();
  CHECK(connected != 0);
  CHECK(b.told.requests.empty());
  rdma_destroy_qp(id);
  rdma_destroy_id(id);
}

}  // namespace
}  // namespace ccixfer::verbs
