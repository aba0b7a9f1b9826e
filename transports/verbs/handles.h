// Owners of what libibverbs and librdmacm give out. Each is destroyed before what it was made of: connections and queue pairs,
// then memory, the shared receive queue, the completion queue, its channel, the domain, and the device last. Private.
#pragma once
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>

namespace ccixfer::verbs {

// What the library answers is of no use here: what cannot be destroyed belongs to a device that is gone.
template <auto destroy>
struct Destroy {
  template <typename T>
  void operator()(T* object) const {
    static_cast<void>(destroy(object));
  }
};

using Device = std::unique_ptr<ibv_context, Destroy<&ibv_close_device>>;
using Domain = std::unique_ptr<ibv_pd, Destroy<&ibv_dealloc_pd>>;
using Channel = std::unique_ptr<ibv_comp_channel, Destroy<&ibv_destroy_comp_channel>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Destroy<&ibv_destroy_cq>>;
using ReceiveQueue = std::unique_ptr<ibv_srq, Destroy<&ibv_destroy_srq>>;
using Region = std::unique_ptr<ibv_mr, Destroy<&ibv_dereg_mr>>;
using QueuePair = std::unique_ptr<ibv_qp, Destroy<&ibv_destroy_qp>>;

struct DestroyEventChannel {
  void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
};
using ManagerChannel = std::unique_ptr<rdma_event_channel, DestroyEventChannel>;
using ManagerId = std::unique_ptr<rdma_cm_id, Destroy<&rdma_destroy_id>>;

}  // namespace ccixfer::verbs
