// The inside of Source, in one place; its functions stand in two files by what they are about: source_answers.cc (what the other
// end says) and source.cc (the turn and the rest). Everything here is on the protocol thread.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/send/announcer.h"
#include "app/send/buffer_share.h"
#include "app/send/entry_table.h"
#include "app/send/jobs.h"
#include "app/send/lister.h"
#include "app/send/read_stage.h"
#include "app/send/segment_sender.h"
#include "app/send/source.h"
#include "app/session/disk_watch.h"
#include "app/session/segment.h"
#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"

namespace ccixfer::send {

inline constexpr size_t control_room_min = 64;                               // of the control queue, left for others
inline constexpr Duration pool_retry_pause = std::chrono::milliseconds(10);  // a shared pool tells nobody that a buffer came back

struct Source::Impl final : ListerHandler, AnnouncerHandler, ReadHandler {
  Impl(const SourceOptions& options, session::Link& link, ports::WorkPool& work, memory::Pool& pool, ports::Handle pool_region,
       SourceObserver& observer, Counters& counters);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // --- source.cc
  void start(Instant now);
  void turn(Instant now);
  void look_at_disk();
  [[nodiscard]] Instant next_deadline() const;
  void fail_session(ErrorKind kind, std::string message);  // tells the peer
  void judge(const Result<void>& judgement);
  void reject(const char* what);  // a message that makes no sense: counted, the session ends
  void confirmed() { progressed_ = true; }
  [[nodiscard]] bool option(session::Option bit) const { return (options_.options & bit) != 0; }

  void on_selection_failed(const Error& error) override { fail_session(error.kind, error.message); }
  void on_listed(uint64_t bytes) override { totals_.bytes_total += bytes; }
  void on_not_listed(WalkRecord::Kind kind, std::string_view path, std::string_view reason) override;
  void end_of_listing();

  // --- source_answers.cc
  void on_answer(const session::Answer& answer);
  void on_verdict(Entry& entry, session::Verdict verdict);
  void on_want(const session::Want& want);
  void on_resend(const session::Resend& resend);
  void on_resend_segment(const session::Resend& resend);
  void send_again(Entry& entry, uint64_t first_piece, uint64_t count);
  void on_result(const session::FileResult& result);
  void on_durable(uint64_t bytes);
  void on_unchanged(Entry& entry);
  [[nodiscard]] uint64_t name_of(const Entry& entry) const;  // in the record
  void on_pieces(Entry& entry);
  void count_bytes() { totals_.bytes = before_bytes_ + durable_bytes_; }
  void tell(const Entry& entry, session::TransferRecord::Said said, std::string_view reason);
  void on_summary(const session::Summary& summary);
  void end_entry(Entry& entry);
  [[nodiscard]] std::string shown_path(const Entry& entry) const;

  [[nodiscard]] bool keep_one() const;  // buffer for entries
  [[nodiscard]] ReadPace pace() const;
  void on_refused(const Entry& entry) override;
  void on_file_end(const session::FileEnd& end) override { file_ends_.push_back(end); }
  void on_grown(Entry& entry, uint64_t bytes) override;

  const SourceOptions options_;
  session::Link& link_;
  BufferShare buffers_;
  SourceObserver& observer_;
  Counters& counters_;
  const std::shared_ptr<Jobs> jobs_;
  std::shared_ptr<WalkHold> walk_;
  const std::shared_ptr<session::TransferRecord> record_;

  Instant now_{};
  Instant last_progress_{};
  bool progressed_ = false;
  session::DiskWatch disk_;
  session::PeersDisk peers_disk_;
  std::optional<Error> error_;
  Totals totals_;
  uint64_t before_bytes_ = 0;   // of files that this session has come to: moved by earlier sessions of the transfer
  uint64_t durable_bytes_ = 0;  // of this session, as the destination says

  // listing
  bool started_ = false;
  uint64_t answered_ = 0;                                 // entries before it have their verdict
  uint64_t unlisted_failed_ = 0, unlisted_vanished_ = 0;  // told by no entry: End tells them
  bool end_posted_ = false;
  bool summary_ = false;
  bool link_lost_ = false;

  // files
  EntryTable entries_;
  RingBuffer<session::FileEnd> file_ends_;  // to be posted; at most one for each entry that has not ended

  // segments and lanes
  SegmentSender sender_;
  Lister lister_;
  Announcer announcer_;
  ReadStage reads_;
};

}  // namespace ccixfer::send
