// Where one posted buffer's completion is told: one cache line, of which the pointer is stored last. A buffer in progress is
// hidden: nothing in the line changes between the post and the completion. Each record can be waited for alone
// (core/host/completion_wait), also by another thread; there is no shared queue to overflow.
//
// The owner provides it, posts it, and leaves it alone until `buffer` is not null (acquire); then it is the owner's again. The
// table touches nothing of it after the pointer is stored. Source: RVMA §III.A-B (completion pointer and length on one cache line),
// §IV.C; core/rvma/README.md.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/status.h"

namespace ccixfer::rvma {

struct alignas(64) CompletionRecord {
  uint64_t length_bytes = 0;  // extent: the high-water mark
  uint64_t count = 0;         // bytes or operations, as the buffer's threshold counts
  uint64_t bytes = 0;         // bytes counted, whatever the threshold counts
  uint64_t epoch = 0;
  uint64_t context = 0;             // the poster's
  uint64_t address = 0;             // the mailbox number that the last put was sent to: in a catch-all it is not the mailbox's own
  Status status = Status::success;  // or cancelled: the mailbox was closed or rewound
  bool has_holes = false;
  uint16_t reserved = 0;
  std::atomic<uint32_t> sleepers{nobody};   // a futex word: who waits in the kernel says so here before
  std::atomic<std::byte*> buffer{nullptr};  // head of the buffer: stored last, with release

  static constexpr uint32_t nobody = 0;
  static constexpr uint32_t asleep = 1;
  static constexpr uint32_t completing = 2;  // the pointer follows at once: nobody may fall asleep any more
};
static_assert(sizeof(CompletionRecord) == 64);
static_assert(alignof(CompletionRecord) == 64);
static_assert(std::atomic<std::byte*>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

// Wakes those who sleep on a record's word in the kernel: a system call, so core/host has it (FutexWaker).
class RecordWaker {
 public:
  virtual ~RecordWaker() = default;
  // The record may be gone by now: `word` is an address, not to be read.
  virtual void wake(const std::atomic<uint32_t>* word) = 0;
};

void arm(CompletionRecord& record);  // before it is posted
// All other fields are set. A system call only when somebody sleeps, and then there must be a waker.
void publish(CompletionRecord& record, std::byte* buffer, RecordWaker* waker);

}  // namespace ccixfer::rvma
