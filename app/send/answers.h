// Judges what the destination says of entries: verdicts, wishes, results, durable bytes, the
// summary. Everything that a peer may send comes here, so what makes no sense is an error
// (ErrorKind::protocol, in words that begin with "the receiver sent") and ends the session.
// In: session messages of the destination. Out: what is wanted of files, ended entries, counts and
// lines in the Reports.
#pragma once
#include <cstdint>

#include "app/send/entry_table.h"
#include "app/send/file_wants.h"
#include "app/send/receipt_digests.h"
#include "app/send/reports.h"
#include "app/session/messages.h"
#include "core/base/result.h"

namespace ccixfer::send {

[[nodiscard]] tl::unexpected<Error> nonsense(std::string_view what);  // of the destination

class Answers {
 public:
  Answers(EntryTable& entries, FileWants& wants, Reports& reports, bool dry_run, ReceiptDigests* receipts = nullptr);

  // The session is a team's, and this is its leader: files may be sent by others.
  void set_leads() { leads_ = true; }
  // The session is a team's, and this is a helper of it: the leader tells how files end.
  void set_helps() { helps_ = true; }
  [[nodiscard]] Result<void> on_give(const session::Give& given, uint64_t sent);
  // Other members of the team have sent these pieces of a file that this one sends too.
  [[nodiscard]] Result<void> on_elsewhere(const session::Elsewhere& pieces, uint64_t sent);
  [[nodiscard]] uint64_t bytes_shared() const { return bytes_shared_; }  // of files that others may have sent

  // `sent`: entries in segments so far; `bytes_sent`: payload in puts so far.
  [[nodiscard]] Result<void> on_answer(const session::Answer& answer, uint64_t sent);
  [[nodiscard]] Result<void> on_itemized(const session::Itemized& itemized, uint64_t sent);
  [[nodiscard]] Result<void> on_want(const session::Want& want, uint64_t sent);
  [[nodiscard]] Result<void> on_compare(const session::Compare& compare, uint64_t sent);
  [[nodiscard]] Result<void> on_resend(const session::Resend& resend, uint64_t sent);  // of a file or a piece
  // Pieces of the file with that index, which may have ended.
  [[nodiscard]] Result<void> want_again(uint64_t index, uint64_t first_piece, uint64_t count);
  [[nodiscard]] Result<void> want_whole_again(uint64_t index);
  [[nodiscard]] Result<void> on_results(const session::FileResults& results, uint64_t sent);
  [[nodiscard]] Result<void> on_durable(uint64_t bytes, uint64_t bytes_sent);
  [[nodiscard]] Result<void> on_summary(const session::Summary& summary, uint64_t sent, uint64_t bytes_sent);
  [[nodiscard]] uint64_t answered() const { return answered_; }  // entries before it have their verdicts

 private:
  [[nodiscard]] Result<void> on_verdict(Entry& entry, session::Verdict verdict);
  [[nodiscard]] Result<void> on_would(Entry& entry, session::Verdict verdict);
  [[nodiscard]] Result<void> on_link(Entry& entry);
  [[nodiscard]] Result<void> on_first_name_failed(Entry& entry);
  [[nodiscard]] Result<void> on_sent_elsewhere(Entry& entry);
  [[nodiscard]] Result<void> on_wanted(Entry& entry, session::Verdict verdict);
  [[nodiscard]] Result<void> on_result(const session::FileResult& result, uint64_t sent);
  [[nodiscard]] Result<void> end_what_is_left();
  void end_well(Entry& entry);
  void end(Entry& entry);

  EntryTable& entries_;
  FileWants& wants_;
  Reports& reports_;
  const bool dry_run_;
  ReceiptDigests* const receipts_;  // none: nobody writes one
  uint64_t answered_ = 0;
  bool leads_ = false, helps_ = false;
  uint64_t bytes_shared_ = 0;
};

}  // namespace ccixfer::send
