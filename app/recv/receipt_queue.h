// What a receipt says of the entries that were delivered, or were there (receipt::Sink): each is looked at where it stands now, and
// read for its digest. Entries wait while there are many, and the session ends when all have been looked at. A directory gets its
// own mode only after what is in it was looked at (has_any), since that mode may let nobody look. Protocol thread; `describe` runs
// in jobs, receipt_jobs_max at a time.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
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
  std::string path;                   // below the root
  uint64_t size_bytes = 0;            // of a file
  uint64_t index = 0;                 // of its entry in the session
  std::optional<uint32_t> mode = {};  // of a directory, as it has just been seen: it is not looked at again
  receipt::Entry entry = {};          // out
  bool is_there = false;              // out
};

class ReceiptQueue {
 public:
  using Describe = std::function<void(std::vector<ReceiptItem>&)>;
  // `told` is called when has_any may answer otherwise than before.
  ReceiptQueue(SessionJobs& jobs, Describe describe, receipt::Sink* sink, std::function<void()> told)
      : jobs_(jobs), describe_(std::move(describe)), sink_(sink), told_(std::move(told)) {}
  ReceiptQueue(const ReceiptQueue&) = delete;
  ReceiptQueue& operator=(const ReceiptQueue&) = delete;

  void add(receipt::EntryType type, const std::string& path, uint64_t size_bytes, uint64_t index) {
    add({type, path, size_bytes, index});
  }
  void add_directory(const std::string& path, std::optional<uint32_t> mode) {
    add({receipt::EntryType::directory, path, 0, of_no_directory, mode});
  }
  [[nodiscard]] bool has_any(uint64_t first_index, uint64_t end_index) const {
    const auto at = indexes_.lower_bound(first_index);
    return at != indexes_.end() && *at < end_index;
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
  void cancel() {  // the session has failed
    for (const ReceiptItem& item : waiting_) indexes_.erase(indexes_.find(item.index));
    waiting_.clear();
  }

 private:
  static constexpr uint64_t of_no_directory = ~uint64_t{0};  // nobody waits for it
  void add(ReceiptItem item) {
    if (sink_ == nullptr) return;
    indexes_.insert(item.index);
    waiting_.push_back(std::move(item));
  }
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
      indexes_.erase(indexes_.find(item.index));
      if (item.entry.path.empty()) continue;  // the root itself
      item.is_there ? sink_->on_entry(item.entry) : sink_->on_unlisted();
    }
    told_();
  }

  SessionJobs& jobs_;
  const Describe describe_;
  receipt::Sink* const sink_;
  const std::function<void()> told_;
  std::deque<ReceiptItem> waiting_;
  std::multiset<uint64_t> indexes_;  // of those that wait or are looked at
  uint32_t running_ = 0;
};

}  // namespace ccixfer::recv
