#include "routing/router/fragment_pool.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::routing {

namespace {

uint32_t count_of(uint32_t fragment_bytes, uint64_t memory_bytes) {
  return static_cast<uint32_t>(std::min<uint64_t>(memory_bytes / fragment_bytes, UINT32_MAX));
}

}  // namespace

size_t FragmentPool::used_bytes(uint32_t fragment_bytes, uint64_t memory_bytes) {
  return memory::Pool::memory_bytes(fragment_bytes, count_of(fragment_bytes, memory_bytes));
}

FragmentPool::FragmentPool(uint32_t fragment_bytes, uint64_t memory_bytes, uint8_t classes, bool reserved, bool poison_returned,
                           std::optional<memory::BulkMemory> memory)
    : pool_(fragment_bytes, count_of(fragment_bytes, memory_bytes),
            memory ? std::move(*memory) : memory::BulkMemory(used_bytes(fragment_bytes, memory_bytes))),
      classes_(classes),
      reserved_(reserved),
      poison_returned_(poison_returned) {
  CHECK(classes > 0 && classes <= classes_max && pool_.count() >= classes);
}

bool FragmentPool::has(uint8_t data_class, uint32_t held, bool shared) const {
  CHECK(data_class < classes_max);
  if (reserved_ && used_[class_of(data_class)] == 0) return true;
  // The reserved one is out: from the shared ones, if this connection has not its part already.
  return shared && shared_used_ < shared_count() && held <= shared_count() - shared_used_;
}

memory::Loan FragmentPool::take(uint8_t data_class, uint32_t held, bool shared) {
  if (!has(data_class, held, shared)) return {};
  uint32_t& used = used_[class_of(data_class)];
  if (used > 0 || !reserved_) ++shared_used_;
  ++used;
  memory::Loan loan = pool_.lend();
  CHECK(loan);
  return loan;
}

void FragmentPool::give(uint8_t data_class, memory::Loan loan) {
  uint32_t& used = used_[class_of(data_class)];
  CHECK(loan && used > 0);
  --used;
  if (used > 0 || !reserved_) --shared_used_;
  if (poison_returned_) std::ranges::fill(loan.bytes(), std::byte{0xdb});
  loan.reset();
}

}  // namespace ccixfer::routing
