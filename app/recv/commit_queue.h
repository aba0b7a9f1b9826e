// Staged files that wait for the committer. One batch is committed at a time, and all that came
// meanwhile is the next one, so that a sync serves many files. When the session has failed, what
// waits is given back instead. A file into which another receiver still writes is tried again, for
// held_patience. What was replaced is let go of in a job behind the batch.
// Protocol thread; `commit` runs in a job.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "app/recv/commit.h"
#include "app/recv/session_jobs.h"
#include "core/base/time.h"

namespace ccixfer::recv {

inline constexpr Duration held_pause = std::chrono::milliseconds(500);
// How long to wait for another receiver that writes into a file. A slow sync of that receiver may take as long, and then it lets
// the file go. A receiver that hangs keeps the file until it is stopped.
inline constexpr Duration held_patience = std::chrono::minutes(2);

class CommitHandler {
 public:
  virtual ~CommitHandler() = default;
  virtual void on_committed(const CommitItem& item) = 0;         // with its outcome
  virtual void on_commit_cancelled(const CommitItem& item) = 0;  // the session has failed: nothing was done
};

class CommitQueue {
 public:
  using Commit = std::function<void(std::vector<CommitItem>&)>;
  CommitQueue(SessionJobs& jobs, Commit commit, CommitHandler& handler)
      : jobs_(jobs), commit_(std::move(commit)), handler_(handler) {}
  CommitQueue(const CommitQueue&) = delete;
  CommitQueue& operator=(const CommitQueue&) = delete;

  void add(CommitItem item) {
    if (item.file) ++files_waiting_;
    waiting_.push_back(std::move(item));
  }
  // Those that came in pieces, in a batch or not: each has a descriptor.
  [[nodiscard]] size_t files_waiting() const { return files_waiting_; }
  [[nodiscard]] bool empty() const { return waiting_.empty() && held_.empty(); }
  [[nodiscard]] Instant next_deadline() const { return held_until_; }
  // Begins a batch, if none is running.
  void turn(Instant now) {
    now_ = now;
    if (now >= held_until_) {
      held_until_ = never;
      for (CommitItem& item : std::exchange(held_, {})) waiting_.push_back(std::move(item));
    }
    if (is_running_ || waiting_.empty()) return;
    auto batch = std::make_shared<std::vector<CommitItem>>(std::exchange(waiting_, {}));
    is_running_ = true;
    jobs_.submit([this, batch] { commit_(*batch); }, [this, batch] { committed(*batch); });
  }
  // As turn, of a session that has failed. True: something was given back.
  bool cancel() {
    if (is_running_ || empty()) return false;
    held_until_ = never;
    for (CommitItem& item : std::exchange(held_, {})) waiting_.push_back(std::move(item));
    for (const CommitItem& item : std::exchange(waiting_, {})) {
      uncount(item);
      handler_.on_commit_cancelled(item);
    }
    return true;
  }

 private:
  void committed(std::vector<CommitItem>& batch) {
    is_running_ = false;
    const auto is_to_wait = [this](const CommitItem& item) {
      return item.outcome == CommitOutcome::held && now_ - item.held_since.value_or(now_) < held_patience;
    };
    const auto ended = std::stable_partition(batch.begin(), batch.end(), is_to_wait);
    for (auto item = batch.begin(); item != ended; ++item) {
      if (!item->held_since) item->held_since = now_;
      item->outcome = CommitOutcome::ok;
      held_.push_back(std::move(*item));
      held_until_ = after(now_, held_pause);
    }
    batch.erase(batch.begin(), ended);
    let_go_of_replaced(batch);
    for (const CommitItem& item : batch) uncount(item);
    for (const CommitItem& item : batch) handler_.on_committed(item);
  }
  // A job of its own: nobody has to wait for it.
  void let_go_of_replaced(std::vector<CommitItem>& batch) {
    auto replaced = std::make_shared<std::vector<HeldFileRef>>();
    for (CommitItem& item : batch) {
      if (item.replaced) replaced->push_back(std::exchange(item.replaced, nullptr));
    }
    if (!replaced->empty()) jobs_.submit([replaced] { replaced->clear(); }, [] {});
  }
  void uncount(const CommitItem& item) { files_waiting_ -= item.file ? 1u : 0u; }

  SessionJobs& jobs_;
  const Commit commit_;
  CommitHandler& handler_;
  std::vector<CommitItem> waiting_;
  std::vector<CommitItem> held_;  // by another receiver; they wait too
  Instant held_until_ = never;
  Instant now_{};
  size_t files_waiting_ = 0;
  bool is_running_ = false;
};

}  // namespace ccixfer::recv
