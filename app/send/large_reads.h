// Reads files that go in pieces: opens each, reads the pieces that are wanted, and looks at the
// file once more when all of them are read. A file that is not the listed version any more at
// either look is refused. The pieces may still be on their way then: each has its hash, so the
// destination notices what changes behind that look, and asks for the piece again.
// A piece that the destination has already, by its hash, is read and not sent.
// In: files with wanted pieces (LargeFile). Out: pieces to the sink; pieces that are the same, and
// the end of each file, to the handler.
// Bounds: large_files_open_max open files. At most compared_files_open_max of them are such as have pieces that others name: they
// may stay open for long, and the rest is for those that this end reads without waiting for anybody.
// Digests of files up to digest_pieces_max pieces.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/send/entry_queue.h"
#include "app/send/jobs.h"
#include "app/send/piece_route.h"
#include "app/send/read_handler.h"
#include "app/send/segment_sink.h"
#include "app/send/wrapping.h"

namespace ccixfer::send {

inline constexpr uint32_t large_files_open_max = 16;
inline constexpr uint32_t compared_files_open_max = 12;

class LargeReads {
 public:
  LargeReads(std::shared_ptr<Jobs> jobs, std::shared_ptr<WalkHold> walk, EntryTable& entries, SegmentSink& sink,
             ReadHandler& handler, Wrapping wrapping = {});

  // Another way for the pieces of some files. None at first: all go to `sink`.
  void set_routes(PieceRoutes* routes) { routes_ = routes; }

  void want(Entry& entry);                       // its LargeFile says which pieces; announced, or sent before
  void want_compared(Entry& entry, bool leads);  // the same, but its pieces are wanted as `compare` names them; as of FileWants
  // The destination names pieces of it. ErrorKind::protocol: that makes no sense.
  [[nodiscard]] Result<void> compare(Entry& entry, const session::Compare& compare);
  [[nodiscard]] bool is_elsewhere(Entry& entry, uint64_t first_piece, uint64_t count);  // as of FileWants
  void forget_there(LargeFile& large, uint64_t first_piece, uint64_t count);            // these pieces are to be sent in any case
  void entry_ends(Entry& entry);                                                        // before it leaves the table
  void start_opens();
  // False: no piece of an open file is wanted, or there is no buffer.
  [[nodiscard]] bool start_piece(const ReadPace& pace, BufferShare& buffers);
  [[nodiscard]] uint32_t reading() const { return reading_; }  // jobs that read pieces
  [[nodiscard]] uint64_t same_bytes() const { return same_bytes_; }

 private:
  struct OpenData {
    std::shared_ptr<WalkHold> walk;
    uint32_t slot = 0;
    std::string name;
    SourcePlace place;
    Listed listed;
    ReadOutcome result;
    std::shared_ptr<OpenFile> file;
    std::vector<session::Want::Range> holes;  // out: runs of whole pieces
  };
  struct PieceData {
    uint32_t slot = 0;
    uint64_t piece = 0;
    uint64_t size_bytes = 0;
    std::shared_ptr<OpenFile> file;
    std::shared_ptr<const PieceRoute> route;  // none: the session's own
    Wrapping wrapping;
    Wrapped wrapped;
    Buffer buffer;
    bool resend = false;
    std::optional<Hash128> there;  // what the destination has
    PieceRead read;
    bool same = false;
  };
  [[nodiscard]] Entry* next_to_open();  // nullptr: none, or as many are open as may be
  void opened(OpenData& data);
  static void read(ports::FileSystem& files, PieceData& job);
  void leave_out_holes(Entry& entry, const std::vector<session::Want::Range>& holes);
  void piece_read(PieceData& data);
  void read_again(Entry& entry, const PieceData& data);
  void checked(OpenData& data);
  void settle(Entry& entry);
  void close(Entry& entry);

  const std::shared_ptr<Jobs> jobs_;
  const std::shared_ptr<WalkHold> walk_;
  EntryTable& entries_;
  SegmentSink& sink_;
  ReadHandler& handler_;
  const Wrapping wrapping_;
  PieceRoutes* routes_ = nullptr;
  EntryQueue queue_, compared_queue_;
  std::vector<uint32_t> open_;  // slots of files that are opening, open or checking
  uint32_t compared_open_ = 0;  // of those
  uint32_t reading_ = 0;
  size_t there_ = 0;  // hashes in the LargeFiles of all entries
  uint64_t same_bytes_ = 0;
};

}  // namespace ccixfer::send
