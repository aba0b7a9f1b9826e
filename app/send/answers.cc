#include "app/send/answers.h"

#include <algorithm>
#include <vector>

#include "app/session/limits.h"

namespace ccixfer::send {

using session::EntryType;
using session::Verdict;

tl::unexpected<Error> nonsense(std::string_view what) {
  return fail(ErrorKind::protocol, "the receiver sent " + std::string(what));
}

namespace {

// Whoever counts pieces of a range counts no more of them than the file has.
bool has_pieces(const Entry& entry, uint64_t first, uint64_t count) {
  const uint64_t pieces = pieces_of(entry.listed.size_bytes);
  return first <= pieces && count <= pieces - first;
}

}  // namespace

Answers::Answers(EntryTable& entries, FileWants& wants, Reports& reports, bool dry_run, ReceiptDigests* receipts)
    : entries_(entries), wants_(wants), reports_(reports), dry_run_(dry_run), receipts_(receipts) {}

Result<void> Answers::on_answer(const session::Answer& answer, uint64_t sent) {
  if (answer.first_index > answered_) return nonsense("an answer out of order");
  uint64_t index = answer.first_index;
  for (const session::Answer::Run& run : answer.runs) {
    if (run.count > sent - index) return nonsense("an answer for entries that were not sent");
    const uint64_t end = index + run.count;
    for (index = std::max(index, std::min(answered_, end)); index < end; ++index) {
      answered_ = index + 1;
      reports_.answered(answered_);
      Entry* entry = entries_.find(index);
      if (entry == nullptr) continue;
      if (Result<void> judged = on_verdict(*entry, run.verdict); !judged) return judged;
    }
  }
  return {};
}

Result<void> Answers::on_itemized(const session::Itemized& itemized, uint64_t sent) {
  uint64_t index = itemized.first_index;
  for (const session::Itemized::Run& run : itemized.runs) {
    if (index > sent || run.count > sent - index) return nonsense("what is done to entries that were not sent");
    for (const uint64_t end = index + run.count; index < end; ++index) {
      Entry* entry = run.items != 0 ? entries_.find(index) : nullptr;
      if (entry != nullptr && entry->phase == EntryPhase::announced) entry->items = run.items;
    }
  }
  return {};
}

Result<void> Answers::on_verdict(Entry& entry, Verdict verdict) {
  if (entry.phase != EntryPhase::announced) return nonsense("a second verdict");
  switch (verdict) {
    case Verdict::done:
    case Verdict::unchanged:
      if (entry.type == EntryType::file) {
        reports_.unchanged(entry);
      } else {
        reports_.done(entry);
      }
      end_well(entry);
      return {};
    case Verdict::kept:  // what stands there is not the source's, so no receipt of ours has it
      entry.type == EntryType::file ? reports_.unchanged(entry) : reports_.done(entry);
      end(entry);
      return {};
    case Verdict::delivered:
      reports_.delivered_before(entry);
      end_well(entry);
      return {};
    case Verdict::left_out:
      if (entry.type != EntryType::device) return nonsense("something left out that is no device");
      reports_.left_out(entry);
      end(entry);
      return {};
    case Verdict::failed:  // its result came before, as a rule, and has ended it
      reports_.failed(entry, {entry.index, ErrorKind::partial, 0});
      end(entry);
      return {};
    case Verdict::make:
    case Verdict::change:
      return on_would(entry, verdict);
    case Verdict::link:
      return on_link(entry);
    case Verdict::elsewhere:
      return on_sent_elsewhere(entry);
    case Verdict::send:
    case Verdict::pieces:
    case Verdict::compare:
    case Verdict::shared:
      break;
  }
  return on_wanted(entry, verdict);
}

Result<void> Answers::on_would(Entry& entry, Verdict verdict) {
  if (!dry_run_) return nonsense("what would be done, though no dry run was asked for");
  if (verdict == Verdict::change) {
    reports_.would_change(entry);
  } else {
    if (entry.type == EntryType::file && !entry.is_further_name) return nonsense("a file that would be made without content");
    reports_.would_make(entry);
  }
  end(entry);
  return {};
}

// It is there with the file's first name. If that one fails this name is asked for.
Result<void> Answers::on_link(Entry& entry) {
  if (entry.type != EntryType::file || !entry.is_further_name || dry_run_) return nonsense("a link to no other name");
  reports_.linked(entry);
  entry.is_link = true;
  entries_.move(entry, EntryPhase::sent);
  return {};
}

// Whoever of the team sends it, its result comes here.
Result<void> Answers::on_sent_elsewhere(Entry& entry) {
  if (!leads_ || dry_run_ || entry.type != EntryType::file || entry.stream) return nonsense("a file that nobody else can send");
  reports_.wanted(entry);
  bytes_shared_ += entry.listed.size_bytes;
  entry.is_elsewhere = true;
  entries_.move(entry, EntryPhase::sent);
  return {};
}

Result<void> Answers::on_give(const session::Give& given, uint64_t sent) {
  for (const session::Give::Run& run : given.runs) {
    if (run.first >= sent || run.count > sent - run.first) return nonsense("files to send that were not listed");
    for (uint64_t index = run.first; index < run.first + run.count; ++index) {
      Entry* entry = entries_.find(index);
      if (entry == nullptr) continue;  // somebody else has sent it meanwhile
      if (!entry->is_elsewhere || entry->phase != EntryPhase::sent) return nonsense("a file to send that is ours already");
      entry->is_elsewhere = false;  // was_sent stays: what the one had sent who had it before may come yet
      if (Result<void> wanted = wants_.want_whole(*entry); !wanted) return wanted;
    }
  }
  return {};
}

Result<void> Answers::on_elsewhere(const session::Elsewhere& pieces, uint64_t sent) {
  if (pieces.index >= sent) return nonsense("pieces of an entry that was not sent");
  Entry* entry = entries_.find(pieces.index);
  if (entry == nullptr || entry->phase == EntryPhase::refused) return {};
  if (!entry->large || entry->phase == EntryPhase::announced) return nonsense("pieces from elsewhere that are not wanted");
  for (const session::Want::Range& range : pieces.ranges) {
    if (!has_pieces(*entry, range.first, range.count)) return nonsense("pieces from elsewhere behind the end");
    if (!wants_.is_elsewhere(*entry, range.first, range.count)) return nonsense("pieces from elsewhere that are not wanted");
  }
  return {};
}

Result<void> Answers::on_first_name_failed(Entry& entry) {
  entry.is_link = entry.was_sent = false;
  reports_.wanted_after_all(entry);
  return wants_.want_whole(entry);
}

Result<void> Answers::on_wanted(Entry& entry, Verdict verdict) {
  if (entry.type != EntryType::file) return nonsense("data of an entry that has none wanted");
  if (dry_run_) {
    reports_.would_send(entry);
    end(entry);
    return {};
  }
  if (entry.stream) return wants_.want_whole(entry);
  if (verdict == Verdict::send) {
    reports_.wanted(entry);
    return wants_.want_whole(entry);
  }
  const bool is_shared = verdict == Verdict::shared;
  if (is_shared && !leads_) return nonsense("a file that nobody else can send");
  if (is_shared) bytes_shared_ += entry.listed.size_bytes;
  const bool is_compared = is_shared || verdict == Verdict::compare;
  if (is_compared && is_small(entry.listed.size_bytes)) return nonsense("a file to compare that has no pieces");
  const bool is_whole = is_compared && !entry.large;
  if (is_whole) {
    reports_.wanted(entry);
    wants_.want_compared(entry, is_shared);
    return {};
  }
  const uint64_t pieces = pieces_of(entry.listed.size_bytes);
  uint64_t missing_bytes = 0;
  if (entry.large) {
    missing_bytes = entry.large->wanted.count() * session::piece_bytes;
    const bool last_too = pieces > 0 && entry.large->wanted.contains(pieces - 1);
    if (last_too) missing_bytes -= pieces * session::piece_bytes - entry.listed.size_bytes;
  }
  reports_.wanted_in_part(entry, missing_bytes);
  is_compared ? wants_.want_compared(entry, is_shared) : wants_.want_pieces(entry);
  return {};
}

Result<void> Answers::on_compare(const session::Compare& compare, uint64_t sent) {
  if (compare.index >= sent) return nonsense("pieces to compare of an entry that was not sent");
  Entry* entry = entries_.find(compare.index);
  if (entry == nullptr || entry->phase == EntryPhase::refused) return {};
  if (!entry->large || entry->phase == EntryPhase::announced) return nonsense("pieces to compare that are not wanted");
  if (!has_pieces(*entry, compare.first, compare.count)) return nonsense("pieces to compare behind the end");
  if (const Result<void> done = wants_.compare(*entry, compare); !done) return nonsense(done.error().message);
  return {};
}

Result<void> Answers::on_want(const session::Want& want, uint64_t sent) {
  if (want.index >= sent) return nonsense("pieces of an entry that was not sent wanted");
  Entry* entry = entries_.find(want.index);
  if (entry == nullptr) return {};
  if (entry->type != EntryType::file) return nonsense("pieces of something that is no file wanted");
  if (entry->is_elsewhere || entry->is_link) return nonsense("pieces of a file wanted that is not sent from here");
  for (const session::Want::Range& range : want.ranges) {
    if (!has_pieces(*entry, range.first, range.count)) return nonsense("pieces behind the end wanted");
    const bool fits = entry->phase == EntryPhase::announced ? large_file_of(*entry).wanted.add(range.first, range.count)
                                                            : wants_.want_again(*entry, range.first, range.count);
    if (!fits) return nonsense("too many pieces");
  }
  return {};
}

Result<void> Answers::on_resend(const session::Resend& resend, uint64_t sent) {
  if (resend.index >= sent) return nonsense("an entry that was not sent wanted again");
  Entry* entry = entries_.find(resend.index);
  if (entry == nullptr) return {};
  if (entry->type != EntryType::file) return nonsense("something that is no file wanted again");
  if (entry->is_elsewhere) return nonsense("a file wanted again that was not sent from here");
  if (entry->is_link) return on_first_name_failed(*entry);
  if (entry->stream || resend.piece == session::Resend::whole) return want_whole_again(resend.index);
  if (resend.piece >= pieces_of(entry->listed.size_bytes)) return nonsense("a piece behind the end wanted again");
  return want_again(resend.index, resend.piece, 1);
}

Result<void> Answers::want_again(uint64_t index, uint64_t first_piece, uint64_t count) {
  Entry* entry = entries_.find(index);
  if (entry != nullptr && !wants_.want_again(*entry, first_piece, count)) return nonsense("too many pieces");
  return {};
}

Result<void> Answers::want_whole_again(uint64_t index) {
  const Entry* entry = entries_.find(index);
  return entry == nullptr ? Result<void>() : want_again(index, 0, pieces_of(entry->listed.size_bytes));
}

Result<void> Answers::on_results(const session::FileResults& results, uint64_t sent) {
  for (const session::FileResult& result : results.results) {
    if (Result<void> judged = on_result(result, sent); !judged) return judged;
  }
  return {};
}

Result<void> Answers::on_result(const session::FileResult& result, uint64_t sent) {
  if (result.index >= sent) return nonsense("the result of an entry that was not sent");
  Entry* entry = entries_.find(result.index);
  if (entry == nullptr) return {};
  const bool file = entry->type == EntryType::file;
  if (helps_) {
    result.kind == ErrorKind::ok && entry->was_sent ? reports_.delivered(*entry) : reports_.not_ours(*entry);
    end(*entry);
    return {};
  }
  if (result.kind != ErrorKind::ok) {
    reports_.failed(*entry, result);
  } else if (file) {
    if (!entry->was_sent) return nonsense("a file that was not sent is said to be there");
    reports_.delivered(*entry);
  }
  result.kind == ErrorKind::ok ? end_well(*entry) : end(*entry);
  return {};
}

// Only what was put can be durable.
Result<void> Answers::on_durable(uint64_t bytes, uint64_t bytes_sent) {
  if (bytes > bytes_sent) return nonsense("more durable bytes than were sent");
  reports_.durable(bytes);
  return {};
}

Result<void> Answers::on_summary(const session::Summary& summary, uint64_t sent, uint64_t bytes_sent) {
  if (Result<void> ended = end_what_is_left(); !ended) return ended;
  if (Result<void> counted = on_durable(summary.bytes, bytes_sent); !counted) return counted;
  if (!reports_.summed_up(summary, sent)) return nonsense("more failures than entries");
  return {};
}

// Results of refused files and of what has no data may be left to the summary.
Result<void> Answers::end_what_is_left() {
  std::vector<uint64_t> left;
  entries_.for_each([&left](const Entry& entry) {
    if (entry.phase != EntryPhase::ended) left.push_back(entry.index);
  });
  for (const uint64_t index : left) {
    Entry& entry = *entries_.find(index);
    if (entry.phase == EntryPhase::refused) {
      reports_.failed(entry, {index, ErrorKind::vanished, 0});
    } else if (entry.type == EntryType::file || entry.phase == EntryPhase::announced) {
      return nonsense("a summary without every result");
    }
    end(entry);
  }
  return {};
}

void Answers::end_well(Entry& entry) {
  if (receipts_ != nullptr && !dry_run_) receipts_->take(entry);
  end(entry);
}

void Answers::end(Entry& entry) {
  wants_.entry_ends(entry);
  entries_.end(entry);
}

}  // namespace ccixfer::send
