// The port goes down, the device is removed: of this machine, so these run alone (tests/rdma/cases).
#include <cstdlib>

#include "tests/unit/verbs/hosts.h"

namespace ccixfer::verbs {
namespace {

void system_call(const char* command) { REQUIRE(std::system(command) == 0); }

TEST_CASE("verbs_net__port_goes_down__every_pair_is_closed", "[.port]") {
  Host a, b;
  const Connected pairs = connect(a, b);
  system_call("/bin/ip link set net0 down");
  until({&a, &b}, [&] {
    return a.told.closed_pairs.count(pairs.at_dialler) == 1 && b.told.closed_pairs.count(pairs.at_acceptor) == 1 &&
           !a.told.failures.empty() && !b.told.failures.empty();
  });
  CHECK(a.told.failures.front() == "the port of the RDMA device rxe0 is down");
  CHECK(a.told.closed_pairs[pairs.at_dialler].reason == "the port of the RDMA device rxe0 is down");
  CHECK(devices_of_host().at(0).port_state == "down");
  // Not tested: that later pairs work when it is up again. The manager's own queue pair does not come back in this Soft-RoCE.
}

TEST_CASE("verbs_net__device_is_removed__everything_ends", "[.removal]") {
  Host a, b;
  const Connected pairs = connect(a, b);
  Region mine(a, 5000, {true, true, true});
  // It waits for the end of this process: the manager's library keeps a handle of its own, which Soft-RoCE cannot take from it.
  system_call("rdma link delete rxe0 &");
  until({&a, &b}, [&] {
    return a.told.closed_pairs.count(pairs.at_dialler) == 1 && b.told.closed_pairs.count(pairs.at_acceptor) == 1 &&
           !a.told.failures.empty() && !b.told.failures.empty();
  });
  CHECK(a.told.failures.front() == "the RDMA device rxe0 was removed");
  const auto pair = a.net->dial("verbs://10.9.0.1:4000");
  REQUIRE(pair);
  until({&a}, [&] { return a.told.closed_pairs.count(*pair) == 1; });
  CHECK(a.told.closed_pairs[*pair].status == Status::unreachable);
  CHECK(a.told.closed_pairs[*pair].reason == "the RDMA device rxe0 was removed");
  rdma::Registration keys;
  Memory memory(100);
  CHECK(a.net->register_memory(memory, {}, keys) == Status::no_memory);
}

}  // namespace
}  // namespace ccixfer::verbs
