// Routed endpoints: a chain of subnets, each in the simulated world (streams, or datagrams that get lost) or on loopback sockets,
// joined by routers; nodes alternate between the first and the last one, so every connection of the cases crosses every router. One
// subnet: no router, direct connections of routing endpoints. With a subnet of sockets the world goes on in small steps, and every
// handle is looked at in between. `secured`: every hop is proved and sealed.
#pragma once
#include "tests/contract/lab.h"

namespace ccixfer::contract {

// rdma: as sim, with cards that check keys; sim_rdma: with cards that read and write by themselves.
enum class Subnet : uint8_t { sim, tcp, datagram, rdma, udp, sim_rdma, shm, eth, verbs };
struct Pool {  // of each router
  uint32_t fragment_bytes = 64u << 10;
  uint32_t fragments = 16;
};
[[nodiscard]] std::unique_ptr<Lab> make_routed_lab(uint64_t seed, std::vector<Subnet> subnets, Pool pool = {},
                                                   bool secured = false);

}  // namespace ccixfer::contract
