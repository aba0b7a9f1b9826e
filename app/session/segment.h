// A segment in its buffer: the data at [0, data_bytes), and behind it the trailer. The whole is one
// RVMA put, so the trailer is the last segment_trailer_bytes of what completed. A buffer has
// segment_bytes_max. README.md shows the format of the trailer.
//
// A segment is sealed in two steps. Its data are sealed when they are read (data_seal.h), and its
// trailer when it is put: only then its lane and number are known. The seal of the data is in the
// trailer, so whoever opened the trailer knows all of the segment. Under --insecure nothing is
// encrypted; the trailer then has a check of its own, and the data an XXH3-128. These two are there
// in a sealed segment as well, since they find damage without a key.
#pragma once
#include <cstdint>
#include <functional>

#include "app/session/data_seal.h"
#include "core/base/bytes.h"
#include "core/base/hash.h"
#include "core/base/result.h"
#include "core/trust/seal_key.h"

namespace ccixfer::session {

enum class SegmentKind : uint8_t {
  void_ = 0 /* fills its place in the order of puts, no data */,
  entries = 1,
  pack = 2,
  piece = 3
};

inline constexpr uint32_t segment_trailer_bytes = 128;

struct SegmentHeader {
  SegmentKind kind = SegmentKind::void_;
  uint64_t session = 0;
  uint64_t lane_session = 0;
  uint64_t n = 0;             // number of the put in the lane session
  uint64_t index = 0;         // entries: index of the first entry; piece: index of the file; pack: 0
  uint64_t sequence = 0;      // entries: dense number of this entries segment, from 0; piece: number of the piece; pack: 0
  uint64_t file_version = 0;  // piece: version of the file that it was read from
  uint32_t data_bytes = 0;
  uint32_t count = 0;  // entries, files of a pack
  Hash128 hash;        // of the data before they are sealed; filled by seal
  DataMark mark;       // how to open the data; nothing under --insecure
  // Pieces and packs may be compressed (compression.h): the length of the data before, at most piece_bytes; 0: they are not. The
  // hash is of the data before that.
  uint32_t plain_bytes = 0;
  uint64_t compressed_check = 0;  // without a seal: XXH3-64 of the data as they travel
  [[nodiscard]] bool is_compressed() const { return plain_bytes > 0; }
  [[nodiscard]] uint32_t content_bytes() const { return is_compressed() ? plain_bytes : data_bytes; }
};

// Fills header.hash and writes the trailer at data_bytes; returns the length to put, which `buffer`
// must have. CHECKs the bounds of the header. Without encryption.
[[nodiscard]] uint32_t seal(MutableBytes buffer, SegmentHeader& header);
// The same where the hash and the mark of the data are known already, because the reader has them.
// `key`: of the puts of the header's lane session; nullptr: --insecure. The same header may be
// sealed again with its n; another one needs another n once this one has left.
[[nodiscard]] uint32_t seal_hashed(MutableBytes buffer, const SegmentHeader& header, trust::SealKey* key = nullptr);

// Opens the trailer of a completed buffer and checks it and the lengths, which is cheap enough for the
// protocol thread. It looks at nothing of the data. `key`: of the puts of the lane session and `n` that
// the buffer was posted for; nullptr: --insecure. The buffer stays as it is. protocol: the trailer is
// malformed. integrity: it was not sealed for this put.
[[nodiscard]] Result<SegmentHeader> open_trailer(Bytes buffer, trust::SealKey* key = nullptr, uint64_t n = 0);
// Opens the data in place and checks their hash. integrity: they were changed.
[[nodiscard]] Result<void> open_data(MutableBytes buffer, const SegmentHeader& header, const DataOpener* opener = nullptr);
// The same, and hands each block of the data to `write` right after it was opened and hashed, while it
// is in the cache. What was written counts only after success. `write` answers false to stop early
// because of an error of its own; the result is then success, and nothing is verified.
[[nodiscard]] Result<void> open_data_in_blocks(MutableBytes buffer, const SegmentHeader& header, const DataOpener* opener,
                                               const std::function<bool(Bytes block, uint64_t at_bytes)>& write);

// A pack: for each file index u64, size u32, flags u32, hash (of its content) 16 bytes, then the content.
inline constexpr uint32_t pack_record_bytes = 32;
struct PackRecord {
  uint64_t index = 0;
  uint32_t size_bytes = 0;
  Hash128 hash;
  Bytes content;
};
void put_pack_record(MutableBytes at, const PackRecord& record);  // writes the record only; the content belongs right behind it
// Walks the data of a pack. False: it is malformed.
[[nodiscard]] bool next_pack_record(Bytes& rest, PackRecord& record);

}  // namespace ccixfer::session
