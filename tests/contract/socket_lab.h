// Endpoints over real sockets of the loopback interface, over shared memory, or over an RDMA card of this host. Time is the
// machine's plus what pass() added.
#pragma once
#include "tests/contract/lab.h"

namespace ccixfer::contract {
enum class Sockets : uint8_t { tcp, tcp_secured, udp, udp_secured, shm, shm_secured, eth, eth_secured, verbs, verbs_secured };
[[nodiscard]] std::unique_ptr<Lab> make_socket_lab(Sockets kind);

}  // namespace ccixfer::contract
