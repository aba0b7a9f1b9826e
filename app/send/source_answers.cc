// What the destination says: verdicts, wishes, results. Everything a peer may send is judged here; what makes no sense ends the
// session.
#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "app/send/source_machine.h"
#include "app/session/limits.h"
#include "app/session/receiver_words.h"
#include "core/base/check.h"
#include "core/base/units.h"

namespace ccixfer::send {

using session::EntryType;
using session::SourceOutcome;
using session::TransferRecord;
using session::Verdict;

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

void Source::Impl::on_answer(const session::Answer& answer) {
  if (answer.first_index > answered_) return reject("an answer out of order");
  uint64_t index = answer.first_index;
  for (const session::Answer::Run& run : answer.runs) {
    if (run.count > announcer_.entries() - index) return reject("an answer for entries that were not sent");
    const uint64_t end = index + run.count;
    for (index = std::max(index, std::min(answered_, end)); index < end && !error_; ++index) {
      totals_.entries_answered = answered_ = index + 1;
      if (Entry* entry = entries_.find(index); entry != nullptr) on_verdict(*entry, run.verdict);
    }
    index = end;
  }
  announcer_.answered_before(answered_);
}

void Source::Impl::on_verdict(Entry& entry, Verdict verdict) {
  if (entry.phase != EntryPhase::announced) return reject("a second verdict");
  const bool file = entry.type == EntryType::file;
  switch (verdict) {
    case Verdict::done:
    case Verdict::unchanged:
      if (file) on_unchanged(entry);
      return end_entry(entry);
    case Verdict::failed:  // its result came before, as a rule, and has ended it
      return on_result({entry.index, ErrorKind::partial, 0});
    case Verdict::make:
    case Verdict::change:
      if (!option(session::option_dry_run)) return reject("what would be done, though no dry run was asked for");
      if (file && verdict == Verdict::make) return reject("a file that would be made without content");
      if (file) totals_.bytes_total -= entry.counted_bytes;
      if (file) ++totals_.files_unchanged;
      if (record_->say(name_of(entry), TransferRecord::Said::ok))
        observer_.on_file(shown_path(entry), file ? entry.listed.size_bytes : 0,
                          verdict == Verdict::make ? "would-make" : "would-change", {});
      return end_entry(entry);
    case Verdict::send:
    case Verdict::pieces:
      break;
  }
  if (!file) return reject("data of an entry that has none wanted");
  if (option(session::option_dry_run)) {
    if (record_->say(name_of(entry), TransferRecord::Said::ok))
      observer_.on_file(shown_path(entry), entry.listed.size_bytes, "would-send", {});
    return end_entry(entry);
  }
  if (entry.stream) return judge(reads_.want_whole(entry));
  if (verdict == Verdict::send) {
    entry.counted_bytes = record_->want(name_of(entry), entry.listed.size_bytes, entry.listed.size_bytes);
    return judge(reads_.want_whole(entry));
  }
  on_pieces(entry);
  reads_.want_pieces(entry);
}

// The destination has it. What this transfer brought in an earlier session it has delivered, whether or not we heard of it then.
void Source::Impl::on_unchanged(Entry& entry) {
  const uint64_t size_bytes = entry.listed.size_bytes;
  totals_.bytes_total -= entry.counted_bytes;
  const std::optional<uint64_t> moved_bytes = record_->delivered(name_of(entry), size_bytes);
  if (!moved_bytes) {
    ++totals_.files_unchanged;
    return tell(entry, TransferRecord::Said::unchanged, {});
  }
  ++totals_.files;
  totals_.bytes_total += *moved_bytes;
  before_bytes_ += *moved_bytes;
  count_bytes();
  tell(entry, TransferRecord::Said::ok, {});
}

// Some of its pieces are there: from an earlier session of this transfer, or from before it.
void Source::Impl::on_pieces(Entry& entry) {
  const uint64_t size_bytes = entry.listed.size_bytes;
  const PieceSet& wanted = large_file_of(entry).wanted;
  const uint64_t pieces = pieces_of(size_bytes);
  uint64_t missing_bytes = wanted.count() * session::piece_bytes;
  if (pieces > 0 && wanted.contains(pieces - 1)) missing_bytes -= pieces * session::piece_bytes - size_bytes;
  const uint64_t moved_bytes = record_->want(name_of(entry), size_bytes, missing_bytes);
  totals_.bytes_total -= size_bytes - moved_bytes;
  entry.counted_bytes = moved_bytes;
  entry.before_bytes = moved_bytes - missing_bytes;
  before_bytes_ += entry.before_bytes;
  count_bytes();
}

uint64_t Source::Impl::name_of(const Entry& entry) const {
  const std::string_view path = entry.path.empty() ? std::string_view((*walk_)->given(entry.source)) : entry.path;
  return TransferRecord::name(path, entry.listed.version);
}

void Source::Impl::tell(const Entry& entry, TransferRecord::Said said, std::string_view reason) {
  if (!record_->say(name_of(entry), said)) return;
  const char* status = said == TransferRecord::Said::ok ? "ok" : said == TransferRecord::Said::unchanged ? "unchanged" : "failed";
  observer_.on_file(shown_path(entry), entry.listed.size_bytes, status, reason);
}

void Source::Impl::on_want(const session::Want& want) {
  if (want.index >= announcer_.entries()) return reject("pieces of an entry that was not sent wanted");
  Entry* entry = entries_.find(want.index);
  if (entry == nullptr) return;
  if (entry->type != EntryType::file) return reject("pieces of something that is no file wanted");
  const uint64_t pieces = pieces_of(entry->listed.size_bytes);
  for (const session::Want::Range& range : want.ranges) {
    if (range.first > pieces || range.count > pieces - range.first) return reject("pieces behind the end wanted");
    if (entry->phase != EntryPhase::announced) {
      send_again(*entry, range.first, range.count);
    } else if (!large_file_of(*entry).wanted.add(range.first, range.count)) {
      return reject("too many pieces");
    }
  }
}

void Source::Impl::on_resend(const session::Resend& resend) {
  if (resend.index == session::Resend::by_segment) return on_resend_segment(resend);
  if (resend.index >= announcer_.entries()) return reject("an entry that was not sent wanted again");
  Entry* entry = entries_.find(resend.index);
  if (entry == nullptr) return;
  if (entry->type != EntryType::file) return reject("something that is no file wanted again");
  if (entry->stream) return send_again(*entry, 0, 0);
  const uint64_t pieces = pieces_of(entry->listed.size_bytes);
  const bool whole = resend.piece == session::Resend::whole;
  if (!whole && resend.piece >= pieces) return reject("a piece behind the end wanted again");
  send_again(*entry, whole ? 0 : resend.piece, whole ? pieces : 1);
}

void Source::Impl::on_resend_segment(const session::Resend& resend) {
  const SentPut* sent = sender_.find_sent(resend.lane_session, resend.n);
  if (sent == nullptr) return;
  const session::SegmentHeader& header = sent->header;
  if (header.kind == session::SegmentKind::entries) {
    announcer_.want_again(header.sequence);
  } else if (header.kind == session::SegmentKind::piece) {
    if (Entry* entry = entries_.find(header.index); entry != nullptr) send_again(*entry, header.sequence, 1);
  } else {
    for (const uint64_t index : sent->files) {
      if (Entry* entry = entries_.find(index); entry != nullptr) send_again(*entry, 0, pieces_of(entry->listed.size_bytes));
    }
  }
}

void Source::Impl::send_again(Entry& entry, uint64_t first_piece, uint64_t count) {
  if (!reads_.want_again(entry, first_piece, count)) reject("too many pieces");
}

void Source::Impl::on_result(const session::FileResult& result) {
  if (result.index >= announcer_.entries()) return reject("the result of an entry that was not sent");
  Entry* entry = entries_.find(result.index);
  if (entry == nullptr) return;
  const bool file = entry->type == EntryType::file;
  if (result.kind == ErrorKind::ok) {
    if (file && !entry->was_sent) return reject("a file that was not sent is said to be there");
    if (file) {
      ++totals_.files;
      tell(*entry, TransferRecord::Said::ok, {});
    }
    return end_entry(*entry);
  }
  totals_.bytes_total -= entry->counted_bytes;
  before_bytes_ -= entry->before_bytes;
  count_bytes();
  const SourceOutcome ours = entry->phase == EntryPhase::refused ? entry->outcome.outcome : SourceOutcome::ok;
  // The destination finds changes too: a piece that was asked for again and is another now.
  const bool theirs = ours == SourceOutcome::ok && result.kind == ErrorKind::vanished;
  if (ours == SourceOutcome::changed || ours == SourceOutcome::vanished || theirs) {
    ++totals_.files_vanished;
  } else {
    ++totals_.files_failed;
  }
  const std::string reason = ours == SourceOutcome::ok ? words_of(result) : words_of(entry->outcome);
  if (ours == SourceOutcome::ok) observer_.on_warning(printable(shown_path(*entry)) + ": " + reason);
  tell(*entry, TransferRecord::Said::failed, reason);
  end_entry(*entry);
}

// Only what was put can be durable.
void Source::Impl::on_durable(uint64_t bytes) {
  if (bytes > sender_.bytes_sent()) return reject("more durable bytes than were sent");
  durable_bytes_ = bytes;  // less than before when a file failed that was here in part
  count_bytes();
}

void Source::Impl::on_summary(const session::Summary& summary) {
  if (!end_posted_ || summary_) return reject("a summary before the end");
  std::vector<uint64_t> left;
  entries_.for_each([&left](const Entry& entry) {
    if (entry.phase != EntryPhase::ended) left.push_back(entry.index);
  });
  for (const uint64_t index : left) {
    Entry& entry = *entries_.find(index);
    if (entry.phase == EntryPhase::refused) {
      on_result({index, ErrorKind::vanished, 0});
    } else if (entry.type == EntryType::file || entry.phase == EntryPhase::announced) {
      return reject("a summary without every result");
    } else {
      end_entry(entry);
    }
  }
  if (on_durable(summary.bytes); error_) return;
  // That the receiver could not give modes or times to directories, or to files that it has, shows in its count only.
  const uint64_t told = totals_.files_failed + totals_.files_vanished - unlisted_failed_ - unlisted_vanished_;
  if (summary.files_failed > told) {
    const uint64_t more = summary.files_failed - told;
    if (more > announcer_.entries()) return reject("more failures than entries");
    totals_.files_failed += more;
    observer_.on_warning(fmt::format("the receiver could not give modes or times to {} files and directories", more));
  }
  summary_ = totals_.over = true;
  link_.post(session::Bye{});
}

void Source::Impl::on_refused(const Entry& entry) {
  observer_.on_warning(printable(shown_path(entry)) + ": " + words_of(entry.outcome));
  session::FileEnd end;
  end.index = entry.index;
  end.outcome = entry.outcome.outcome;
  file_ends_.push_back(end);
}

void Source::Impl::on_grown(Entry& entry, uint64_t bytes) {
  totals_.bytes_total += bytes;
  entry.counted_bytes += bytes;
}

void Source::Impl::judge(const Result<void>& judgement) {
  if (!judgement) fail_session(judgement.error().kind, judgement.error().message);
}

// The entry is over at both ends.
void Source::Impl::end_entry(Entry& entry) {
  reads_.entry_ends(entry);
  entries_.end(entry);
}

std::string Source::Impl::shown_path(const Entry& entry) const {
  return entry.path.empty() ? (*walk_)->given(entry.source) : entry.path;
}

}  // namespace ccixfer::send
