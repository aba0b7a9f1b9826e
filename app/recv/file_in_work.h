// One file between its verdict and its result: what has come of it, who is at work on it, and what
// has to be done with it next.
// In: what arrives and what jobs report. Out: next(), a decision without an effect; the owner of
// the file carries it out. A file ends when no job holds it any more. Its content comes either in a
// pack or in pieces.
// Protocol thread.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "app/recv/file_pieces.h"
#include "app/recv/results.h"
#include "app/recv/task.h"
#include "app/session/messages.h"

namespace ccixfer::recv {

inline constexpr uint32_t io_failures_max = 1;  // so often a file's content is asked for again after a write or sync failed
// The most pieces, and files of packs, that are asked for again in a session because the disk had damaged them. Each may be once.
inline constexpr uint32_t damaged_at_rest_max = 100;

enum class NextStep : uint8_t {
  none,     // something has to come or to end first
  commit,   // all of it is here: it gets its attributes and its final name
  sync,     // it has failed, and what is here of it is kept for the next run
  discard,  // it has failed, and what is staged of it is worthless
  end,      // it has failed, and nothing is left to be done
};

class FileInWork {
 public:
  explicit FileInWork(FileTaskRef task) : task_(std::move(task)), leads_(!task_->first_name.empty()) {}

  [[nodiscard]] const FileTask& task() const { return *task_; }
  [[nodiscard]] FileTaskRef task_ref() const { return task_; }
  [[nodiscard]] bool is_length_known() const { return task_->size_bytes != size_unknown; }
  [[nodiscard]] uint64_t size_bytes() const;  // size_unknown while nobody has said it
  [[nodiscard]] FileShare& share() { return share_; }
  [[nodiscard]] const FileShare& share() const { return share_; }

  // A further name of a file (linked_names.h): nothing of it is wanted while it waits for the first name.
  void wait_for_link() { waits_for_link_ = true; }
  void want_content(bool leads) {
    waits_for_link_ = false;
    leads_ = leads;
  }
  [[nodiscard]] bool leads() const { return leads_; }  // further names wait for it

  // While a job uses it.
  void hold() { ++holders_; }
  void let_go();
  [[nodiscard]] bool is_held() const { return holders_ > 0; }

  // Content of it may be written: it has neither failed nor is it complete.
  [[nodiscard]] bool takes_content() const { return !failure_ && !committing_ && !by_pack_ && !waits_for_link_; }
  // Something of it has still to come from its source.
  [[nodiscard]] bool awaits_source() const;
  // Its content came in a pack. False: content is here already, or it has failed.
  [[nodiscard]] bool begin_pack();
  void drop_pack() { by_pack_ = false; }  // the pack was damaged or could not be written: the content may come again
  [[nodiscard]] FilePieces* pieces() { return pieces_.get(); }
  [[nodiscard]] const FilePieces* pieces() const { return pieces_.get(); }
  FilePieces& begin_pieces(std::shared_ptr<StagedFile> staged);
  [[nodiscard]] bool wants_sync() const;

  void set_end(const session::FileEnd& end) { end_ = end; }
  // The first failure counts; false: there was one.
  bool fail(FileFailure failure);
  [[nodiscard]] const std::optional<FileFailure>& failure() const { return failure_; }
  // A write or a sync of the file failed. Whether its content may be asked for again; false: that was done too often.
  [[nodiscard]] bool may_come_again() { return ++io_failures_ <= io_failures_max; }

  // The disk damaged this piece (Resend::whole: the file of a pack). True: for the first time, so it may be asked for again.
  [[nodiscard]] bool may_be_damaged(uint64_t piece) { return damaged_.insert(piece).second; }

  // May find that it has failed: its content is not what was promised.
  [[nodiscard]] NextStep next();
  void begin_commit();
  void end_commit();

 private:
  [[nodiscard]] NextStep after_failure() const;
  [[nodiscard]] std::optional<FileFailure> wrong_content(const PieceTable& table, uint64_t count) const;

  const FileTaskRef task_;
  uint32_t holders_ = 0;
  uint32_t io_failures_ = 0;
  bool by_pack_ = false;
  bool waits_for_link_ = false;
  bool leads_ = false;
  bool committing_ = false;
  std::unique_ptr<FilePieces> pieces_;
  std::set<uint64_t> damaged_;  // pieces that came again since the disk had damaged them
  std::optional<session::FileEnd> end_;
  std::optional<FileFailure> failure_;
  FileShare share_;
};

}  // namespace ccixfer::recv
