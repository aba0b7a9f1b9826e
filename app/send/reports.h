// Counts what the session moves, and tells the user of each file. A transfer may take several
// sessions, so each file and each byte is counted once and told once over all of them
// (session::TransferRecord).
// In: what becomes of each entry. Out: a Tally for progress and the last line; lines to the
// observer.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/send/entry_table.h"
#include "app/send/observer.h"
#include "app/session/messages.h"
#include "app/session/tally.h"
#include "app/session/transfer_record.h"

namespace ccixfer::send {

class Reports {
 public:
  // `sources`: as the user named them; an entry without a path is shown as its source. `record`:
  // none, if there was no earlier session.
  // `options`: session::Option bits.
  Reports(SourceObserver& observer, std::shared_ptr<session::TransferRecord> record, std::vector<std::string> sources,
          uint32_t options = 0);

  void listed(uint64_t bytes) { tally_.bytes_total += bytes; }
  void listing_over() { tally_.total_known = true; }
  // Something that the walk leaves out or cannot list. True: the destination is to be told of it by
  // name.
  [[nodiscard]] bool not_listed(WalkRecord::Kind kind, std::string_view path, std::string_view reason);
  [[nodiscard]] uint64_t unlisted_failed() const { return unlisted_failed_; }
  [[nodiscard]] uint64_t unlisted_vanished() const { return unlisted_vanished_; }

  void answered(uint64_t entries) { tally_.entries_answered = entries; }
  void wanted(Entry& entry);                                  // all of the file
  void wanted_in_part(Entry& entry, uint64_t missing_bytes);  // the destination has the rest
  void unchanged(const Entry& entry);                         // the destination has the file
  void delivered_before(const Entry& entry);                  // and it came in this transfer, maybe from another process
  void linked(Entry& entry);                                  // it becomes a further name of a file, without bytes of its own
  void wanted_after_all(Entry& entry);                        // all of it, since the file's first name has failed
  void done(const Entry& entry);                              // a directory or link is there
  void left_out(const Entry& entry);                          // the destination makes no devices
  void would_send(const Entry& entry);                        // a dry run
  void would_make(const Entry& entry);
  void would_change(const Entry& entry);
  void grown(Entry& entry, uint64_t bytes);  // more of a file of unknown length was read
  void delivered(const Entry& entry);        // the file is durable at the destination
  void failed(const Entry& entry, const session::FileResult& result);
  void not_ours(const Entry& entry);  // of a helper: others send it, or tell that it has failed
  void durable(uint64_t bytes);       // of this session
  void deleted(const session::Deletions& deletions);
  // Every entry has ended. False: the destination counts more failures than there were entries.
  [[nodiscard]] bool summed_up(const session::Summary& summary, uint64_t entries);

  [[nodiscard]] const session::Tally& tally() const { return tally_; }  // without what was sent

 private:
  void count_bytes() { tally_.bytes = before_bytes_ + durable_bytes_; }
  void would(const Entry& entry, uint64_t bytes, std::string_view status);
  void tell(const Entry& entry, session::TransferRecord::Said said, std::string_view reason);
  void skipped(std::string_view path, std::string_view reason);
  void itemize(const Entry& entry, session::Items items);
  void keep_items(const Entry& entry);
  [[nodiscard]] const std::string& shown_path(const Entry& entry) const;
  [[nodiscard]] uint64_t name_of(const Entry& entry) const;  // in the record

  SourceObserver& observer_;
  const std::shared_ptr<session::TransferRecord> record_;
  const std::vector<std::string> sources_;
  const bool keeps_times_;
  const bool itemizes_, is_dry_;
  session::Tally tally_;
  std::string deleted_path_;    // of a name that goes on
  uint64_t before_bytes_ = 0;   // of files that this session has come to: moved by earlier sessions of the transfer
  uint64_t durable_bytes_ = 0;  // of this session, as the destination says
  uint64_t unlisted_failed_ = 0, unlisted_vanished_ = 0;  // no entry tells of these: End does
};

}  // namespace ccixfer::send
