// A pool of equal buffers, sized at start and never grown: the only bulk memory of a process. Loans are move-only and return
// themselves. Memory is mapped at once but touched only when lent, so RssAnon grows with use up to the pool and no further.
// In debug builds a returned buffer is poisoned under ASan. Single-threaded (the protocol thread lends and takes back; the
// memory itself may be read and written by pool threads while lent).
#pragma once
#include <cstdint>
#include <memory>

#include "core/base/bytes.h"
#include "core/memory/bulk_memory.h"

namespace ccixfer::memory {

class Pool;

class Loan {
 public:
  Loan() = default;
  Loan(Loan&& other) noexcept;
  Loan& operator=(Loan&& other) noexcept;
  ~Loan();
  [[nodiscard]] explicit operator bool() const { return pool_ != nullptr; }
  [[nodiscard]] MutableBytes bytes() const;
  [[nodiscard]] uint64_t offset_bytes() const;  // in the pool's memory, for a registered whole-pool region
  [[nodiscard]] bool may_show() const;          // not of a pool that keeps its pages
  // The first bytes are a view of a file now (file_view.h): memory again at hide() or reset().
  void shows_file(size_t bytes);
  [[nodiscard]] bool shows_file() const { return shown_bytes_ > 0; }
  void hide();
  void reset();

 private:
  friend class Pool;
  Pool* pool_ = nullptr;
  uint32_t index_ = 0;
  size_t shown_bytes_ = 0;
};

class Pool {
 public:
  // CHECKs count > 0; buffers are page-aligned. The memory is one of memory_bytes(), or is made: then it CHECKs that the host gives
  // it.
  Pool(uint32_t buffer_bytes, uint32_t count, BulkMemory memory);
  Pool(uint32_t buffer_bytes, uint32_t count);
  [[nodiscard]] static size_t memory_bytes(uint32_t buffer_bytes, uint32_t count);
  ~Pool();  // CHECKs that every loan is back
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  [[nodiscard]] Loan lend();  // LIFO, so that warm memory is used first; empty: none free (a normal answer)
  [[nodiscard]] uint32_t free_count() const;
  [[nodiscard]] uint32_t count() const;
  [[nodiscard]] uint32_t buffer_bytes() const;
  [[nodiscard]] MutableBytes memory() const;  // all of it, for registration
  // No buffer shows a file from now on: a card reads the pages that were there when they were registered, and not a view.
  void keep_pages();

 private:
  friend class Loan;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::memory
