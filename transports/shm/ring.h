// One direction of a stream through shared memory: a ring of bytes with one writer and one reader, in two processes or threads.
// In: bytes, in pieces of any size. Out: the same bytes in the same order. An index counts all bytes ever written (read); the place
// of byte i is i modulo the capacity.
// Guarantees: neither side ever waits for the other, or makes a system call. Each index is written by one side only. A side that is
// about to sleep says so (wait()), and looks once more; whoever changes what it waits for is told to wake it (publish(),
// release()). So a pair that is busy wakes nobody, and no wake is lost. The other side is hostile: it can write anything anywhere
// in the memory at any time. Each index of it is read once, checked, and kept; what is in the memory besides is only copied. An
// index that cannot be ends this object's use of the ring: broken() holds, there is nothing to read, and no room. Bytes that the
// peer changes while they are copied are the peer's own loss. Bounds: the capacity. Not thread-safe: each side has one thread.
// Source: Lamport, Specifying Concurrent Program Modules (1983).
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"

namespace ccixfer::shm {

inline constexpr size_t cache_line_bytes = 64;

// In the shared memory, all zeros at the beginning. What one side writes has cache lines of its own.
struct RingControl {
  alignas(cache_line_bytes) std::atomic<uint64_t> written;       // by the writer
  alignas(cache_line_bytes) std::atomic<uint64_t> read;          // by the reader
  alignas(cache_line_bytes) std::atomic<uint32_t> reader_waits;  // for bytes; not 0: it is to be woken. Whoever wakes it sets 0
  alignas(cache_line_bytes) std::atomic<uint32_t> writer_waits;  // for room
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

// Where a ring is. The memory outlives both sides of it. `capacity_bytes` is a power of two.
struct RingMemory {
  RingControl* control = nullptr;
  std::byte* data = nullptr;
  size_t capacity_bytes = 0;
};

class RingWriter {
 public:
  RingWriter() = default;
  explicit RingWriter(const RingMemory& memory) : memory_(memory) {}

  // Copies what there is room for; so many bytes of `from`, from its beginning on. The peer sees them after publish().
  [[nodiscard]] size_t append(Bytes from);
  [[nodiscard]] uint64_t unpublished_bytes() const { return written_ - published_; }
  // True: the reader sleeps, and is to be woken now.
  [[nodiscard]] bool publish();
  // Bytes that the reader has not taken.
  [[nodiscard]] uint64_t waiting_bytes();
  // Enough to be worth a wake.
  [[nodiscard]] bool has_room();
  // Before sleeping until has_room(). False: it has by now, or the ring is broken.
  [[nodiscard]] bool wait();
  void stop_waiting();
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  void look();

  RingMemory memory_;
  uint64_t written_ = 0;
  uint64_t published_ = 0;
  uint64_t read_seen_ = 0;  // at most written_, at least written_ - capacity
  bool waits_ = false;
  bool broken_ = false;
};

class RingReader {
 public:
  RingReader() = default;
  explicit RingReader(const RingMemory& memory) : memory_(memory) {}

  [[nodiscard]] bool has_bytes();
  // Copies what is there; so many bytes at the beginning of `into`. The peer may use their place after release().
  [[nodiscard]] size_t take(MutableBytes into);
  [[nodiscard]] uint64_t unreleased_bytes() const { return read_ - released_; }
  // True: the writer sleeps and has room, and is to be woken now.
  [[nodiscard]] bool release();
  // Before sleeping until has_bytes(). False: it has by now, or the ring is broken.
  [[nodiscard]] bool wait();
  void stop_waiting();
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  void look();

  RingMemory memory_;
  uint64_t read_ = 0;
  uint64_t released_ = 0;
  uint64_t written_seen_ = 0;  // at least read_, at most read_ + capacity
  bool waits_ = false;
  bool broken_ = false;
};

}  // namespace ccixfer::shm
