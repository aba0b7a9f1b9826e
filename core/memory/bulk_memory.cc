#include "core/memory/bulk_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

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

Result<void> fits_this_host(uint64_t bytes) {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return {};
  const uint64_t has_bytes = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
  if (bytes <= has_bytes) return {};
  return fail(ErrorKind::usage, fmt::format("{} bytes of memory are more than this host has ({}): give less", bytes, has_bytes));
}

Result<BulkMemory> BulkMemory::make(size_t bytes) {
  if (auto fits = fits_this_host(bytes); !fits) return tl::unexpected(fits.error());
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
