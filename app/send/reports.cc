#include "app/send/reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "app/session/limits.h"
#include "app/session/receiver_words.h"
#include "core/base/units.h"

namespace ccixfer::send {

using session::EntryType;
using session::SourceOutcome;
using session::TransferRecord;

namespace {

std::string words_of(const ReadOutcome& outcome) {
  switch (outcome.outcome) {
    case SourceOutcome::ok:
      return "ok";
    case SourceOutcome::changed:
      return "changed while it was read";
    case SourceOutcome::vanished:
      return "vanished";
    case SourceOutcome::unreadable:
      return "cannot be read: " + std::generic_category().message(outcome.error);
  }
  return "";
}

std::string words_of(const session::FileResult& result) {
  return result.error_number > 0 ? session::words_of_receiver_errno(result.error_number) : error_row(result.kind).words;
}

}  // namespace

Reports::Reports(SourceObserver& observer, std::shared_ptr<TransferRecord> record, std::vector<std::string> sources,
                 uint32_t options)
    : observer_(observer),
      record_(record ? std::move(record) : std::make_shared<TransferRecord>()),
      sources_(std::move(sources)),
      keeps_times_((options & session::option_times) != 0),
      itemizes_((options & session::option_itemize) != 0),
      is_dry_((options & session::option_dry_run) != 0) {}

bool Reports::not_listed(WalkRecord::Kind kind, std::string_view path, std::string_view reason) {
  if (kind == WalkRecord::Kind::warning) {
    skipped(path, reason);
    return false;
  }
  const bool is_news = record_->say(TransferRecord::name(std::string(path), 0), TransferRecord::Said::failed);
  const bool vanished = kind == WalkRecord::Kind::vanished;
  ++(vanished ? tally_.files_vanished : tally_.files_failed);
  ++(vanished ? unlisted_vanished_ : unlisted_failed_);
  if (is_news) {
    observer_.on_file(path, 0, "failed", vanished ? "vanished" : reason);
  } else {
    observer_.on_failed_again(path);
  }
  return unlisted_vanished_ + unlisted_failed_ <= session::unlisted_named_max;
}

void Reports::wanted(Entry& entry) {
  keep_items(entry);
  entry.counted_bytes = record_->want(name_of(entry), entry.listed.size_bytes, entry.listed.size_bytes);
}

// Each once, whatever session finds it. What is left out may be there under the same name from another source: the NUL tells it
// from the names of files.
void Reports::skipped(std::string_view path, std::string_view reason) {
  const uint64_t name = TransferRecord::name(std::string(path) + '\0' + "left out", 0);
  if (!record_->say(name, TransferRecord::Said::failed)) return;
  observer_.on_warning(printable(path) + ": " + std::string(reason));
  observer_.on_file(path, 0, "skipped", reason);
}

void Reports::left_out(const Entry& entry) { skipped(shown_path(entry), session::words_of_left_out_device); }

// It counts as a file, and its bytes count with the first name.
void Reports::linked(Entry& entry) {
  keep_items(entry);
  tally_.bytes_total -= entry.counted_bytes;
  entry.counted_bytes = record_->want(name_of(entry), entry.listed.size_bytes, 0);
  entry.before_bytes = entry.counted_bytes;
  tally_.bytes_total += entry.counted_bytes;
  before_bytes_ += entry.before_bytes;
  count_bytes();
}

void Reports::wanted_after_all(Entry& entry) {
  tally_.bytes_total += entry.listed.size_bytes - entry.counted_bytes;
  before_bytes_ -= entry.before_bytes;
  entry.before_bytes = 0;
  count_bytes();
  wanted(entry);
}

// Some of its pieces are there: from an earlier session of this transfer, or from before it.
void Reports::wanted_in_part(Entry& entry, uint64_t missing_bytes) {
  keep_items(entry);
  const uint64_t size_bytes = entry.listed.size_bytes;
  const uint64_t moved_bytes = record_->want(name_of(entry), size_bytes, missing_bytes);
  tally_.bytes_total -= size_bytes - moved_bytes;
  entry.counted_bytes = moved_bytes;
  entry.before_bytes = moved_bytes - missing_bytes;
  before_bytes_ += entry.before_bytes;
  count_bytes();
}

// What this transfer brought in an earlier session it has delivered, whether or not we heard of it
// then.
void Reports::unchanged(const Entry& entry) {
  tally_.bytes_total -= entry.counted_bytes;
  const std::optional<uint64_t> moved_bytes = record_->delivered(name_of(entry), entry.listed.size_bytes);
  if (!moved_bytes) {
    ++tally_.files_unchanged;
    tell(entry, TransferRecord::Said::unchanged, {});
    return itemize(entry, entry.items);
  }
  ++tally_.files;
  tally_.bytes_total += *moved_bytes;
  before_bytes_ += *moved_bytes;
  count_bytes();
  tell(entry, TransferRecord::Said::ok, {});
  itemize(entry, record_->take_items(name_of(entry)));
}

void Reports::delivered_before(const Entry& entry) {
  const uint64_t size_bytes = entry.listed.size_bytes;
  if (!record_->delivered(name_of(entry), size_bytes)) static_cast<void>(record_->want(name_of(entry), size_bytes, size_bytes));
  unchanged(entry);
}

void Reports::done(const Entry& entry) { itemize(entry, entry.items); }

// A later session of the transfer finds only what the earlier one has done.
void Reports::keep_items(const Entry& entry) {
  if (entry.items != 0) record_->keep_items(name_of(entry), entry.items);
}

void Reports::itemize(const Entry& entry, session::Items items) {
  if (!session::is_told(items)) return;
  const std::string path =
      entry.path.empty() && entry.type != EntryType::directory ? Walk::own_name(sources_[entry.source]) : entry.path;
  const std::string name = session::item_name(path, entry.type);
  // Each once, whatever a later session still finds to be done. The NUL tells it from the names of files.
  if (!record_->say(TransferRecord::name(name + '\0', entry.listed.version), TransferRecord::Said::ok)) return;
  const std::string& target = (items & session::item_named) != 0 ? entry.linked_to : entry.target;
  observer_.on_item({session::letters_of(items, {entry.type, true, keeps_times_}), name, target});
}

void Reports::would_send(const Entry& entry) { would(entry, entry.listed.size_bytes, "would-send"); }
void Reports::would_make(const Entry& entry) {
  if (entry.type == EntryType::file) {
    tally_.bytes_total -= entry.counted_bytes;
    ++tally_.files_unchanged;
  }
  would(entry, 0, "would-make");
}

void Reports::would_change(const Entry& entry) {
  const bool file = entry.type == EntryType::file;
  if (file) tally_.bytes_total -= entry.counted_bytes;
  if (file) ++tally_.files_unchanged;
  would(entry, file ? entry.listed.size_bytes : 0, "would-change");
}

void Reports::would(const Entry& entry, uint64_t bytes, std::string_view status) {
  if (record_->say(name_of(entry), TransferRecord::Said::ok)) observer_.on_file(shown_path(entry), bytes, status, {});
  itemize(entry, entry.items);
}

void Reports::grown(Entry& entry, uint64_t bytes) {
  tally_.bytes_total += bytes;
  entry.counted_bytes += bytes;
}

void Reports::delivered(const Entry& entry) {
  ++tally_.files;
  tell(entry, TransferRecord::Said::ok, {});
  if (entry.items == 0) return;
  static_cast<void>(record_->take_items(name_of(entry)));
  itemize(entry, entry.items);
}

void Reports::failed(const Entry& entry, const session::FileResult& result) {
  tally_.bytes_total -= entry.counted_bytes;
  before_bytes_ -= entry.before_bytes;
  count_bytes();
  const SourceOutcome ours = entry.phase == EntryPhase::refused ? entry.outcome.outcome : SourceOutcome::ok;
  // The destination finds changes too: a piece that was asked for again and is another now.
  const bool theirs = ours == SourceOutcome::ok && result.kind == ErrorKind::vanished;
  if (ours == SourceOutcome::changed || ours == SourceOutcome::vanished || theirs) {
    ++tally_.files_vanished;
  } else {
    ++tally_.files_failed;
  }
  const std::string reason = ours == SourceOutcome::ok ? words_of(result) : words_of(entry.outcome);
  tell(entry, TransferRecord::Said::failed, reason);
}

void Reports::not_ours(const Entry& entry) { tally_.bytes_total -= entry.counted_bytes; }

void Reports::durable(uint64_t bytes) {
  durable_bytes_ = bytes;  // less than before when a file failed that was here in part
  count_bytes();
}

void Reports::deleted(const session::Deletions& deletions) {
  tally_.deleted = deletions.deleted;
  tally_.delete_failed = deletions.failed;
  tally_.delete_skipped = deletions.skipped;
  for (const session::Deletions::Name& name : deletions.names) {
    if (deleted_path_.size() < session::path_bytes_max) deleted_path_ += name.part;
    if (name.goes_on) continue;
    const std::string deleted = std::exchange(deleted_path_, {});
    if (is_dry_ && !record_->say_of_deletion(deleted)) continue;
    const std::string path = session::item_name(deleted, name.is_directory ? EntryType::directory : EntryType::file);
    observer_.on_file(path, 0, is_dry_ ? "would-delete" : "deleted", {});
    if (itemizes_) observer_.on_item({std::string(session::letters_of_deletion), path, {}});
  }
}

bool Reports::summed_up(const session::Summary& summary, uint64_t entries) {
  // That the receiver could not give modes or times to directories, or to files that it has, shows
  // in its count only.
  const uint64_t told = tally_.files_failed + tally_.files_vanished - unlisted_failed_ - unlisted_vanished_;
  if (summary.files_failed > told) {
    const uint64_t more = summary.files_failed - told;
    const uint64_t setid = std::min(summary.setid_refused, more);
    // One that lost its set-ID bits may have lost others as well.
    if (more - setid > entries || setid > entries) return false;
    tally_.files_failed += more;
    if (setid > 0) observer_.on_failure(session::words_of_no_setid(setid));
    if (more > setid)
      observer_.on_failure(fmt::format("the receiver could not give modes or times to {} files and directories", more - setid));
  }
  if (tally_.delete_failed > 0)
    observer_.on_failure(fmt::format("the receiver could not delete {} files and directories", tally_.delete_failed));
  tally_.over = true;
  return true;
}

void Reports::tell(const Entry& entry, TransferRecord::Said said, std::string_view reason) {
  if (!record_->say(name_of(entry), said)) return;
  const char* status = said == TransferRecord::Said::ok ? "ok" : said == TransferRecord::Said::unchanged ? "unchanged" : "failed";
  observer_.on_file(shown_path(entry), entry.listed.size_bytes, status, reason);
}

const std::string& Reports::shown_path(const Entry& entry) const {
  return entry.path.empty() ? sources_[entry.source] : entry.path;
}

uint64_t Reports::name_of(const Entry& entry) const { return TransferRecord::name(shown_path(entry), entry.listed.version); }

}  // namespace ccixfer::send
