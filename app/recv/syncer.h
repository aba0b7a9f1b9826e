// Which staged files have pieces that are written and not durable, and when the next sync of them
// is due: sync_interval after the first of them was written, at once when they are many or the
// session ends. One sync runs at a time.
// Out: FileHandler hears what is durable, and what was lost with a sync that failed.
// Protocol thread; `sync` runs in a job.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "app/recv/file_handler.h"
#include "app/recv/session_handler.h"
#include "app/recv/session_jobs.h"
#include "core/base/time.h"

namespace ccixfer::recv {

inline constexpr Duration sync_interval = std::chrono::milliseconds(200);
inline constexpr uint64_t sync_bytes_max = 64u << 20;

class Syncer {
 public:
  // Out: what ends the session, beside what the batch says of each file.
  using Sync = std::function<std::optional<Error>(std::vector<SyncFile>&)>;
  Syncer(SessionJobs& jobs, Sync sync, FileHandler& files, SessionHandler& session)
      : jobs_(jobs), sync_(std::move(sync)), files_(files), session_(session) {}
  Syncer(const Syncer&) = delete;
  Syncer& operator=(const Syncer&) = delete;

  // That file has `bytes` more that are written and not durable; 0: it only has some.
  void add(uint64_t index, uint64_t bytes);
  void turn(Instant now, bool at_once);
  [[nodiscard]] Instant next_deadline() const { return since_ != never && !is_running_ ? since_ + sync_interval : never; }
  [[nodiscard]] bool empty() const { return waiting_.empty(); }

 private:
  [[nodiscard]] std::vector<SyncFile> take_batch();
  void synced(const std::vector<SyncFile>& batch, const std::optional<Error>& failure);
  void count(FileInWork& file, const SyncFile& sync);
  void synced_one(FileInWork& file, const SyncFile& sync, bool are_in_ledger);

  SessionJobs& jobs_;
  const Sync sync_;
  FileHandler& files_;
  SessionHandler& session_;
  std::vector<uint64_t> waiting_;  // numbers of files; one that comes twice has nothing left the second time
  uint64_t waiting_bytes_ = 0;
  Instant since_ = never;  // the turn that first saw one waiting
  bool is_running_ = false;
};

}  // namespace ccixfer::recv
