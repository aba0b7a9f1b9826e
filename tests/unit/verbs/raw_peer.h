// A peer that is no net of ours: it posts what it likes.
#pragma once
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <array>
#include <thread>

#include "tests/unit/verbs/hosts.h"

namespace ccixfer::verbs {

class RawPeer {
 public:
  explicit RawPeer(Host& acceptor) {
    const size_t before = acceptor.told.connected_pairs.size();
    const std::string uri = acceptor.net->uri();
    const auto port = static_cast<uint16_t>(std::stoi(uri.substr(uri.rfind(':') + 1)));
    bool is_connected = false;
    std::thread dialler([&] { is_connected = connect(port); });  // its calls block
    until({&acceptor}, [&] { return acceptor.told.connected_pairs.size() > before; });
    dialler.join();
    REQUIRE(is_connected);
    pair = acceptor.told.connected_pairs.back();
  }
  ~RawPeer() {
    rdma_destroy_qp(id_);
    if (region_ != nullptr) ibv_dereg_mr(region_);
    rdma_destroy_id(id_);
  }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  void post(ibv_wr_opcode opcode, uint32_t length, uint64_t remote_address = 0, uint32_t remote_key = 0) {
    ibv_sge place{reinterpret_cast<uint64_t>(memory_.data()), length, region_->lkey};
    ibv_send_wr work{};
    work.sg_list = &place;
    work.num_sge = length == 0 ? 0 : 1;
    work.opcode = opcode;
    work.send_flags = IBV_SEND_SIGNALED;
    work.wr.rdma.remote_addr = remote_address;
    work.wr.rdma.rkey = remote_key;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      work.wr.atomic.remote_addr = remote_address;
      work.wr.atomic.compare_add = 1;
      work.wr.atomic.rkey = remote_key;
    }
    ibv_send_wr* refused = nullptr;
    REQUIRE(ibv_post_send(id_->qp, &work, &refused) == 0);
  }

  // Of the last one that was posted: waits for it.
  ibv_wc_status completion() {
    ibv_wc done{};
    REQUIRE(rdma_get_send_comp(id_, &done) == 1);
    return done.status;
  }

  PairId pair = 0;  // at the acceptor

 private:
  bool connect(uint16_t port) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(0x0a090001);
    if (rdma_create_id(nullptr, &id_, nullptr, RDMA_PS_TCP) != 0) return false;
    if (rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&to), 2000) != 0 || rdma_resolve_route(id_, 2000) != 0)
      return false;
    ibv_qp_init_attr wanted{};
    wanted.cap.max_send_wr = 16;
    wanted.cap.max_recv_wr = 16;
    wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
    wanted.qp_type = IBV_QPT_RC;
    if (rdma_create_qp(id_, nullptr, &wanted) != 0) return false;
    region_ = ibv_reg_mr(id_->pd, memory_.data(), memory_.size(), static_cast<unsigned>(IBV_ACCESS_LOCAL_WRITE));
    rdma_conn_param asked{};
    asked.responder_resources = asked.initiator_depth = 1;
    asked.retry_count = 3;
    asked.rnr_retry_count = 7;
    return region_ != nullptr && rdma_connect(id_, &asked) == 0;
  }
  std::array<std::byte, 16384> memory_{};
  rdma_cm_id* id_ = nullptr;
  ibv_mr* region_ = nullptr;
};

}  // namespace ccixfer::verbs
