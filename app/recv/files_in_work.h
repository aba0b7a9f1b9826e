// The files of a session between their verdict and their result, by number: what each of them needs
// next, and how it ends.
// In: verdicts, FileEnd messages, and what those who write, sync and commit report (FileHandler,
// CommitHandler). Out: FileSteps, and the counts in Results. A file that fails ends when no job
// uses it any more, after what is staged of it is gone, or kept for the next run. Bounded:
// has_room. Protocol thread.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "app/recv/commit_queue.h"
#include "app/recv/file_handler.h"
#include "app/recv/linked_names.h"
#include "app/recv/results.h"
#include "app/recv/session_handler.h"

namespace ccixfer::recv {

// What a file needs from others.
class FileSteps {
 public:
  virtual ~FileSteps() = default;
  virtual void commit(CommitItem item) = 0;
  virtual void sync_soon(uint64_t index, uint64_t bytes) = 0;  // pieces of it were written, so many bytes more; 0: it has failed
  // Removes what is staged of it and its rows in the ledger; then FilesInWork::discarded is called.
  virtual void discard(const FileTaskRef& task, const std::shared_ptr<StagedFile>& staged) = 0;
  // Its content is to come although it was announced as a further name of another file.
  virtual void wanted_after_all(const FileTask& task) = 0;
  // These pieces of it become holes; then FilesInWork::holes_made is called.
  virtual void make_holes(const FileTaskRef& task, const std::shared_ptr<StagedFile>& staged, const session::Holes& holes) = 0;
  virtual void remove_staged(std::string name) = 0;  // of a file of a pack
  virtual void ended(const FileTask& task, const session::FileResult& result) = 0;
};

class FilesInWork final : public FileHandler, public CommitHandler {
 public:
  using MakeStaged = std::function<std::shared_ptr<StagedFile>(const FileTask& task, bool resumed)>;
  FilesInWork(SessionHandler& session, FileSteps& steps, Results& results, LinkedNames& linked, MakeStaged make_staged)
      : session_(session), steps_(steps), results_(results), linked_(linked), make_staged_(std::move(make_staged)) {}
  FilesInWork(const FilesInWork&) = delete;
  FilesInWork& operator=(const FilesInWork&) = delete;

  [[nodiscard]] bool empty() const { return files_.empty(); }
  // The source's promise: so many files more may be outstanding.
  [[nodiscard]] bool has_room(size_t count) const { return files_.size() + count <= 2 * size_t{session::entries_outstanding_max}; }
  [[nodiscard]] bool has_any(uint64_t first, uint64_t end) const;  // with a number in [first, end)
  void add(const Decision& decision);                              // a verdict that wants a file, or pieces of it
  // False: no file of that number is in work.
  [[nodiscard]] bool on_end(const session::FileEnd& end);
  // False: these cannot be pieces of a file that is known.
  [[nodiscard]] bool on_holes(const session::Holes& holes);
  void holes_made(const session::Holes& holes, int error_number);
  void discarded(uint64_t index);

  FileInWork* find(uint64_t index) override;
  FilePieces& pieces_of(FileInWork& file) override;
  void on_written(FileInWork& file, uint64_t bytes) override;
  void on_durable(FileInWork& file, uint64_t bytes) override;
  void on_staged(FileInWork& file, CommitItem item) override;
  void on_failed(FileInWork& file, FileFailure why) override;
  void on_io_failed(FileInWork& file, int error_number, const std::vector<uint64_t>& lost_pieces) override;
  void on_damaged_at_rest(FileInWork& file, const std::vector<uint64_t>& pieces) override;
  void on_job_ended(uint64_t index) override;
  void on_committed(const CommitItem& item) override;
  void on_commit_cancelled(const CommitItem& item) override;

 private:
  void go_on(FileInWork& file);
  void begin_commit(FileInWork& file);
  void on_placed(FileInWork& file, const CommitItem& item);
  void on_not_placed(FileInWork& file, const CommitItem& item);
  void disk_fails(const FileInWork& file);
  void end_delivered(FileInWork& file, uint64_t bytes);
  void end_failed(FileInWork& file);
  void end(FileInWork& file, ErrorKind kind, int error_number);
  void add_link(FileInWork& file);
  void want_after_all(FileInWork& file, bool leads);
  void link_those_that_wait(const std::string& first);
  void on_not_linked(FileInWork& file, const CommitItem& item);

  SessionHandler& session_;
  FileSteps& steps_;
  Results& results_;
  LinkedNames& linked_;
  const MakeStaged make_staged_;
  std::map<uint64_t, FileInWork> files_;
  std::map<std::string, std::vector<uint64_t>, std::less<>> waiting_;  // for the first name of their file
  uint32_t damaged_at_rest_ = 0;                                       // pieces and files of packs, of this session
};

}  // namespace ccixfer::recv
