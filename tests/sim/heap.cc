#include "tests/sim/heap.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>

using ccixfer::testing::HeapAccount;

namespace {

std::atomic<size_t> bytes{0};  // of all threads, should a test have some

// Which blocks are on an account. The table's own memory is not from operator new, or it would ask itself.
template <typename T>
struct FromMalloc {
  using value_type = T;
  FromMalloc() = default;
  template <typename U>
  FromMalloc(const FromMalloc<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(std::malloc(count * sizeof(T))); }
  void deallocate(T* memory, size_t) { std::free(memory); }
  friend bool operator==(const FromMalloc&, const FromMalloc&) { return true; }
};
using Owners = std::unordered_map<void*, HeapAccount*, std::hash<void*>, std::equal_to<void*>,
                                  FromMalloc<std::pair<void* const, HeapAccount*>>>;
thread_local HeapAccount* current = nullptr;
std::atomic<bool> has_owners{false};
std::mutex mutex;
Owners& owners() {  // never destroyed: memory is given back until the very end
  alignas(Owners) static std::byte place[sizeof(Owners)];
  static Owners* const all = ::new (place) Owners;
  return *all;
}

void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const size_t size = malloc_usable_size(memory);
  bytes.fetch_add(size, std::memory_order_relaxed);
  if (current != nullptr) {
    const std::lock_guard lock(mutex);
    owners()[memory] = current;
    current->add(size);
  }
  return memory;
}
void give_back(void* memory) {
  const size_t size = malloc_usable_size(memory);  // of nullptr: 0
  bytes.fetch_sub(size, std::memory_order_relaxed);
  if (has_owners.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(mutex);
    if (const auto at = owners().find(memory); at != owners().end()) {
      at->second->remove(size);
      owners().erase(at);
    }
  }
  std::free(memory);
}

}  // namespace

// The array and the nothrow forms of the library call these. Those of AddressSanitizer do not, so the ones that are used stand
// here.
void* operator new(size_t size) { return counted(std::malloc(size == 0 ? 1 : size)); }
void* operator new[](size_t size) { return ::operator new(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return ::operator new(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return ::operator new(size); }
void* operator new(size_t size, std::align_val_t alignment) {
  const auto align = static_cast<size_t>(alignment);
  return counted(std::aligned_alloc(align, (size + align - 1) / align * align));
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, size_t) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory, size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { give_back(memory); }

size_t ccixfer::testing::heap_bytes() { return bytes.load(std::memory_order_relaxed); }

ccixfer::testing::HeapAccount::~HeapAccount() {
  const std::lock_guard lock(mutex);
  std::erase_if(owners(), [this](const auto& entry) { return entry.second == this; });
}

ccixfer::testing::HeapScope::HeapScope(HeapAccount* account) : outer_(current) {
  has_owners = true;
  current = account;
}
ccixfer::testing::HeapScope::~HeapScope() { current = outer_; }
