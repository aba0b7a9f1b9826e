#include "core/memory/pool.h"

#include <unistd.h>

#include <cstring>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/memory/bulk_memory.h"
#include "core/memory/file_view.h"

#if defined(__SANITIZE_ADDRESS__)
#define CCIXFER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CCIXFER_ASAN 1
#endif
#endif
#ifdef CCIXFER_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace ccixfer::memory {
namespace {

// Who touches a buffer after its return is told at once, instead of corrupting whoever has it now.
void poison([[maybe_unused]] MutableBytes memory) {
#ifdef CCIXFER_ASAN
  __asan_poison_memory_region(memory.data(), memory.size());
#endif
}
void unpoison([[maybe_unused]] MutableBytes memory) {
#ifdef CCIXFER_ASAN
  __asan_unpoison_memory_region(memory.data(), memory.size());
#endif
}

// Rounded up to pages.
size_t stride_of(uint32_t buffer_bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (size_t{buffer_bytes} + page - 1) / page * page;
}

}  // namespace

struct Pool::Impl {
  uint32_t buffer_bytes = 0;
  uint32_t count = 0;
  size_t stride_bytes = 0;
  BulkMemory memory;
  std::vector<uint32_t> free;  // the last one is lent first
  bool keeps_pages = false;

  [[nodiscard]] MutableBytes slot(uint32_t index) const { return memory.bytes().subspan(index * stride_bytes, stride_bytes); }
};

size_t Pool::memory_bytes(uint32_t buffer_bytes, uint32_t count) {
  CHECK(buffer_bytes > 0 && count > 0);
  const size_t bytes = stride_of(buffer_bytes) * count;
  CHECK(bytes / count == stride_of(buffer_bytes));
  return bytes;
}

Pool::Pool(uint32_t buffer_bytes, uint32_t count) : Pool(buffer_bytes, count, BulkMemory(memory_bytes(buffer_bytes, count))) {}

Pool::Pool(uint32_t buffer_bytes, uint32_t count, BulkMemory memory) : impl_(std::make_unique<Impl>()) {
  CHECK(memory.bytes().size() == memory_bytes(buffer_bytes, count));
  Impl& pool = *impl_;
  pool.buffer_bytes = buffer_bytes;
  pool.count = count;
  pool.stride_bytes = stride_of(buffer_bytes);
  pool.memory = std::move(memory);
  poison(pool.memory.bytes());
  pool.free.reserve(count);
  for (uint32_t index = count; index > 0; --index) pool.free.push_back(index - 1);
}

Pool::~Pool() {
  CHECK(impl_->free.size() == impl_->count);
  unpoison(impl_->memory.bytes());  // the addresses may be mapped again by somebody else
}

Loan Pool::lend() {
  Loan loan;
  if (impl_->free.empty()) return loan;
  loan.pool_ = this;
  loan.index_ = impl_->free.back();
  impl_->free.pop_back();
  unpoison(loan.bytes());
  return loan;
}

uint32_t Pool::free_count() const { return static_cast<uint32_t>(impl_->free.size()); }
uint32_t Pool::count() const { return impl_->count; }
uint32_t Pool::buffer_bytes() const { return impl_->buffer_bytes; }
MutableBytes Pool::memory() const { return impl_->memory.bytes(); }

Loan::Loan(Loan&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), index_(other.index_), shown_bytes_(std::exchange(other.shown_bytes_, 0)) {}

Loan& Loan::operator=(Loan&& other) noexcept {
  if (this != &other) {
    reset();
    pool_ = std::exchange(other.pool_, nullptr);
    index_ = other.index_;
    shown_bytes_ = std::exchange(other.shown_bytes_, 0);
  }
  return *this;
}

Loan::~Loan() { reset(); }

MutableBytes Loan::bytes() const {
  CHECK(pool_ != nullptr);
  return pool_->impl_->slot(index_).first(pool_->impl_->buffer_bytes);
}

uint64_t Loan::offset_bytes() const {
  CHECK(pool_ != nullptr);
  return index_ * uint64_t{pool_->impl_->stride_bytes};
}

void Pool::keep_pages() { impl_->keeps_pages = true; }

bool Loan::may_show() const {
  CHECK(pool_ != nullptr);
  return !pool_->impl_->keeps_pages;
}

void Loan::shows_file(size_t bytes) {
  CHECK(may_show() && bytes > 0 && bytes <= pool_->impl_->buffer_bytes && shown_bytes_ == 0);
  shown_bytes_ = bytes;
}

void Loan::hide() {
  if (shown_bytes_ > 0) hide_file(bytes().first(std::exchange(shown_bytes_, 0)));
}

void Loan::reset() {
  if (pool_ == nullptr) return;
  hide();
  Pool::Impl& pool = *pool_->impl_;
  CHECK(pool.free.size() < pool.count);
  poison(pool.slot(index_));
  pool.free.push_back(index_);
  pool_ = nullptr;
}

}  // namespace ccixfer::memory
