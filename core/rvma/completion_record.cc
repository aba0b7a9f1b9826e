#include "core/rvma/completion_record.h"

#include "core/base/check.h"

namespace ccixfer::rvma {

void arm(CompletionRecord& record) {
  record.buffer.store(nullptr, std::memory_order_relaxed);
  record.sleepers.store(CompletionRecord::nobody, std::memory_order_release);
}

void publish(CompletionRecord& record, std::byte* buffer, RecordWaker* waker) {
  CHECK(buffer != nullptr);
  const std::atomic<uint32_t>* word = &record.sleepers;
  const uint32_t before = record.sleepers.exchange(CompletionRecord::completing, std::memory_order_acq_rel);
  record.buffer.store(buffer, std::memory_order_release);  // the owner may reuse or free the record from here on
  if (before != CompletionRecord::asleep) return;
  CHECK(waker != nullptr);  // somebody sleeps on a table that cannot wake
  waker->wake(word);
}

}  // namespace ccixfer::rvma
