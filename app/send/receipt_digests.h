// What a receipt says of the entries that were delivered, or were there (receipt::Sink): after the destination's word for it each
// is read once more, for its digest. A file that is another version by then has none. An entry stays in the table until that is
// done, so the listing waits when reading is slow. In: entries that end well. Out: lines for the sink. Protocol thread; the reading
// is a job, receipt_jobs_max at a time.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "app/receipt/describe.h"
#include "app/send/entry_table.h"
#include "app/send/jobs.h"

namespace ccixfer::send {

inline constexpr uint32_t receipt_jobs_max = 2;
inline constexpr size_t receipt_batch_entries_max = 64;
inline constexpr uint64_t receipt_batch_bytes_max = 8u << 20;

class ReceiptDigests {
 public:
  ReceiptDigests(std::shared_ptr<Jobs> jobs, std::shared_ptr<WalkHold> walk, EntryTable& entries, receipt::Sink* sink)
      : jobs_(std::move(jobs)), walk_(std::move(walk)), entries_(entries), sink_(sink) {}

  void take(Entry& entry);  // it has ended well, and is about to leave the table
  void start();             // the jobs that are due
  [[nodiscard]] bool idle() const { return waiting_.empty() && running_ == 0; }

 private:
  struct Item {
    uint32_t slot = 0;
    std::string name;
    SourcePlace place;  // its name is above
    uint64_t version = 0;
    uint32_t mode = 0;  // that the destination was given: --chmod may have changed that of the source
    receipt::Entry entry;
    bool is_there = false;
  };
  struct Data {
    std::shared_ptr<WalkHold> walk;
    std::vector<Item> items;
  };
  [[nodiscard]] std::unique_ptr<Data> next_batch();
  static void describe(ports::FileSystem& files, Data& data, Jobs& jobs);
  void described(Data& data);

  const std::shared_ptr<Jobs> jobs_;
  const std::shared_ptr<WalkHold> walk_;
  EntryTable& entries_;
  receipt::Sink* const sink_;
  std::deque<uint32_t> waiting_;  // slots
  uint32_t running_ = 0;
};

}  // namespace ccixfer::send
