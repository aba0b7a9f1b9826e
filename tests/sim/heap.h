// All memory that this program has from operator new, so that a swarm can look at it throughout: a queue that nobody bounds, or
// what is kept of connections that are over, shows in it wherever it is. (Memory that is mapped, as pools are, is not counted.)
#pragma once
#include <algorithm>
#include <cstddef>

namespace ccixfer::testing {

[[nodiscard]] size_t heap_bytes();

// What came beside what there was at the beginning.
class HeapWatch {
 public:
  // Within `limit_bytes`; of what there is now, `besides_bytes` are not meant.
  [[nodiscard]] bool look(size_t limit_bytes, size_t besides_bytes = 0) {
    const size_t now = heap_bytes();
    if (now > before_ + besides_bytes) most_ = std::max(most_, now - before_ - besides_bytes);
    return most_ <= limit_bytes;
  }
  [[nodiscard]] size_t most_bytes() const { return most_; }

 private:
  size_t before_ = heap_bytes();
  size_t most_ = 0;
};

// The memory of one part of a program: what was allocated while the innermost HeapScope named this account, and is not given back,
// whoever gives it back. Memory from before the first scope of the program counts for nobody.
class HeapAccount {
 public:
  HeapAccount() = default;
  ~HeapAccount();
  HeapAccount(const HeapAccount&) = delete;
  HeapAccount& operator=(const HeapAccount&) = delete;
  [[nodiscard]] size_t bytes() const { return bytes_; }
  void add(size_t bytes) { bytes_ += bytes; }
  void remove(size_t bytes) { bytes_ -= bytes; }

 private:
  size_t bytes_ = 0;
};

class HeapScope {
 public:
  explicit HeapScope(HeapAccount* account);  // nullptr: nobody's
  ~HeapScope();
  HeapScope(const HeapScope&) = delete;
  HeapScope& operator=(const HeapScope&) = delete;

 private:
  HeapAccount* outer_;
};

}  // namespace ccixfer::testing
