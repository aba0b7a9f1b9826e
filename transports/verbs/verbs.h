// RDMA over libibverbs and librdmacm: the RdmaNet of verbs, for InfiniBand, RoCE and Soft-RoCE, and what this host has of it. Names
// are verbs://HOST:PORT, where HOST is an address that an RDMA device of that host carries. Ports are those of the connection
// manager (RDMA_PS_TCP), which are not TCP's.
//
// This header names neither library: where they were not there when the program was built, absent.cc is all there is of this room,
// and open_net() says so.
// Errors: open_net: network (no RDMA device has the address, what the device lacks), usage (a host that cannot be, or built without
// verbs). Afterwards every error ends a pair, or the device, with words.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/host/waker.h"
#include "transports/rdma/rdma_net.h"

namespace ccixfer::verbs {

struct VerbsNetOptions {
  // An address of an RDMA device; "0.0.0.0", "::" or "*": the first address of this host that an RDMA device has.
  std::string listen_host = "0.0.0.0";
  uint16_t port = 0;                             // 0: any free one
  std::string interface_name = {};               // "": any
  bool listen = true;                            // else nobody may dial it
  std::shared_ptr<host::Waker> waker = nullptr;  // nullptr: one of its own, for the OS handle
  uint32_t receive_slots = 1024;                 // of the shared receive queue; fewer where the device has fewer
  uint32_t send_slots = 512;
  uint32_t slot_bytes = 8192;  // the longest send, either way: the same at both ends
};

struct OpenedNet {
  std::unique_ptr<rdma::RdmaNet> net;
  std::vector<std::string> uris;  // under which it can be dialled
  std::string device;             // the RDMA device: "rxe0", "mlx5_0"
};
[[nodiscard]] Result<OpenedNet> open_net(const VerbsNetOptions& options);

// Whether this program was built with libibverbs. If not, open_net() says so, and devices_of_host() is empty.
[[nodiscard]] bool is_built_in();

// An RDMA device of this host, for people.
struct DeviceInfo {
  std::string name;                         // "mlx5_0"
  std::string port_state;                   // "active", "down": of its first port
  std::vector<std::string> addresses = {};  // of this host, under which it is reached
};
[[nodiscard]] std::vector<DeviceInfo> devices_of_host();

}  // namespace ccixfer::verbs
