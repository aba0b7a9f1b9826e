// Reads files into the buffers of segments, in the work pool: whole small files into a pack, 4 MiB of a
// large file as a piece, whole files for their digests. It knows no lanes and no messages. A file is
// sent only as it was at one moment, as far as its status before and after reading tells. The outcome is
// told for each file: ok, changed, vanished, or unreadable with the errno.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "app/send/walk.h"
#include "app/session/data_seal.h"
#include "app/session/messages.h"
#include "app/session/segment.h"
#include "core/base/hash.h"
#include "core/memory/pool.h"
#include "core/ports/file_system.h"

namespace ccixfer::send {

inline constexpr uint64_t digest_pieces_max = 1u << 20;  // of larger files (4 TiB) no digest is kept
inline constexpr int read_tries_max = 4;                 // the first and three more, while the file looks as it was listed

// What the walk saw of a file: what the other end was promised.
struct Listed {
  uint64_t size_bytes = 0;
  ports::FileTime mtime;
  uint64_t version = 0;
  // It must be that version before anything of it is sent: whoever listed it is another process. Small files need not be else,
  // where no link leads to them.
  bool exact = false;
};

struct ReadOutcome {
  session::SourceOutcome outcome = session::SourceOutcome::ok;
  int error = 0;  // errno, unreadable only
};

struct PackItem {
  uint64_t index = 0;
  uint32_t slot = 0;   // the reader's user's
  int directory = -1;  // SourcePlace
  Follow follow = Follow::none;
  std::vector<SourcePlace::Other> others;
  uint32_t name_at = 0, name_bytes = 0;  // in Pack::names
  Listed listed;
  ReadOutcome result;
};

struct Pack {
  std::string names;
  std::vector<PackItem> items;
  uint64_t planned_bytes = 0;  // records and contents, if all can be read
  // After read_pack:
  uint32_t data_bytes = 0;
  uint32_t count = 0;
  uint64_t content_bytes = 0;
  Hash128 hash;  // of the data, before they are sealed
  session::DataMark mark;
};

// Fills `buffer` with records and contents of the items that could be read, and each item's result. Where there is a `sealer`, all
// of that is sealed when it returns. `steps` counts the files, for whoever waits for a sign of life: each may take long.
void read_pack(ports::FileSystem& files, Pack& pack, MutableBytes buffer, std::atomic<uint64_t>* steps = nullptr,
               session::DataSealer* sealer = nullptr);

// Where bytes of a source come in, files and standard input alike: the trace of the data path.
void at_reader();

struct OpenedPlace {
  int fd = -1;             // or -errno
  bool over_link = false;  // below the place's directory, or at the end of a path without one
};
// Opens a file of a source where it stands, the first one of several. `steps` counts pauses (OpenFlags).
[[nodiscard]] OpenedPlace open_place(ports::FileSystem& files, const SourcePlace& place, std::atomic<uint64_t>* steps = nullptr);

// Opens a large file and compares it with what was listed; the descriptor, or -1 and `result`.
[[nodiscard]] int open_listed(ports::FileSystem& files, const SourcePlace& place, const Listed& listed, ReadOutcome& result,
                              std::atomic<uint64_t>* steps = nullptr);
// Whether the open file is still the version that was listed.
[[nodiscard]] ReadOutcome check_listed(ports::FileSystem& files, int fd, const Listed& listed);

struct PieceRead {
  ReadOutcome result;
  uint32_t data_bytes = 0;
  Hash128 hash;  // before they are sealed
  session::DataMark mark;
};
// Where there is a `sealer`, each block is sealed right after it was hashed, while it is in the cache.
[[nodiscard]] PieceRead read_piece(ports::FileSystem& files, int fd, uint64_t piece, uint64_t file_bytes, MutableBytes buffer,
                                   session::DataSealer* sealer = nullptr);
// The same, but where that is possible the buffer shows the file instead of holding a copy. What is sent
// is then what the file holds when the network takes it. The receiver sees by the hash that the file
// was changed in between.
[[nodiscard]] PieceRead show_or_read_piece(ports::FileSystem& files, int fd, uint64_t piece, uint64_t file_bytes,
                                           memory::Loan& buffer);

// The digest of a whole file, through `buffer` (at least piece_bytes); false: it could not be read in one version, or it has more
// than digest_pieces_max pieces.
// `steps` counts the pieces read, for whoever waits for a sign of life.
[[nodiscard]] bool digest_file(ports::FileSystem& files, const SourcePlace& place, const Listed& listed, MutableBytes buffer,
                               Hash128& digest, std::atomic<uint64_t>& steps);

[[nodiscard]] inline uint64_t pieces_of(uint64_t size_bytes) {
  return size_bytes / session::piece_bytes + (size_bytes % session::piece_bytes != 0 ? 1 : 0);
}
// Files that travel in packs: with its record such a file must fit a segment.
[[nodiscard]] inline bool is_small(uint64_t size_bytes) {
  return size_bytes <= session::small_file_bytes_max - session::pack_record_bytes;
}

}  // namespace ccixfer::send
