#include "app/session/segment.h"

#include <algorithm>
#include <array>
#include <span>

#include "app/session/limits.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/wire/cursor.h"

namespace ccixfer::session {
namespace {

// Trailer: magic u32, version u8, kind u8, seal u8, compression u8, session, lane_session, n; then what a seal encrypts: index,
// sequence, file_version u64, data_bytes u32, count u32, hash 16 bytes, and of a sealed segment the number of its data's seal u64
// and its tag; then the tag of the trailer; zeros where there is no seal, but for the check of compressed data in the place of the
// number. The length of the data before they were compressed stands in a place that is 0 otherwise: of a piece the count, of a pack
// the sequence. Last a check u64: XXH3-64 of all of the trailer before
// it.
constexpr uint32_t trailer_magic = 0x47535843;  // "CXSG"
constexpr uint8_t trailer_version = 1;
constexpr uint8_t null_seal = 0;
constexpr uint8_t aead_seal = 1;
constexpr uint8_t not_compressed = 0;
constexpr uint8_t zstd_compressed = 1;
constexpr size_t sealed_at = 32;
constexpr size_t mark_at = 80;
constexpr size_t tag_at = mark_at + 8 + trust::tag_bytes;
constexpr size_t check_at = segment_trailer_bytes - 8;
static_assert(tag_at + trust::tag_bytes == check_at);

void read_tag(wire::Reader& in, trust::Tag& tag) {
  const Bytes bytes = in.bytes(tag.size());
  std::transform(bytes.begin(), bytes.end(), tag.begin(), [](std::byte b) { return std::to_integer<uint8_t>(b); });
}

bool bounds_hold(const SegmentHeader& header) {
  if (header.data_bytes > segment_bytes_max - segment_trailer_bytes) return false;
  if (header.is_compressed()) {
    const bool may_be = header.kind == SegmentKind::pack || header.kind == SegmentKind::piece;
    if (!may_be || header.plain_bytes > piece_bytes || header.data_bytes >= header.plain_bytes) return false;
  }
  switch (header.kind) {
    case SegmentKind::void_:
      return header.data_bytes == 0;
    case SegmentKind::entries:
      return header.count <= entries_per_segment_max;
    case SegmentKind::pack:
      return header.count <= pack_files_max;
    case SegmentKind::piece:
      return header.data_bytes <= piece_bytes;
  }
  return false;
}

}  // namespace

uint32_t seal(MutableBytes buffer, SegmentHeader& header) {
  CHECK(header.data_bytes <= buffer.size());
  header.hash = xxh3_128(buffer.first(header.data_bytes));
  return seal_hashed(buffer, header);
}

// The trailer that makes bytes in a buffer a segment.
uint32_t seal_hashed(MutableBytes buffer, const SegmentHeader& header, trust::SealKey* key) {
  trace_stage("[stage 4] seal");
  CHECK(bounds_hold(header));
  CHECK(buffer.size() >= size_t{header.data_bytes} + segment_trailer_bytes);
  const MutableBytes trailer = buffer.subspan(header.data_bytes, segment_trailer_bytes);
  wire::Writer out(trailer);
  out.u32(trailer_magic);
  out.u8(trailer_version);
  out.u8(static_cast<uint8_t>(header.kind));
  out.u8(key != nullptr ? aead_seal : null_seal);
  out.u8(header.is_compressed() ? zstd_compressed : not_compressed);
  const bool is_packed_pack = header.is_compressed() && header.kind == SegmentKind::pack;
  const uint64_t sequence = is_packed_pack ? header.plain_bytes : header.sequence;
  for (const uint64_t field : {header.session, header.lane_session, header.n, header.index, sequence, header.file_version}) {
    out.u64(field);
  }
  out.u32(header.data_bytes);
  out.u32(header.is_compressed() && header.kind == SegmentKind::piece ? header.plain_bytes : header.count);
  out.u64(header.hash.low);
  out.u64(header.hash.high);
  CHECK(out.position() == mark_at);
  if (key != nullptr) {
    out.u64(header.mark.number);
    out.bytes(std::as_bytes(std::span(header.mark.tag)));
    const trust::Tag tag = key->seal(header.n, trailer.first(sealed_at), trailer.subspan(sealed_at, tag_at - sealed_at));
    out.bytes(std::as_bytes(std::span(tag)));
  } else {
    out.u64(header.compressed_check);
    out.zeros(check_at - mark_at - sizeof(header.compressed_check));
  }
  out.u64(xxh3_64(trailer.first(check_at)));
  CHECK(out.ok());
  return header.data_bytes + segment_trailer_bytes;
}

namespace {

// The length before compression, from the place of the kind where it stands.
void take_plain_bytes(wire::Reader& in, SegmentHeader& header) {
  if (header.kind == SegmentKind::pack) {
    in.require(header.sequence > 0 && header.sequence <= piece_bytes);
    header.plain_bytes = static_cast<uint32_t>(header.sequence);
    header.sequence = 0;
  } else {
    in.require(header.kind == SegmentKind::piece && header.count > 0);
    header.plain_bytes = header.count;
    header.count = 0;
  }
}

}  // namespace

Result<SegmentHeader> open_trailer(Bytes buffer, trust::SealKey* key, uint64_t n) {
  if (buffer.size() < segment_trailer_bytes || buffer.size() > segment_bytes_max) {
    return fail(ErrorKind::protocol, "segment: impossible length");
  }
  std::array<std::byte, segment_trailer_bytes> trailer;
  std::copy_n(buffer.last(segment_trailer_bytes).begin(), trailer.size(), trailer.begin());
  wire::Reader check(Bytes(trailer).subspan(check_at));
  if (check.u64() != xxh3_64(Bytes(trailer).first(check_at))) return fail(ErrorKind::protocol, "segment: malformed trailer");
  if (key != nullptr) {
    trust::Tag tag;
    wire::Reader tag_in(Bytes(trailer).subspan(tag_at, tag.size()));
    read_tag(tag_in, tag);
    const MutableBytes bytes(trailer);
    if (!key->open(n, bytes.first(sealed_at), bytes.subspan(sealed_at, tag_at - sealed_at), tag)) {
      return fail(ErrorKind::integrity, "segment: its trailer is not sealed for this put");
    }
  }
  wire::Reader in{Bytes(trailer)};
  in.require(in.u32() == trailer_magic);
  in.require(in.u8() == trailer_version);
  const uint8_t kind = in.u8();
  in.require(kind <= static_cast<uint8_t>(SegmentKind::piece));
  in.require(in.u8() == (key != nullptr ? aead_seal : null_seal));
  const uint8_t compression = in.u8();
  in.require(compression <= zstd_compressed);
  SegmentHeader header;
  header.kind = static_cast<SegmentKind>(kind);
  header.session = in.u64();
  header.lane_session = in.u64();
  header.n = in.u64();
  header.index = in.u64();
  header.sequence = in.u64();
  header.file_version = in.u64();
  header.data_bytes = in.u32();
  header.count = in.u32();
  header.hash.low = in.u64();
  header.hash.high = in.u64();
  if (key != nullptr) {
    header.mark.number = in.u64();
    read_tag(in, header.mark.tag);
  } else if (compression != not_compressed) {
    header.compressed_check = in.u64();
  }
  if (in.ok() && compression != not_compressed) take_plain_bytes(in, header);
  if (!in.ok()) return fail(ErrorKind::protocol, "segment: malformed trailer");
  if (!bounds_hold(header) || header.data_bytes != buffer.size() - segment_trailer_bytes) {
    return fail(ErrorKind::protocol, "segment: a length or count in the trailer is out of bounds");
  }
  return header;
}

// Nothing of a completed buffer is believed before the seal and the hash of its data agree.
Result<void> open_data_in_blocks(MutableBytes buffer, const SegmentHeader& header, const DataOpener* opener,
                                 const std::function<bool(Bytes block, uint64_t at_bytes)>& write) {
  trace_stage("[stage 8] open");
  CHECK(header.data_bytes <= buffer.size());
  OpeningPass pass(opener, header.mark);
  Xxh3Blocks hasher;
  for (uint32_t at = 0; at < header.data_bytes;) {
    const MutableBytes block = buffer.subspan(at, std::min<size_t>(hash_block_bytes, header.data_bytes - at));
    pass.update(block);
    hasher.update(block);
    if (!write(block, at)) return {};
    at += static_cast<uint32_t>(block.size());
  }
  if (!pass.finish()) return fail(ErrorKind::integrity, "segment: the data's seal does not match");
  if (hasher.digest() != header.hash) return fail(ErrorKind::integrity, "segment: the data's hash does not match");
  return {};
}

Result<void> open_data(MutableBytes buffer, const SegmentHeader& header, const DataOpener* opener) {
  return open_data_in_blocks(buffer, header, opener, [](Bytes, uint64_t) { return true; });
}

void put_pack_record(MutableBytes at, const PackRecord& record) {
  CHECK(at.size() >= pack_record_bytes);
  wire::Writer out(at.first(pack_record_bytes));
  out.u64(record.index);
  out.u32(record.size_bytes);
  out.u32(0);  // flags
  out.u64(record.hash.low);
  out.u64(record.hash.high);
  CHECK(out.ok());
}

bool next_pack_record(Bytes& rest, PackRecord& record) {
  wire::Reader in(rest);
  record.index = in.u64();
  record.size_bytes = in.u32();
  in.require(in.u32() == 0);
  record.hash.low = in.u64();
  record.hash.high = in.u64();
  in.require(record.size_bytes <= small_file_bytes_max);
  record.content = in.bytes(record.size_bytes);
  if (!in.ok()) return false;
  rest = rest.subspan(in.position());
  return true;
}

}  // namespace ccixfer::session
