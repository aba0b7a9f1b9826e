// Walks the sources some batches ahead of what is announced, and reads the digests for --checksum.
// Both are jobs in the work pool.
// In: the sources, as the Walk has them. Out: batches in a Listings.
// Errors: a source that cannot be selected ends the session (on_selection_failed); what cannot be
// listed later is a record.
// Bounds: batches_ahead_max batches (and digest_jobs_max more with digests); roots_open_max root
// directories.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "app/send/buffer_share.h"
#include "app/send/entry_table.h"
#include "app/send/jobs.h"
#include "app/send/listings.h"
#include "core/base/result.h"

namespace ccixfer::send {

inline constexpr uint32_t batches_ahead_max = 3;
inline constexpr uint32_t roots_open_max = 64;
inline constexpr uint32_t digest_jobs_max = 4;
inline constexpr uint32_t digest_batch_entries = 64;  // of a walk whose files are read for their digests

class ListerHandler {
 public:
  virtual ~ListerHandler() = default;
  virtual void on_selection_failed(const Error& error) = 0;
  virtual void on_listed(uint64_t bytes) = 0;  // files of so many bytes were found
};

class Lister {
 public:
  Lister(std::shared_ptr<Jobs> jobs, std::shared_ptr<WalkHold> walk, bool digests, ListerHandler& handler);

  void select();  // once, before the first turn
  // Closes the root directories of sources that are listed and have no entries left.
  void release_roots(const EntryTable& entries);
  void advance_walk();
  void start_digests(BufferShare& buffers, bool keep_one);  // `keep_one`: see BufferShare
  [[nodiscard]] Listings& listings() { return listings_; }
  [[nodiscard]] bool over() const { return walk_over_ && listings_.batches() == 0; }  // every record was taken

 private:
  struct SelectData {
    std::shared_ptr<WalkHold> walk;
    std::optional<Error> error;
  };
  struct WalkData {
    std::shared_ptr<WalkHold> walk;
    std::shared_ptr<WalkBatch> batch;
    bool may_open_root = false;
  };
  struct DigestData {
    std::shared_ptr<WalkHold> walk;
    std::shared_ptr<WalkBatch> batch;
    uint64_t number = 0;
    Buffer buffer;
  };
  static void read_digests(ports::FileSystem& files, DigestData& data, Jobs& jobs);
  void selected(SelectData& data);
  void walked(WalkData& data);
  void digested(DigestData& data);

  const std::shared_ptr<Jobs> jobs_;
  const std::shared_ptr<WalkHold> walk_;
  const bool digests_;
  ListerHandler& handler_;
  bool selected_ = false;
  bool walking_ = false;     // a step is in the work pool
  bool walk_over_ = false;   // all batches are here
  bool wants_root_ = false;  // the walk stands before a source directory that it may not open yet
  Listings listings_;
  uint32_t digest_jobs_ = 0;
  uint32_t sources_released_ = 0;     // sources before it are listed: their roots are in open_roots_, or closed
  std::vector<uint32_t> open_roots_;  // sources
};

}  // namespace ccixfer::send
