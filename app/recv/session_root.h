// A root as one session writes below it: the session's claims on final paths, the directories that
// it has met, and the work that its jobs do on the disk.
// In: what the jobs of a session are given. Out: what became of it, item by item; an error that is
// returned ends the session. The methods under `jobs` run on pool threads, several at a time,
// except that only one job judges at a time; the others run on the protocol thread. The object
// outlives its jobs.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/recv/aside.h"
#include "app/recv/asked.h"
#include "app/recv/attributes.h"
#include "app/recv/backups.h"
#include "app/recv/budget.h"
#include "app/recv/commit.h"
#include "app/recv/directories.h"
#include "app/recv/entries.h"
#include "app/recv/entry_queue.h"
#include "app/recv/leaves.h"
#include "app/recv/older_trees.h"
#include "app/recv/opened_root.h"
#include "app/recv/owner_names.h"
#include "app/recv/packs.h"
#include "app/recv/pieces.h"
#include "app/recv/receipt_queue.h"
#include "app/recv/root.h"
#include "app/session/kept_names.h"
#include "app/session/segment.h"
#include "app/session/tweaks.h"

namespace ccixfer::recv {

class SessionRoot {
 public:
  // Opens what is there now if what was open is gone. `options`: session::Option bits. `limits`: which
  // rights there are.
  SessionRoot(Root& root, uint32_t options, const Deliveries::Transfer& transfer, const Limits& limits = {},
              const std::string& peer = {}, const Aside& aside = {}, session::TweaksRef tweaks = {});
  ~SessionRoot();  // gives up the claims
  // How many staged files of this session may have a descriptor at a time. Directories have a share of their own.
  [[nodiscard]] size_t staged_files_max() const;
  SessionRoot(const SessionRoot&) = delete;
  SessionRoot& operator=(const SessionRoot&) = delete;

  [[nodiscard]] const Result<void>& opened() const { return opened_; }
  // Before any job. `path` is where the session writes, as a user typed it. not_authorised: it
  // leads out of the root. `kept`: by the transfer's earlier sessions. `is_new`: that directory was made for this transfer.
  [[nodiscard]] Result<void> begin(const std::string& path, const std::optional<Asked>& asked,
                                   std::shared_ptr<session::KeptNames> kept = {}, bool is_new = false);
  // After begin. `already`: what earlier sessions of the transfer have deleted.
  void begin_deletions(const DeleteWish& wish, uint64_t already);
  [[nodiscard]] const std::string& path() const { return root_->path; }
  [[nodiscard]] ports::FileSystem& files() const { return root_->files; }
  [[nodiscard]] const std::string& base() const { return base_; }  // after begin: where the session writes, below the root
  [[nodiscard]] LinkedNames& linked_names() { return linked_; }
  void release(const Hash128& key) { root_->claims.release(key, owner_); }  // a claim: its file has ended
  void set_link_dead(bool is_dead) { owner_->link_dead.store(is_dead); }
  [[nodiscard]] bool is_taken_over() const { return owner_->lost.load(); }  // by a session that claims what this one did
  [[nodiscard]] uint64_t steps() const { return owner_->steps.load(std::memory_order_relaxed); }
  [[nodiscard]] std::shared_ptr<StagedFile> make_staged(const FileTask& task, bool resumed);
  [[nodiscard]] bool remembers_deliveries() const { return root_->deliveries && !root_->deliveries->empty(); }

  // Jobs.
  [[nodiscard]] JudgedSegment judge(MutableBytes segment, const session::SegmentHeader& header, const session::DataOpener* opener,
                                    uint64_t first_index);
  void stage(std::vector<PackItem>& items) const;  // the data that the items are in have been opened
  [[nodiscard]] OlderFile::Taken take_older(OlderFile& older, StagedFile* staged, const FileTask& task, uint64_t piece) const {
    return older.take(staged, task.size_bytes, piece, *owner_);
  }
  [[nodiscard]] std::optional<Error> sync(std::vector<SyncFile>& batch) const;
  void commit(std::vector<CommitItem>& batch);
  [[nodiscard]] std::vector<LeaveOutcome> apply(const std::vector<Leave>& leaves);
  void remove_staged(const std::vector<std::string>& names) const;
  void discard(const FileTask& task, StagedFile& staged) const;
  // From now on other receivers of this file system may write into the staged file, which is made if it is not there. Gives a
  // descriptor of the share, as make_share does, or -errno.
  [[nodiscard]] int share(StagedFile& staged, const session::SharedPlace& place) const;
  void describe(
      std::vector<ReceiptItem>& items) const;  // as they stand below the root now; paths become those below `path` of begin
  // --delete, when everything else is done: the next step.
  [[nodiscard]] DeleteStep delete_some(bool only_what_made_room) { return deletions_->step(only_what_made_room); }
  [[nodiscard]] bool deletes() const { return deletions_ != nullptr; }
  // Everything that was written is durable, and stands where its path leads.
  [[nodiscard]] std::optional<Error> sync_all();
  // The transfer has ended well: the next run of the command begins anew.
  void forget_deliveries() const;

 private:
  const Result<void> opened_;
  const std::shared_ptr<OpenedRoot> root_;
  KnownDirectories directories_;
  const Policy policy_;
  const std::shared_ptr<Owner> owner_ = std::make_shared<Owner>();
  std::string base_;  // after begin: where the session writes, below the root
  const Aside aside_;
  bool has_staged_ = false;
  LinkedNames linked_;
  OwnerNames owner_names_;
  const session::TweaksRef tweaks_;
  std::unique_ptr<OlderTrees> older_;  // these are there after begin, if there are any
  std::unique_ptr<Backups> backups_;
  std::unique_ptr<Deletions> deletions_;   // after begin, if there are to be any
  std::unique_ptr<EntryDecider> decider_;  // after begin
  std::optional<AskedEntries> asked_;      // of a pull
};

}  // namespace ccixfer::recv
