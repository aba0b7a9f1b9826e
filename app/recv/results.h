// What has become of the files of a session: counted for the program, told to its reporter, and
// kept for later sessions of the same transfer (session::TransferRecord), so that each file and
// each byte is counted once and told once.
// In: verdicts, and how the files that were wanted ended. Out: the tally, and what Durable and
// Summary say.
// Protocol thread.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/recv/entries.h"
#include "app/recv/observer.h"
#include "app/recv/task.h"
#include "app/session/messages.h"
#include "app/session/tally.h"
#include "app/session/transfer_record.h"

namespace ccixfer::recv {

// Why a file ends without success.
struct FileFailure {
  ErrorKind kind = ErrorKind::file_io;
  int error_number = 0;
  bool discard = true;  // what is staged is worthless
  std::string reason;
  bool has_changed = false;  // at the source
};
[[nodiscard]] inline FileFailure changed_at_source() {
  return {ErrorKind::vanished, 0, true, "it changed while it was read", true};
}

// A file's part in the counts of bytes, until it has ended.
struct FileShare {
  uint64_t counted_bytes = 0;  // of the total: what the transfer moves of it
  uint64_t before_bytes = 0;   // of those: what an earlier session of the transfer brought
  uint64_t durable_bytes = 0;  // and what this one made durable
};

class Results {
 public:
  // `record`: of the transfer's earlier sessions; none: this is the only one.
  // `options`: session::Option bits, with option_itemize if it is for us to tell what is done.
  // `tries_changed_again`: as of DestinationOptions.
  Results(std::shared_ptr<session::TransferRecord> record, DestinationObserver& observer, uint32_t options = 0,
          bool tries_changed_again = false);

  // The verdict on an entry that is not wanted.
  void decided(const Decision& decision);
  // Whether an earlier session of the transfer brought this file, which is unchanged now.
  [[nodiscard]] bool came_before(const Decision& decision) const;
  void answered(uint64_t first_index, const std::vector<Decision>& decisions);  // these, and all before them
  // A file is wanted, but for the bytes that are present.
  [[nodiscard]] FileShare wanted(const FileTask& task, uint64_t present_bytes);
  [[nodiscard]] FileShare linked(const FileTask& task);  // it becomes a further name of a file, without bytes of its own
  void not_linked(const FileShare& share);               // it is wanted after all
  void durable(FileShare& share, uint64_t bytes);
  // So many bytes more are known of a file whose length was not known. They count in the total only now.
  void grown(uint64_t bytes) { tally_.bytes_total += bytes; }
  void delivered(const FileTask& task, uint64_t bytes);
  void failed(const FileTask& task, const FileShare& share, const FileFailure& failure);
  [[nodiscard]] uint64_t to_try_again() const { return to_try_again_; }  // files that changed, of which nobody was told
  void attributes_refused() { ++tally_.attributes_refused; }
  void attributes_failed() { ++tally_.files_failed; }  // of a directory
  void received(uint64_t bytes) { tally_.bytes_sent += bytes; }
  void asked_again() { ++tally_.segments_resent; }
  void not_listed(uint64_t failed, uint64_t vanished);
  // What the source could not list, by name. One that is as long as a message can hold is told as a warning.
  void unlisted(const std::string& path, std::string_view reason);
  void unnamed(uint64_t things) { observer_.on_unnamed(things); }               // that the source could not list either
  void deleted(const DeleteStep& step, std::string_view base = {});             // `base`: of the session, below the root
  [[nodiscard]] uint64_t deleted_before() const { return record_->deleted(); }  // by earlier sessions of the transfer
  [[nodiscard]] std::shared_ptr<session::KeptNames> kept_backups();             // by those sessions and this one
  void over() { tally_.over = true; }

  [[nodiscard]] const session::Tally& tally() const { return tally_; }
  [[nodiscard]] session::Durable durable_so_far() const { return {session_bytes_, tally_.files}; }
  [[nodiscard]] session::Summary summary() const;
  // A line for each kind of thing that did not come as it was asked for and that no file told of. `root` is shown in them.
  [[nodiscard]] std::vector<std::string> failures(const std::string& root) const;

 private:
  void unchanged(const Decision& decision);
  void left_out(const Decision& decision);
  void tell(const std::string& path, uint64_t version, uint64_t bytes, session::TransferRecord::Said said, std::string_view reason);
  void keep_items(const FileTask& task);
  void itemize(const std::string& path, session::EntryType type, uint64_t version, const std::string& target, session::Items items);
  void tell_of_dry_run(const Decision& decision, std::string_view what);

  const std::shared_ptr<session::TransferRecord> record_;
  DestinationObserver& observer_;
  const uint32_t options_;
  const bool tries_changed_again_;
  uint64_t to_try_again_ = 0;
  session::Tally tally_;
  uint64_t session_bytes_ = 0;  // of tally_.bytes: what this session made durable
};

}  // namespace ccixfer::recv
