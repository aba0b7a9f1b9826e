#include "tests/unit/verbs/forgetful_card.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <array>

namespace ccixfer::verbs {
namespace {

thread_local bool forgets = false;

void drop_completions(ibv_cq* queue) {
  std::array<ibv_wc, 32> done{};
  while (ibv_poll_cq(queue, static_cast<int>(done.size()), done.data()) > 0) continue;
}

}  // namespace

ForgetfulCard::ForgetfulCard() { forgets = true; }
ForgetfulCard::~ForgetfulCard() { forgets = false; }

}  // namespace ccixfer::verbs

// In place of the library's, for all of this executable.
extern "C" int ibv_destroy_qp(ibv_qp* pair) {
  if (ccixfer::verbs::forgets) ccixfer::verbs::drop_completions(pair->recv_cq);
  return reinterpret_cast<int (*)(ibv_qp*)>(dlsym(RTLD_NEXT, "ibv_destroy_qp"))(pair);
}
