// A segment in its buffer: the data at [0, data_bytes), and behind it the trailer. The whole is one
// RVMA put, so the trailer is the last segment_trailer_bytes of what completed. A buffer has
// segment_bytes_max. README.md shows the format of the trailer.
// The trailer has a check of its own; the data has an XXH3-128. `seal` fills in the hash and writes
// the trailer, and `open` verifies both. That is the null seal of --insecure; a cipher will use the
// same layout.
#pragma once
#include <cstdint>
#include <functional>

#include "core/base/bytes.h"
#include "core/base/hash.h"
#include "core/base/result.h"

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
  Hash128 hash;        // of the data; filled by seal
};

// Fills header.hash and writes the trailer at data_bytes; returns the length to put, which `buffer`
// must have. CHECKs the bounds of the header.
[[nodiscard]] uint32_t seal(MutableBytes buffer, SegmentHeader& header);
// The same where the hash of the data is known already, because the reader computed it.
[[nodiscard]] uint32_t seal_hashed(MutableBytes buffer, const SegmentHeader& header);
// Checks the trailer, the lengths and the hash of a completed buffer, and gives the header. integrity:
// the hash differs. protocol: the trailer is malformed.
[[nodiscard]] Result<SegmentHeader> open(Bytes buffer);
// The same, and hands each block of the data to `write` right after it was hashed, while it is in the
// cache. What was written counts only after success. `write` answers false to stop early because of
// an error of its own; the result is then the header, unverified.
[[nodiscard]] Result<SegmentHeader> open_in_blocks(Bytes buffer, const std::function<bool(Bytes block, uint64_t at_bytes)>& write);
// Checks the trailer alone and not the data, which is cheap enough for the protocol thread.
[[nodiscard]] Result<SegmentHeader> peek(Bytes buffer);

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
