// The inside of a Destination: one protocol thread, jobs beside it. Jobs carry what they need and report back through a
// function run on the protocol thread; every file in work counts the jobs that hold it.
// destination.cc: life, messages, turn. receive.cc: what arrives. settle.cc: sync, commit, leaves, the end.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/recv/commit.h"
#include "app/recv/destination.h"
#include "app/recv/entries.h"
#include "app/recv/lanes.h"
#include "app/recv/packs.h"
#include "app/recv/pieces.h"
#include "app/recv/root.h"
#include "app/session/disk_watch.h"
#include "app/session/segment.h"
#include "core/base/ring_buffer.h"

namespace ccixfer::recv {

inline constexpr Duration sync_interval = std::chrono::milliseconds(200);
inline constexpr uint64_t sync_bytes_max = 64u << 20;  // written and not durable: then a sync is due at once
inline constexpr uint32_t io_failures_max = 1;         // a file's writes and syncs that may fail and be asked for again
inline constexpr uint32_t entries_segment_bytes_max =
    160u << 10;  // as large as an entries segment can get, with one entry over its mark
inline constexpr uint64_t entries_held_bytes_max = 192u << 20;                             // segments that came ahead of their turn
inline constexpr uint32_t messages_unsent_max = session::control_messages_queued_max / 4;  // then no more verdicts for now
inline constexpr uint64_t pieces_ahead_max = 1u << 16;                                     // of a file of unknown length

// Why an entry ends without success.
struct Doom {
  ErrorKind kind = ErrorKind::file_io;
  int error_number = 0;
  bool discard = true;  // what is staged is worthless
  std::string reason;
};

struct Pieces {
  PieceTable table;
  std::shared_ptr<StagedFile> staged;
  std::vector<uint64_t> unsynced;  // written, not durable, not in a sync
  uint32_t losses = 0;             // failed syncs: what was being written before the last one is lost
  bool listed = false;             // in Impl::dirty
};

// A file between its verdict and its result.
struct FileState {
  FileTaskRef task;
  uint32_t jobs = 0;  // that hold it
  uint32_t io_failures = 0;
  bool by_pack = false;  // its content came in a pack: staging or staged
  bool committing = false;
  std::unique_ptr<Pieces> pieces;
  std::optional<session::FileEnd> end;
  std::optional<Doom> doom;
  uint64_t counted_bytes = 0;  // its part in the total: what the transfer moves of it
  uint64_t before_bytes = 0;   // of those: what an earlier session of the transfer brought
  uint64_t durable_bytes = 0;  // and what this one made durable
  [[nodiscard]] uint64_t size_bytes() const {
    return task->size_bytes != size_unknown ? task->size_bytes : end ? end->size_bytes : size_unknown;
  }
};

template <typename Work, typename Done>
class LambdaJob final : public ports::Job {
 public:
  LambdaJob(Work work, Done done) : work_(std::move(work)), done_(std::move(done)) {}
  void run(ports::FileSystem&) override { work_(); }
  void done() override { done_(); }

 private:
  Work work_;
  Done done_;
};

struct Destination::Impl {
  Impl(const DestinationOptions& destination_options, Root& shared_root, session::Link& session_link, cci::Endpoint& endpoint,
       ports::WorkPool& work_pool, memory::Pool& buffer_pool, ports::Entropy& entropy, DestinationObserver& file_observer,
       Counters& process_counters);
  ~Impl();

  // destination.cc
  void start();
  void turn(Instant at);
  void on_message(const session::Message& message);
  void on_file_end(const session::FileEnd& end);
  void end_with(Error reason, bool tell_peer);
  void post(const session::Message& message);
  void post_answer(uint64_t first, const std::vector<Decision>& decisions);
  void post_durable(bool over);
  void forget_deliveries();
  void look_at_disk(bool over);
  [[nodiscard]] bool idle() const;
  [[nodiscard]] Instant next_deadline() const;

  // receive.cc
  void receive(Arrival arrival);
  void receive_entries(Arrival& arrival, const session::SegmentHeader& header);
  void receive_pack(Arrival& arrival, const session::SegmentHeader& header);
  void receive_piece(Arrival& arrival, const session::SegmentHeader& header);
  void pump_entries();
  void decided(uint64_t sequence, Result<std::vector<Decision>> decisions, bool is_damage);
  void adopt(Decision& decision);
  void adopt_unchanged(const Decision& decision);
  void count_wanted(FileState& file, uint64_t present_bytes);
  void pack_staged(std::vector<PackItem>& items, bool damaged, uint64_t lane_session, uint64_t n);
  void piece_written(uint64_t index, uint64_t piece, uint64_t data_bytes, bool damaged, int error_number, uint32_t losses);
  void reject(std::string_view why);
  void resend_segment(uint64_t lane_session, uint64_t n);
  void resend(const FileState& file, uint64_t piece);
  void flush_resends();

  // settle.cc
  void pump_sync();
  void pump_commit();
  void pump_leaves();
  void pump_cleanup();
  void pump_end();
  void synced(const std::vector<SyncFile>& batch, const std::optional<Error>& failure);
  void committed(std::vector<CommitItem>& batch);
  void go_on_with(uint64_t index);
  void try_complete(FileState& file);
  void disk_fails(const FileState& file);
  void doom(FileState& file, Doom doom);
  void settle(FileState& file);
  void list_dirty(FileState& file);
  [[nodiscard]] static std::vector<uint64_t> lose_unsynced(Pieces& pieces);
  void io_failed(FileState& file, int error_number, const std::vector<uint64_t>& lost_pieces);
  void end_file(uint64_t index, const std::optional<Doom>& doom, uint64_t bytes = 0);  // bytes: of one that is there
  void flush_results();
  void count_durable(FileState& file, uint64_t bytes);
  void tell(const std::string& path, uint64_t version, uint64_t bytes, session::TransferRecord::Said said, std::string_view reason);

  template <typename Work, typename Done>
  void submit(Work job, Done done) {
    ++jobs;
    auto report = [this, then = std::move(done)]() mutable {
      --jobs;
      ++jobs_ended;
      wake = true;
      then();
    };
    work.submit(std::make_unique<LambdaJob<Work, decltype(report)>>(std::move(job), std::move(report)));
  }
  [[nodiscard]] FileState* find(uint64_t index) {
    const auto at = files.find(index);
    return at == files.end() ? nullptr : &at->second;
  }
  void release(memory::Loan& buffer) {
    buffer.reset();
    --buffers_out;
  }

  const DestinationOptions options;
  const Result<void> root_is_open;  // what is there now, if what was open is gone
  const std::shared_ptr<Root::Impl> root_held;
  Root::Impl& root;
  KnownDirectories directories;
  session::Link& link;
  ports::WorkPool& work;
  memory::Pool& pool;
  DestinationObserver& observer;
  Counters& counters;
  Policy policy;
  Lanes lanes;
  std::shared_ptr<Owner> owner = std::make_shared<Owner>();
  std::unique_ptr<EntriesContext> entries_context;  // after start; an entries job's while it runs

  RingBuffer<Arrival> arrivals;
  uint32_t buffers_out = 0;  // of ours that are not posted: arrivals and jobs
  uint32_t jobs = 0;

  std::map<uint64_t, std::vector<std::byte>> entries_held;  // segments by sequence, from the one that is due
  uint64_t entries_held_bytes = 0;
  struct Put {
    uint64_t lane_session = 0, n = 0;
  };
  std::map<uint64_t, Put> entries_puts;  // of those held: what to name when one is found damaged
  uint64_t next_sequence = 0;            // of the entries segment that is due or in its job
  uint64_t next_index = 0;               // of the first entry without verdict
  bool entries_running = false;

  std::map<uint64_t, FileState> files;  // in work, by index; at most entries_outstanding_max (the source's promise, enforced)
  std::vector<uint64_t> dirty;          // files with unsynced pieces
  uint64_t dirty_bytes = 0;
  Instant dirty_since = never;
  bool sync_running = false;
  std::vector<CommitItem> commit_queue;
  bool commit_running = false;
  std::vector<std::string> cleanup;  // staged files of packs that will not be committed
  RingBuffer<Leave> leaves;          // reached, not yet due
  bool leaves_running = false;
  bool leaves_changed = false;

  std::vector<session::FileResult> results;
  RingBuffer<session::Resend> resends;  // not yet posted; a failed sync may ask for all pieces of a file
  std::optional<session::End> end;
  uint32_t unlisted_named = 0;  // what the source could not list, as far as it told the names
  bool final_running = false;
  bool summary_posted = false;
  bool bye = false;
  bool link_gone = false;
  bool started = false;
  std::optional<Error> error;

  session::Tally totals;
  uint64_t session_bytes = 0;  // of totals.bytes: what this session made durable
  const std::shared_ptr<session::TransferRecord> transfer_record;
  session::Durable durable_posted;
  session::DiskWatch disk;
  session::PeersDisk peers_disk;
  uint64_t jobs_ended = 0;
  uint32_t messages_unsent = 0;  // posted since the control channel was last drained
  Instant now{};
  Instant last_progress{};
  bool progress = false;  // besides jobs that ended: those are in DiskWatch
  bool wake = false;
};

}  // namespace ccixfer::recv
