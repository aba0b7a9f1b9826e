// Pieces of large files: the staged file that they are written to, which of them are here, and how they
// become durable.
#pragma once
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "app/recv/opened_root.h"
#include "app/recv/task.h"
#include "app/session/compression.h"
#include "app/session/limits.h"
#include "app/session/messages.h"
#include "app/session/segment.h"

namespace ccixfer::recv {

[[nodiscard]] constexpr uint64_t piece_count(uint64_t size_bytes) {
  return size_bytes / session::piece_bytes + (size_bytes % session::piece_bytes != 0 ? 1 : 0);
}
[[nodiscard]] constexpr uint64_t piece_length(uint64_t size_bytes, uint64_t piece) {
  const uint64_t rest = size_bytes - piece * session::piece_bytes;
  return rest < session::piece_bytes ? rest : session::piece_bytes;
}

// absent -> writing -> written -> durable. Back to absent when it arrived damaged or a sync failed.
enum class PieceState : uint8_t { absent, writing, written, durable };

// The state and hash of every piece of a file; memory grows with what arrived: in chunks, and a run of holes costs 16 bytes,
// however long it is. Protocol thread.
class PieceTable {
 public:
  // Whole pieces of which nothing is known. They are durable.
  void add_holes(uint64_t first, uint64_t count);
  // How many pieces from there on, and before `end`, nothing is known of.
  [[nodiscard]] uint64_t unknown(uint64_t first, uint64_t end) const;
  [[nodiscard]] PieceState state(uint64_t piece) const;
  void set_state(uint64_t piece, PieceState state);
  // The first segment that brings a piece says which hash it must have. False: it came with another
  // hash before.
  [[nodiscard]] bool expect(uint64_t piece, const Hash128& hash);
  [[nodiscard]] Hash128 hash(uint64_t piece) const;
  [[nodiscard]] uint64_t written() const { return written_; }  // written or durable
  [[nodiscard]] uint64_t end() const { return end_; }          // after the highest one that arrived
  [[nodiscard]] Hash128 digest(uint64_t count) const;          // all written

 private:
  static constexpr uint64_t chunk_pieces = 256;
  struct Chunk {
    std::array<PieceState, chunk_pieces> states{};
    std::array<bool, chunk_pieces> has_hash{};
    std::array<Hash128, chunk_pieces> hashes{};
  };
  Chunk& chunk_of(uint64_t piece);
  [[nodiscard]] const Chunk* find(uint64_t piece) const;
  // A run of holes, [first, end).
  struct Run {
    uint64_t first = 0;
    uint64_t end = 0;
  };
  [[nodiscard]] bool is_hole(uint64_t piece) const;
  std::map<uint64_t, std::unique_ptr<Chunk>> chunks_;  // by the number of their first piece
  std::vector<Run> holes_;                             // ascending, and none touches the next
  uint64_t written_ = 0;
  uint64_t end_ = 0;
};

// Takes a file out of the page cache after a sync of it has failed. What was lost still stands there, as if it were on the disk,
// and whoever reads the file next, to find out what it has, would believe that.
void forget_cached(ports::FileSystem& files, const HeldFile& open);

// The file that pieces are written to: a staged file, or with --inplace the file that stands at the final path. The job that writes
// first opens it. Thread-safe.
class StagedFile {
 public:
  // `directories` and `owner`, whose claim is on the final path: in place. They outlive it.
  StagedFile(OpenedRoot& root, const FileTask& task, bool resumed, KnownDirectories* directories = nullptr,
             const Owner* owner = nullptr);
  // Opens the file for writing, and makes it if it is not there. 0 or -errno. A staged file that has its final mode already may be
  // written again.
  [[nodiscard]] int open(HeldFileRef& out);
  // Writes all of it, as write_all does. Some file systems let only one write go into a file at a time:
  // there the other writers sleep here, as they would spin in the kernel (a fifth of two processors,
  // measured on tmpfs).
  [[nodiscard]] int write(const HeldFile& open, Bytes data, uint64_t offset_bytes);
  void was_written() { written_.store(true); }  // something was written into it by other means than write()
  // These pieces are holes from now on, of a file of that size. 0 or -errno.
  [[nodiscard]] int make_holes(const std::vector<session::Want::Range>& pieces, uint64_t size_bytes);
  // fsync by the descriptor that wrote, which hears of every failure since it was opened. After a
  // failure it is closed: what is not known to be durable must be written again by another one.
  [[nodiscard]] int sync();
  void piece_ends_at(uint64_t end_bytes);       // a piece that ends there was written whole
  [[nodiscard]] uint64_t length_bytes() const;  // of the whole file; while nobody knows that, as far as pieces were written
  // Gives a sparse file its full length, so that zeros that were left out at its end can be read back. 0 or -errno.
  [[nodiscard]] int lengthen(const HeldFile& open);
  void let_go();  // closes it, unless it is in use or was written since the last sync; opened again when needed
  void remove();  // closes it, and unlinks it from staging
  [[nodiscard]] bool is_in_place() const { return in_place_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int directory() const { return parent_ ? parent_->fd() : root_.staging; }  // that the name is in; once it was open

 private:
  int open_descriptor();
  int open_in_place();
  bool makes_way();
  int hold();
  // What is done to a file in place, which another session may have by now, is done while this lives.
  [[nodiscard]] Claims::Use in_use();
  OpenedRoot& root_;
  KnownDirectories* const directories_;
  const Owner* const owner_;
  const Hash128 key_;
  const bool in_place_;
  const uint64_t device_, inode_;  // in place: of the file
  const std::string path_;         // final
  const std::string name_;
  const uint32_t mode_;  // with which it is made: the final mode and our right to write, as there are file systems without chmod
  const bool sparse_;
  const uint64_t size_bytes_;  // size_unknown: not known
  std::atomic<uint64_t> written_to_{0};
  std::mutex writing_;
  std::mutex mutex_;
  bool exists_;
  HeldDirectoryRef parent_;           // in place
  std::atomic<bool> written_{false};  // since the last sync began
  HeldFileRef file_;
};

// Opens the file with that device and inode to be written over where it stands. If it is ours and its mode lets nobody write, it is
// writable until it is open. A descriptor or -errno.
[[nodiscard]] int open_to_write_over(ports::FileSystem& files, int parent, const std::string& name, uint64_t device,
                                     uint64_t inode);

// Where bytes of a piece, or of a file of a pack, go into staging: the trace of the data path.
void at_writer();

// Writes all of it, however short the single writes are. 0, or -errno; -ENOSPC: a write wrote nothing.
[[nodiscard]] int write_all(ports::FileSystem& files, int fd, Bytes data, uint64_t offset_bytes);

// The same for a sparse file: a block of zeros is not written where the file has a hole, and becomes a hole where it has none. So
// the file may be shorter than the data, if these end in zeros.
[[nodiscard]] int write_sparse(ports::FileSystem& files, int fd, Bytes data, uint64_t offset_bytes);

// Writes a piece from its segment into its place in the staged file, block by block while it is opened and hashed.
// The place counts as absent until the hash agrees, so a damaged piece overwrites nothing that counts.
struct PieceWritten {
  bool is_damaged = false;
  int error_number = 0;
  bool is_malformed = false;  // compressed data that are not what they say: the source's fault
};
inline constexpr const char* words_of_malformed = "the source sent compressed data that are not what they say";
[[nodiscard]] PieceWritten write_piece(StagedFile& staged, MutableBytes segment, const session::SegmentHeader& header,
                                       const session::DataOpener* opener);

// The same of a compressed segment, whose `buffer` has segment_bytes_max.
[[nodiscard]] PieceWritten write_compressed_piece(StagedFile& staged, MutableBytes buffer, const session::SegmentHeader& header,
                                                  const session::DataOpener* opener, session::Workspaces& workspaces);

// A batch of the syncer: fsync of each file, then one transaction with the pieces of those that went well.
struct SyncFile {
  FileTaskRef task;
  std::shared_ptr<StagedFile> staged;
  std::vector<Ledger::Piece> pieces;
  bool let_go = false;                 // nobody writes to it at present
  int error_number = 0;                // out: these pieces are not durable
  std::vector<uint64_t> damaged = {};  // out, with `verify`: the disk has something else there; they are in `pieces` no more
};
// `verify`: what was synced is read back from the disk before the transaction.
[[nodiscard]] std::optional<Error> sync_pieces(OpenedRoot& root, const Owner& owner, std::vector<SyncFile>& batch,
                                               bool verify = false);

// Finds the pieces that the disk does not have as they were written. All of them were synced before. 0, or -errno: they cannot be
// read back.
[[nodiscard]] int find_damaged(OpenedRoot& root, const Owner& owner, StagedFile& staged, const std::vector<Ledger::Piece>& pieces,
                               std::vector<uint64_t>& damaged);

// Reads back the pieces that the ledger names (`verify`: from the disk), and gives those that are undamaged in staging.
[[nodiscard]] std::vector<Ledger::Piece> read_back(OpenedRoot& root, const FileTask& task, const Owner& owner, bool verify = false);
[[nodiscard]] std::vector<session::Want::Range> missing_ranges(const std::vector<Ledger::Piece>& present, uint64_t count);
[[nodiscard]] std::optional<Hash128> digest_of(ports::FileSystem& files, int fd, uint64_t size_bytes, const Owner& owner);

}  // namespace ccixfer::recv
