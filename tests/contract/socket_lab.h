// Endpoints over real sockets of the loopback interface, or over shared memory. Time is the machine's plus what pass() added.
#pragma once
#include "tests/contract/lab.h"

namespace ccixfer::contract {
enum class Sockets : uint8_t { tcp, tcp_secured, udp, udp_secured, shm, shm_secured, eth, eth_secured };
[[nodiscard]] std::unique_ptr<Lab> make_socket_lab(Sockets kind);

}  // namespace ccixfer::contract
