// A segment in its buffer: data first, at [0, data_bytes), then the trailer of segment_trailer_bytes. The whole is one RVMA
// put, so the trailer is the last 128 bytes of what completed. Buffers are segment_bytes_max.
// Trailer, little-endian: magic u32, version u8, kind u8, seal u8, 0 u8, session, lane_session, n, index, sequence, file_version
// u64, data_bytes u32, count u32, hash 16 bytes, 40 bytes reserved (0 today, covered by the check), check u64 = XXH3-64 of the 120
// before. The trailer has its own check; the data has XXH3-128. `seal` fills hash and trailer; `open` verifies both: under
// --insecure that is the null seal; a sealing cipher takes their place in the same layout.
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
  uint64_t n = 0;             // put sequence of the lane session
  uint64_t index = 0;         // entries: index of the first entry; piece: index of the file; pack: 0
  uint64_t sequence = 0;      // entries: dense number of this entries segment, from 0; piece: number of the piece; pack: 0
  uint64_t file_version = 0;  // piece: version of the file that it was read from
  uint32_t data_bytes = 0;
  uint32_t count = 0;  // entries, files of a pack
  Hash128 hash;        // of the data; filled by seal
};

// Fills header.hash and writes the trailer at data_bytes; returns the length to put. `buffer` holds at least that; CHECKs the
// bounds of the header.
[[nodiscard]] uint32_t seal(MutableBytes buffer, SegmentHeader& header);
// As seal, when the hash of the data is known already (the reader computed it while the data was in cache).
[[nodiscard]] uint32_t seal_hashed(MutableBytes buffer, const SegmentHeader& header);
// Checks trailer, lengths and hash of a completed buffer of `length` bytes; gives the header. ErrorKind::integrity: hash; protocol:
// malformed.
[[nodiscard]] Result<SegmentHeader> open(Bytes buffer);
// As open, and hands each block of the data to `write` right after it was hashed, while it is in the cache. What was written
// counts only after success. `write` answers false to stop early (its own error): the result is then the header, unverified.
[[nodiscard]] Result<SegmentHeader> open_in_blocks(Bytes buffer, const std::function<bool(Bytes block, uint64_t at_bytes)>& write);
// The trailer alone, without looking at the data (cheap; on the protocol thread).
[[nodiscard]] Result<SegmentHeader> peek(Bytes buffer);

// A pack: for each file index u64, size u32, flags u32, hash (of its content) 16 bytes, then the content.
inline constexpr uint32_t pack_record_bytes = 32;
struct PackRecord {
  uint64_t index = 0;
  uint32_t size_bytes = 0;
  Hash128 hash;
  Bytes content;
};
void put_pack_record(MutableBytes at, const PackRecord& record);  // header only; content stands right behind
// Walks a pack's data; false: malformed.
[[nodiscard]] bool next_pack_record(Bytes& rest, PackRecord& record);

}  // namespace ccixfer::session
