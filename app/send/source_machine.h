// The inside of Source, in one place; its functions stand in three files by what they are about:
// source_listing.cc (walk, digests, entries segments), source_answers.cc (what the other end says), source.cc (the turn and the
// rest). Everything here is on the protocol thread.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/send/buffer_share.h"
#include "app/send/entry_table.h"
#include "app/send/jobs.h"
#include "app/send/read_stage.h"
#include "app/send/segment_sender.h"
#include "app/send/source.h"
#include "app/session/disk_watch.h"
#include "app/session/segment.h"
#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"

namespace ccixfer::send {

inline constexpr uint32_t entries_segments_max = 4;  // in buffers at once
inline constexpr uint32_t batches_ahead_max = 3;
inline constexpr uint32_t roots_open_max = 64;
inline constexpr uint32_t digest_jobs_max = 4;
inline constexpr uint32_t digest_batch_entries = 64;
inline constexpr uint32_t entries_resume_at = session::entries_outstanding_max / 4 * 3;  // so that entries segments stay large
inline constexpr size_t control_room_min = 64;                                           // of the control queue, left for others
inline constexpr Duration pool_retry_pause = std::chrono::milliseconds(10);  // a shared pool tells nobody that a buffer came back

struct Source::Impl final : ReadHandler {
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
  template <typename Data>
  void submit(std::unique_ptr<Data> data, std::type_identity_t<Jobs::Run<Data>> run, void (Impl::*done)(Data&)) {
    jobs_->submit(*this, std::move(data), run, done);
  }

  // --- source_listing.cc
  struct SelectData {
    std::shared_ptr<WalkHold> walk;
    std::optional<Error> error;
  };
  struct WalkData {
    std::shared_ptr<WalkHold> walk;
    std::shared_ptr<WalkBatch> batch;
    bool may_open_root = false;
  };
  struct DigestData {
    std::shared_ptr<WalkHold> walk;
    std::shared_ptr<WalkBatch> batch;
    uint64_t number = 0;
    Buffer buffer;
  };
  struct Listing {
    std::shared_ptr<WalkBatch> batch;
    size_t next = 0;    // record
    bool ready = true;  // digests are in
    bool started = false;
  };
  void selected(SelectData& data);
  void walk_on();
  void walked(WalkData& data);
  void digest_on();
  void digested(DigestData& data);
  [[nodiscard]] bool announce_again();  // false: no buffer
  void announce();                      // builds entries segments
  [[nodiscard]] bool fill_entries(MutableBytes into, session::SegmentHeader& header);
  void tell_record(const WalkBatch& batch, const WalkRecord& record);
  void listing_done();  // the front one
  void release_roots();
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

  // An entries segment until all of it is answered: what it was made of is gone by then.
  struct EntriesCopy {
    session::SegmentHeader header;
    std::vector<std::byte> data;
    bool wanted_again = false;
  };

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
  bool selected_ = false;
  bool walking_ = false;     // a step is in the work pool
  bool walk_over_ = false;   // all batches are here
  bool wants_root_ = false;  // the walk stands before a source directory that it may not open yet
  bool paused_ = false;      // entries_outstanding_max reached
  RingBuffer<Listing> listings_;
  uint64_t first_listing_ = 0;  // number of listings_.front()
  uint32_t digest_jobs_ = 0;
  uint32_t sources_announced_ = 0;    // sources before it are announced completely
  uint32_t sources_released_ = 0;     // the roots of sources before it are in open_roots_, or closed
  std::vector<uint32_t> open_roots_;  // sources
  session::Entry entry_;              // reused
  uint64_t next_index_ = 0;
  uint64_t answered_ = 0;  // entries before it have their verdict
  uint64_t next_sequence_ = 0;
  uint64_t unlisted_failed_ = 0, unlisted_vanished_ = 0;  // told by no entry: End tells them
  bool end_posted_ = false;
  bool summary_ = false;
  bool link_lost_ = false;

  // files
  EntryTable entries_;
  RingBuffer<session::FileEnd> file_ends_;  // to be posted; at most one for each entry that has not ended

  // segments and lanes
  SegmentSender sender_;
  ReadStage reads_;
  RingBuffer<EntriesCopy> entries_copies_;
  bool entries_wanted_again_ = false;
};

}  // namespace ccixfer::send
