#include "core/memory/bulk_memory.h"

#include <sys/mman.h>

#include <utility>

#include "core/base/check.h"

namespace ccixfer::memory {

namespace {

MutableBytes map_anonymous(void* at, size_t bytes, int flags) {
  void* mapped = ::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  CHECK(mapped != MAP_FAILED);  // the size was settled at start: nothing sensible runs without it
  // Advice: what it answers is nothing to us.
  static_cast<void>(::madvise(mapped, bytes, MADV_HUGEPAGE));
  return {static_cast<std::byte*>(mapped), bytes};
}

}  // namespace

void make_anonymous(MutableBytes at) { static_cast<void>(map_anonymous(at.data(), at.size(), MAP_FIXED)); }

BulkMemory::BulkMemory(size_t bytes) {
  if (bytes > 0) bytes_ = map_anonymous(nullptr, bytes, 0);
}

BulkMemory::BulkMemory(BulkMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

BulkMemory& BulkMemory::operator=(BulkMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

BulkMemory::~BulkMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace ccixfer::memory
