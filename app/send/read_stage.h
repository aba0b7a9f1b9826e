// Reads wanted files into segments, ahead of the credit: small files into packs, larger ones as
// pieces, standard input as it comes. Packs and pieces take turns, so that neither a large file nor
// many small ones keep the other waiting.
// In: which files and pieces are wanted, and the pace of each turn. Out: segments to the sink, the
// ends of files to the handler.
// Bounds: reading_jobs_max jobs, besides those that open and check files and the one that reads
// standard input.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "app/send/file_wants.h"
#include "app/send/large_reads.h"
#include "app/send/pack_reads.h"
#include "app/send/stream_read.h"

namespace ccixfer::send {

inline constexpr uint32_t reading_jobs_max = 8;

class ReadStage final : public FileWants {
 public:
  ReadStage(const std::shared_ptr<Jobs>& jobs, const std::shared_ptr<WalkHold>& walk, EntryTable& entries, SegmentSink& sink,
            ReadHandler& handler, std::atomic<bool>& input_was_read, const Wrapping& wrapping = {});

  void set_routes(PieceRoutes* routes) { large_.set_routes(routes); }
  [[nodiscard]] Result<void> want_whole(Entry& entry) override;
  void want_pieces(Entry& entry) override;
  void want_compared(Entry& entry, bool leads) override { large_.want_compared(entry, leads); }
  [[nodiscard]] Result<void> compare(Entry& entry, const session::Compare& compare) override {
    return large_.compare(entry, compare);
  }
  [[nodiscard]] bool is_elsewhere(Entry& entry, uint64_t first_piece, uint64_t count) override {
    return large_.is_elsewhere(entry, first_piece, count);
  }
  [[nodiscard]] bool want_again(Entry& entry, uint64_t first_piece, uint64_t count) override;
  void entry_ends(Entry& entry) override;
  void piece_placed(uint64_t index);  // of the file with that index, which may have ended: standard input waits for it
  void start_reads(const ReadPace& pace, BufferShare& buffers);
  [[nodiscard]] uint64_t same_bytes() const { return large_.same_bytes(); }      // that the destination had, and needed not be sent
  [[nodiscard]] bool waits_for_input() const { return stream_.holds_buffer(); }  // with a buffer, for who knows how long

 private:
  EntryTable& entries_;
  PackReads packs_;
  LargeReads large_;
  StreamRead stream_;
  bool piece_next_ = true;
};

}  // namespace ccixfer::send
