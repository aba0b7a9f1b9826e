#include "app/recv/results.h"

#include <fmt/format.h>

#include <optional>

#include "app/recv/kept_backups.h"
#include "app/recv/names.h"
#include "app/session/limits.h"
#include "app/session/receiver_words.h"
#include "core/base/units.h"

namespace ccixfer::recv {

using session::TransferRecord;
using session::Verdict;

Results::Results(std::shared_ptr<TransferRecord> record, DestinationObserver& observer, uint32_t options, bool tries_changed_again)
    : record_(record ? std::move(record) : std::make_shared<TransferRecord>()),
      observer_(observer),
      options_(options),
      tries_changed_again_(tries_changed_again) {}

void Results::itemize(const std::string& path, session::EntryType type, uint64_t version, const std::string& target,
                      session::Items items) {
  if ((options_ & session::option_itemize) == 0 || !session::is_told(items)) return;
  const std::string name = session::item_name(path, type);
  // Each once, whatever a later session still finds to be done. The NUL tells it from the names of files.
  if (!record_->say(TransferRecord::name(name + '\0', version), TransferRecord::Said::ok)) return;
  const bool keeps_times = (options_ & session::option_times) != 0;
  observer_.on_item({session::letters_of(items, {type, false, keeps_times}), name, target});
}

void Results::tell(const std::string& path, uint64_t version, uint64_t bytes, TransferRecord::Said said, std::string_view reason) {
  if (!record_->say(TransferRecord::name(path, version), said)) return;
  const char* status = said == TransferRecord::Said::ok ? "ok" : said == TransferRecord::Said::unchanged ? "unchanged" : "failed";
  observer_.on_file(path, bytes, status, reason);
}

std::shared_ptr<session::KeptNames> Results::kept_backups() {
  if (!record_->kept_backups()) record_->kept_backups() = std::make_shared<KeptBackups>();
  return record_->kept_backups();
}

void Results::unlisted(const std::string& path, std::string_view reason) {
  // A message holds no more of it: most likely this is the end of a longer one, which names another file, or none.
  if (path.size() >= session::unlisted_path_bytes_max) {
    observer_.on_unnamed(1);
    if (!record_->say(TransferRecord::name(path, 0), TransferRecord::Said::failed)) return;
    return observer_.on_failure("..." + printable(path) + ": " + std::string(reason));
  }
  if (!record_->say(TransferRecord::name(path, 0), TransferRecord::Said::failed)) return observer_.on_failed_again(path);
  observer_.on_file(path, 0, "failed", reason);
}

void Results::tell_of_dry_run(const Decision& decision, std::string_view what) {
  itemize(decision.path, decision.type, decision.version, decision.target, decision.items);
  if (!record_->say(TransferRecord::name(decision.path, decision.version), TransferRecord::Said::ok)) return;
  observer_.on_file(decision.path, decision.size_bytes, what, "");
}

void Results::decided(const Decision& decision) {
  const bool is_file = decision.type == session::EntryType::file;
  switch (decision.verdict) {
    case Verdict::failed:
      ++tally_.files_failed;
      tell(decision.path, decision.version, decision.size_bytes, TransferRecord::Said::failed,
           describe_errno(decision.error_number));
      return;
    case Verdict::make:
    case Verdict::change:
      if (is_file) ++tally_.files_unchanged;
      tell_of_dry_run(decision, decision.verdict == Verdict::make ? "would-make" : "would-change");
      return;
    case Verdict::unchanged:
      unchanged(decision);
      return;
    case Verdict::left_out:
      left_out(decision);
      return;
    case Verdict::kept:       // said later, of what was unchanged or done here
    case Verdict::delivered:  // said later, of what was unchanged here
    case Verdict::link:
    case Verdict::elsewhere:
      return;
    case Verdict::send:
    case Verdict::pieces:
    case Verdict::compare:
    case Verdict::shared:
      if (!is_file) return;
      tally_.bytes_total += decision.size_bytes;
      tell_of_dry_run(decision, "would-send");
      return;
    case Verdict::done:
      if (decision.attributes_refused) ++tally_.attributes_refused;
      if (decision.type != session::EntryType::leave)
        itemize(decision.path, decision.type, decision.version, decision.target, decision.items);
      return;
  }
}

void Results::answered(uint64_t first_index, const std::vector<Decision>& decisions) {
  tally_.entries_answered = first_index + decisions.size();
  for (const Decision& decision : decisions) tally_.setid_refused += decision.setid_refused ? 1u : 0u;
}

void Results::left_out(const Decision& decision) {
  const std::string_view words = session::words_of_left_out_device;
  if (!record_->say(TransferRecord::name(decision.path, decision.version), TransferRecord::Said::failed)) return;
  observer_.on_warning(fmt::format("{}: {}", printable(decision.path), words));
  observer_.on_file(decision.path, 0, "skipped", words);
}

bool Results::came_before(const Decision& decision) const {
  if (decision.verdict != Verdict::unchanged) return false;
  return record_->delivered(TransferRecord::name(decision.path, decision.version), decision.size_bytes).has_value();
}

// What this transfer brought in an earlier session it has delivered.
void Results::unchanged(const Decision& decision) {
  if (decision.attributes_refused) ++tally_.attributes_refused;
  const uint64_t file = TransferRecord::name(decision.path, decision.version);
  const std::optional<uint64_t> moved_bytes = record_->delivered(file, decision.size_bytes);
  if (moved_bytes) {
    ++tally_.files;
    tally_.bytes += *moved_bytes;
    tally_.bytes_total += *moved_bytes;
  } else {
    ++tally_.files_unchanged;
  }
  tell(decision.path, decision.version, decision.size_bytes,
       moved_bytes ? TransferRecord::Said::ok : TransferRecord::Said::unchanged, "");
  const session::Items items = moved_bytes ? record_->take_items(file) : decision.items;
  itemize(decision.path, decision.type, decision.version, decision.target, items);
}

void Results::keep_items(const FileTask& task) {
  const bool tells = (options_ & session::option_itemize) != 0 && task.items != 0;
  if (tells) record_->keep_items(TransferRecord::name(task.path, task.version), task.items);
}

FileShare Results::linked(const FileTask& task) {
  keep_items(task);
  FileShare share;
  share.counted_bytes = share.before_bytes = record_->want(TransferRecord::name(task.path, task.version), task.size_bytes, 0);
  tally_.bytes_total += share.counted_bytes;
  tally_.bytes += share.before_bytes;
  return share;
}

void Results::not_linked(const FileShare& share) {
  tally_.bytes_total -= share.counted_bytes;
  tally_.bytes -= share.before_bytes;
}

FileShare Results::wanted(const FileTask& task, uint64_t present_bytes) {
  FileShare share;
  keep_items(task);
  if (task.size_bytes == size_unknown) return share;  // it counts when it is committed
  const uint64_t missing_bytes = task.size_bytes - present_bytes;
  share.counted_bytes = record_->want(TransferRecord::name(task.path, task.version), task.size_bytes, missing_bytes);
  share.before_bytes = share.counted_bytes - missing_bytes;
  tally_.bytes_total += share.counted_bytes;
  tally_.bytes += share.before_bytes;
  return share;
}

void Results::durable(FileShare& share, uint64_t bytes) {
  share.durable_bytes += bytes;
  session_bytes_ += bytes;
  tally_.bytes += bytes;
}

void Results::delivered(const FileTask& task, uint64_t bytes) {
  ++tally_.files;
  tell(task.path, task.version, bytes, TransferRecord::Said::ok, "");
  if (task.items == 0) return;
  static_cast<void>(record_->take_items(TransferRecord::name(task.path, task.version)));
  itemize(task.path, session::EntryType::file, task.version, task.linked_to, task.items);
}

void Results::failed(const FileTask& task, const FileShare& share, const FileFailure& failure) {
  tally_.bytes -= share.before_bytes + share.durable_bytes;
  tally_.bytes_total -= share.counted_bytes;
  session_bytes_ -= share.durable_bytes;
  ++(failure.kind == ErrorKind::vanished ? tally_.files_vanished : tally_.files_failed);
  if (failure.has_changed && tries_changed_again_) {
    ++to_try_again_;
    return;
  }
  const uint64_t bytes = task.size_bytes != size_unknown ? task.size_bytes : 0;
  tell(task.path, task.version, bytes, TransferRecord::Said::failed, failure.reason);
}

void Results::not_listed(uint64_t failed, uint64_t vanished) {
  tally_.unlisted_failed = failed;
  tally_.unlisted_vanished = vanished;
}

void Results::deleted(const DeleteStep& step, std::string_view base) {
  const bool is_dry = (options_ & session::option_dry_run) != 0;
  if (!is_dry) record_->deleted(step.deleted.size());
  tally_.deleted = is_dry ? tally_.deleted + step.deleted.size() : record_->deleted();
  tally_.delete_failed += step.failed;
  tally_.delete_skipped += step.skipped;
  for (const Deleted& one : step.deleted) {
    if (is_dry && !record_->say_of_deletion(one.path)) continue;
    const session::EntryType type = one.is_directory ? session::EntryType::directory : session::EntryType::file;
    const std::string name = join_path(base, session::item_name(one.path, type));
    observer_.on_file(name, 0, is_dry ? "would-delete" : "deleted", {});
    if ((options_ & session::option_itemize) != 0) observer_.on_item({std::string(session::letters_of_deletion), name, {}});
  }
}

session::Summary Results::summary() const {
  const uint64_t not_as_asked = tally_.files_failed + tally_.files_vanished + tally_.attributes_refused + tally_.setid_refused;
  return {tally_.files, tally_.files_unchanged, not_as_asked, session_bytes_, tally_.setid_refused};
}

std::vector<std::string> Results::failures(const std::string& root) const {
  std::vector<std::string> lines;
  if (tally_.attributes_refused > 0) {
    lines.push_back(
        fmt::format("the file system refuses modes, times or links: {}: {} files and directories have others than at the "
                    "source: send without -a, or to another file system",
                    root, tally_.attributes_refused));
  }
  if (tally_.setid_refused > 0) lines.push_back(session::words_of_no_setid(tally_.setid_refused));
  return lines;
}

}  // namespace ccixfer::recv
