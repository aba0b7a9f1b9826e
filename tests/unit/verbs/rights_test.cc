// The process changes its rights, so this runs alone (tests/rdma/cases).
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "tests/unit/verbs/hosts.h"

namespace ccixfer::verbs {
namespace {

// To the same ones: the kernel only sees that they are others than those with which the device was opened.
void change_rights() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> rights{};
  REQUIRE(syscall(SYS_capget, &header, rights.data()) == 0);
  REQUIRE(syscall(SYS_capset, &header, rights.data()) == 0);
}

// Soft-RoCE has the work in its queue then, and completes it in the end.
TEST_CASE("verbs_net__a_device_that_takes_no_orders__breaks_the_pair", "[.rights]") {
  Host a, b;
  const Connected pairs = connect(a, b);
  change_rights();
  CHECK_FALSE(send(a, pairs.at_dialler, pattern(500, 1)));
  until({&a}, [&] { return a.told.closed_pairs.count(pairs.at_dialler) == 1; });
  CHECK(a.told.closed_pairs[pairs.at_dialler].reason == "the RDMA device rxe0 takes no work: Permission denied");
}

}  // namespace
}  // namespace ccixfer::verbs
