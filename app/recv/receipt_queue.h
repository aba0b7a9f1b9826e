// What a receipt says of the entries that were delivered, or were there (receipt::Sink): each is looked at where it stands now, and
// read for its digest. Entries wait while there are many, and the session ends when all have been looked at.
// Protocol thread; `describe` runs in jobs, receipt_jobs_max at a time.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/receipt/describe.h"
#include "app/recv/session_jobs.h"

namespace ccixfer::recv {

inline constexpr uint32_t receipt_jobs_max = 2;
inline constexpr size_t receipts_waiting_max = 16384;
inline constexpr size_t receipt_batch_entries_max = 64;
inline constexpr uint64_t receipt_batch_bytes_max = 8u << 20;

struct ReceiptItem {
  receipt::EntryType type = receipt::EntryType::file;
  std::string path;           // below the root
  uint64_t size_bytes = 0;    // of a file
  receipt::Entry entry = {};  // out
  bool is_there = false;      // out
};

class ReceiptQueue {
 public:
  using Describe = std::function<void(std::vector<ReceiptItem>&)>;
  ReceiptQueue(SessionJobs& jobs, Describe describe, receipt::Sink* sink)
      : jobs_(jobs), describe_(std::move(describe)), sink_(sink) {}
  ReceiptQueue(const ReceiptQueue&) = delete;
  ReceiptQueue& operator=(const ReceiptQueue&) = delete;

  void add(receipt::EntryType type, const std::string& path, uint64_t size_bytes) {
    if (sink_ != nullptr) waiting_.push_back({type, path, size_bytes});
  }
  [[nodiscard]] bool has_room() const { return waiting_.size() < receipts_waiting_max; }
  [[nodiscard]] bool empty() const { return waiting_.empty() && running_ == 0; }
  void turn() {
    while (!waiting_.empty() && running_ < receipt_jobs_max) {
      auto batch = std::make_shared<std::vector<ReceiptItem>>(next_batch());
      ++running_;
      jobs_.submit([this, batch] { describe_(*batch); }, [this, batch] { described(*batch); });
    }
  }
  void cancel() { waiting_.clear(); }  // the session has failed

 private:
  [[nodiscard]] std::vector<ReceiptItem> next_batch() {
    std::vector<ReceiptItem> batch;
    uint64_t bytes = 0;
    while (!waiting_.empty() && batch.size() < receipt_batch_entries_max) {
      bytes += waiting_.front().size_bytes;
      if (!batch.empty() && bytes > receipt_batch_bytes_max) break;
      batch.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    return batch;
  }
  void described(const std::vector<ReceiptItem>& batch) {
    --running_;
    for (const ReceiptItem& item : batch) {
      if (item.entry.path.empty()) continue;  // the root itself
      item.is_there ? sink_->on_entry(item.entry) : sink_->on_unlisted();
    }
  }

  SessionJobs& jobs_;
  const Describe describe_;
  receipt::Sink* const sink_;
  std::deque<ReceiptItem> waiting_;
  uint32_t running_ = 0;
};

}  // namespace ccixfer::recv
