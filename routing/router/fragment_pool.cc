#include "routing/router/fragment_pool.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::routing {

FragmentPool::FragmentPool(uint32_t fragment_bytes, uint64_t memory_bytes)
    : pool_(fragment_bytes, static_cast<uint32_t>(std::min<uint64_t>(memory_bytes / fragment_bytes, UINT32_MAX))) {
  CHECK(pool_.count() >= classes_max);
}

memory::Loan FragmentPool::take(uint8_t data_class, uint32_t held) {
  CHECK(data_class < classes_max);
  const uint32_t shared = pool_.count() - classes_max;
  if (used_[data_class] > 0) {  // the reserved one is out: from the shared ones, if this connection has not its part already
    if (shared_used_ >= shared || held > shared - shared_used_) return {};
    ++shared_used_;
  }
  ++used_[data_class];
  memory::Loan loan = pool_.lend();
  CHECK(loan);
  return loan;
}

void FragmentPool::give(uint8_t data_class, memory::Loan loan) {
  CHECK(loan && used_[data_class] > 0);
  if (--used_[data_class] > 0) --shared_used_;
  loan.reset();
}

}  // namespace ccixfer::routing
