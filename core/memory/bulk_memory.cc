#include "core/memory/bulk_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::memory {

namespace {

// Empty, and errno: the host does not give it.
MutableBytes map_anonymous(void* at, size_t bytes, int flags) {
  void* mapped = ::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  if (mapped == MAP_FAILED) return {};
  // Advice: what it answers is nothing to us.
  static_cast<void>(::madvise(mapped, bytes, MADV_HUGEPAGE));
  return {static_cast<std::byte*>(mapped), bytes};
}

}  // namespace

// What was there counted as much, and it was given once: only where the kernel counts private memory and not that of files
// (vm.overcommit_memory=2) may somebody else have got it meanwhile, and there nobody asks (core/host/private_memory.h).
void make_anonymous(MutableBytes at) { CHECK(!map_anonymous(at.data(), at.size(), MAP_FIXED).empty()); }

Result<BulkMemory> BulkMemory::make(size_t bytes) {
  BulkMemory memory;
  if (bytes > 0) memory.bytes_ = map_anonymous(nullptr, bytes, 0);
  if (bytes == 0 || !memory.bytes_.empty()) return memory;
  return fail(ErrorKind::usage, fmt::format("the host gives no {} bytes of memory: {}: give less, or raise its limit (ulimit -v; "
                                            "vm.overcommit_memory)",
                                            bytes, std::generic_category().message(errno)));
}

BulkMemory::BulkMemory(size_t bytes) {
  auto made = make(bytes);
  CHECK(made);
  std::swap(bytes_, made->bytes_);
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
