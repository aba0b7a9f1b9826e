#include "tests/sim/heap.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> bytes{0};  // of all threads, should a test have some

void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  bytes.fetch_add(malloc_usable_size(memory), std::memory_order_relaxed);
  return memory;
}
void give_back(void* memory) {
  bytes.fetch_sub(malloc_usable_size(memory), std::memory_order_relaxed);  // of nullptr: 0
  std::free(memory);
}

}  // namespace

// The array and the nothrow forms of the library call these.
void* operator new(size_t size) { return counted(std::malloc(size == 0 ? 1 : size)); }
void* operator new(size_t size, std::align_val_t alignment) {
  const auto align = static_cast<size_t>(alignment);
  return counted(std::aligned_alloc(align, (size + align - 1) / align * align));
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { give_back(memory); }

size_t ccixfer::testing::heap_bytes() { return bytes.load(std::memory_order_relaxed); }
