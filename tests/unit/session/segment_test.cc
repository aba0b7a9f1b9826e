// Segments: the trailer against bytes written by hand, round trips, every flipped bit refused, truncations, packs.
#include "app/session/segment.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "app/session/limits.h"
#include "tests/unit/session/whole_segment.h"

using namespace ccixfer;
using namespace ccixfer::session;

namespace {

std::vector<std::byte> buffer_with(std::string_view data) {
  std::vector<std::byte> buffer(segment_bytes_max);
  std::memcpy(buffer.data(), data.data(), data.size());
  return buffer;
}

SegmentHeader piece_header(uint32_t data_bytes) {
  SegmentHeader header;
  header.kind = SegmentKind::piece;
  header.session = 0x0102030405060708;
  header.lane_session = 0x1112131415161718;
  header.n = 0x21;
  header.index = 0x31;
  header.sequence = 0x41;
  header.file_version = 0x5152535455565758;
  header.data_bytes = data_bytes;
  header.count = 0;
  return header;
}

}  // namespace

TEST_CASE("segment__seal__trailer_is_the_bytes_written_by_hand") {
  std::vector<std::byte> buffer = buffer_with("hello");
  SegmentHeader header = piece_header(5);
  header.hash = {0x6162636465666768, 0x7172737475767778};
  REQUIRE(seal_hashed(buffer, header) == 5 + 128);
  const unsigned char expected[80] = {
      'C',  'X',  'S',  'G',  1,    3,    0,    0,     // magic, version, kind, seal, reserved
      8,    7,    6,    5,    4,    3,    2,    1,     // session
      0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,  // lane session
      0x21, 0,    0,    0,    0,    0,    0,    0,     // n
      0x31, 0,    0,    0,    0,    0,    0,    0,     // index
      0x41, 0,    0,    0,    0,    0,    0,    0,     // sequence
      0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51,  // file version
      5,    0,    0,    0,    0,    0,    0,    0,     // data_bytes, count
      0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61,  // hash, low
      0x78, 0x77, 0x76, 0x75, 0x74, 0x73, 0x72, 0x71,  // hash, high
  };
  CHECK(std::memcmp(buffer.data() + 5, expected, sizeof expected) == 0);
  for (size_t i = 80; i < 120; ++i) CHECK(buffer[5 + i] == std::byte{0});
}

TEST_CASE("segment__sealed__opens_to_the_same_header") {
  std::vector<std::byte> buffer = buffer_with("some data of a piece");
  SegmentHeader header = piece_header(20);
  const uint32_t length = seal(buffer, header);
  const Result<SegmentHeader> opened = session_test::open(Bytes(buffer).first(length));
  REQUIRE(opened);
  CHECK(opened->kind == header.kind);
  CHECK(opened->session == header.session);
  CHECK(opened->lane_session == header.lane_session);
  CHECK(opened->n == header.n);
  CHECK(opened->index == header.index);
  CHECK(opened->sequence == header.sequence);
  CHECK(opened->file_version == header.file_version);
  CHECK(opened->data_bytes == 20);
  CHECK(opened->count == 0);
  CHECK(opened->hash == header.hash);
}

TEST_CASE("segment__any_flipped_bit__is_refused") {
  std::vector<std::byte> buffer = buffer_with("payload!");
  SegmentHeader header = piece_header(8);
  const uint32_t length = seal(buffer, header);
  const MutableBytes whole = MutableBytes(buffer).first(length);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    const std::byte mask{static_cast<unsigned char>(1u << (bit % 8))};
    whole[bit / 8] ^= mask;
    const Result<SegmentHeader> opened = session_test::open(whole);
    INFO("bit " << bit);
    REQUIRE(!opened);
    REQUIRE(opened.error().kind == (bit / 8 < 8 ? ErrorKind::integrity : ErrorKind::protocol));
    REQUIRE(static_cast<bool>(session_test::peek(whole)) == (bit / 8 < 8));
    whole[bit / 8] ^= mask;
  }
  CHECK(session_test::open(whole));
}

TEST_CASE("segment__values_out_of_bounds_with_a_good_check__are_refused") {
  std::vector<std::byte> buffer = buffer_with("payload!");
  SegmentHeader header = piece_header(8);
  const uint32_t length = seal(buffer, header);
  const auto forged = [&](size_t at, unsigned value) {
    std::vector<std::byte> bytes(buffer.begin(), buffer.begin() + length);
    const MutableBytes trailer = MutableBytes(bytes).last(segment_trailer_bytes);
    trailer[at] = static_cast<std::byte>(value);
    const uint64_t check = xxh3_64(trailer.first(segment_trailer_bytes - 8));
    for (size_t i = 0; i < 8; ++i) trailer[segment_trailer_bytes - 8 + i] = static_cast<std::byte>(check >> (8 * i));
    return session_test::peek(bytes).has_value();
  };
  CHECK(forged(5, static_cast<unsigned>(SegmentKind::piece)));
  CHECK_FALSE(forged(5, static_cast<unsigned>(SegmentKind::piece) + 1));  // kind
  CHECK_FALSE(forged(0, 'D'));                                            // magic
  CHECK_FALSE(forged(4, 2));                                              // version
  CHECK_FALSE(forged(6, 1));                                              // seal
  CHECK_FALSE(forged(7, 1));                                              // reserved
  CHECK_FALSE(forged(56 + 3, 0xff));                                      // more data than there is
}

// Each kind has bounds of its own, which the receiver's memory rests on.
TEST_CASE("segment__count_and_length_of_each_kind__up_to_their_bounds_and_no_more") {
  std::vector<std::byte> buffer(segment_bytes_max);
  const auto is_taken = [&](SegmentKind kind, uint32_t data_bytes, uint32_t count) {
    SegmentHeader header = piece_header(data_bytes);
    const uint32_t length = seal(buffer, header);
    const MutableBytes trailer = MutableBytes(buffer).subspan(length - segment_trailer_bytes, segment_trailer_bytes);
    trailer[5] = static_cast<std::byte>(kind);
    for (size_t i = 0; i < 4; ++i) trailer[60 + i] = static_cast<std::byte>(count >> (8 * i));
    const uint64_t check = xxh3_64(trailer.first(segment_trailer_bytes - 8));
    for (size_t i = 0; i < 8; ++i) trailer[segment_trailer_bytes - 8 + i] = static_cast<std::byte>(check >> (8 * i));
    return session_test::peek(Bytes(buffer).first(length)).has_value();
  };
  CHECK(is_taken(SegmentKind::entries, 1, entries_per_segment_max));
  CHECK_FALSE(is_taken(SegmentKind::entries, 1, entries_per_segment_max + 1));
  CHECK(is_taken(SegmentKind::pack, 1, pack_files_max));
  CHECK_FALSE(is_taken(SegmentKind::pack, 1, pack_files_max + 1));
  CHECK(is_taken(SegmentKind::void_, 0, 0));
  CHECK_FALSE(is_taken(SegmentKind::void_, 1, 0));
}

TEST_CASE("segment__cut_short_or_too_long__is_refused") {
  std::vector<std::byte> buffer = buffer_with("payload!");
  SegmentHeader header = piece_header(8);
  const uint32_t length = seal(buffer, header);
  for (uint32_t cut_at = 0; cut_at < length; ++cut_at) {
    REQUIRE(!session_test::open(Bytes(buffer).first(cut_at)));
    REQUIRE(!session_test::open(Bytes(buffer).subspan(length - cut_at, cut_at)));
  }
  buffer.resize(segment_bytes_max + 1);
  CHECK(!session_test::peek(buffer));
}

TEST_CASE("segment__whole_piece_with_slack__fits_the_buffer") {
  std::vector<std::byte> buffer(segment_bytes_max);
  SegmentHeader header = piece_header(piece_bytes);
  const uint32_t length = seal(buffer, header);
  CHECK(length <= segment_bytes_max);
  CHECK(session_test::open(Bytes(buffer).first(length)));
}

TEST_CASE("segment__void__has_no_data") {
  std::vector<std::byte> buffer(segment_bytes_max);
  SegmentHeader header;
  const uint32_t length = seal(buffer, header);
  CHECK(length == segment_trailer_bytes);
  const Result<SegmentHeader> opened = session_test::open(Bytes(buffer).first(length));
  REQUIRE(opened);
  CHECK(opened->kind == SegmentKind::void_);
}

TEST_CASE("pack__records_written__are_walked_again") {
  std::vector<std::byte> pack(2 * pack_record_bytes + 3);
  const std::string_view content = "abc";
  put_pack_record(pack, {7, 3, xxh3_128(as_bytes(content)), {}});
  std::memcpy(pack.data() + pack_record_bytes, content.data(), 3);
  put_pack_record(MutableBytes(pack).subspan(pack_record_bytes + 3), {9, 0, xxh3_128({}), {}});
  Bytes rest = pack;
  PackRecord record;
  REQUIRE(next_pack_record(rest, record));
  CHECK(record.index == 7);
  CHECK(as_text(record.content) == content);
  CHECK(record.hash == xxh3_128(as_bytes(content)));
  REQUIRE(next_pack_record(rest, record));
  CHECK(record.index == 9);
  CHECK(record.content.empty());
  CHECK(rest.empty());
  CHECK(!next_pack_record(rest, record));
}

TEST_CASE("pack__record_longer_than_what_is_there__is_refused") {
  std::vector<std::byte> pack(pack_record_bytes + 3);
  for (const uint32_t size : {4u, small_file_bytes_max, small_file_bytes_max + 1, 0xffffffffu}) {
    put_pack_record(pack, {7, size, {}, {}});
    Bytes rest = pack;
    PackRecord record;
    CHECK(!next_pack_record(rest, record));
    CHECK(rest.size() == pack.size());
  }
}

TEST_CASE("segment__as_long_as_a_buffer__is_taken_and_one_byte_more_is_not") {
  std::vector<std::byte> buffer(segment_bytes_max + 1);
  SegmentHeader header;
  header.kind = SegmentKind::pack;
  header.data_bytes = segment_bytes_max - segment_trailer_bytes;
  header.count = pack_files_max;
  REQUIRE(seal(MutableBytes(buffer).first(segment_bytes_max), header) == segment_bytes_max);
  const auto opened = session_test::open(Bytes(buffer).first(segment_bytes_max));
  REQUIRE(opened);
  CHECK(opened->data_bytes == header.data_bytes);
  CHECK(opened->count == pack_files_max);
  CHECK_FALSE(session_test::peek(Bytes(buffer).first(segment_bytes_max - 1)));
  CHECK_FALSE(session_test::peek(buffer));
  // As if it were a longer one: its trailer stands behind.
  std::copy(buffer.end() - 1 - segment_trailer_bytes, buffer.end() - 1,
            buffer.begin() + (segment_bytes_max + 1 - segment_trailer_bytes));
  CHECK_FALSE(session_test::peek(buffer));
}

TEST_CASE("segment__bounds_of_each_kind__held_at_the_receiver") {
  std::vector<std::byte> buffer(1000);
  const auto seals = [&](SegmentKind kind, uint32_t data_bytes, uint32_t count) {
    SegmentHeader header;
    header.kind = kind;
    header.data_bytes = data_bytes;
    header.count = count;
    return session_test::peek(Bytes(buffer).first(seal(buffer, header))).has_value();
  };
  CHECK(seals(SegmentKind::void_, 0, 0));
  CHECK(seals(SegmentKind::entries, 5, entries_per_segment_max));
  CHECK(seals(SegmentKind::entries, 0, 0));
  CHECK(seals(SegmentKind::pack, 5, pack_files_max));
  CHECK(seals(SegmentKind::piece, 5, 0));
  std::vector<std::byte> large(segment_bytes_max);
  SegmentHeader piece;
  piece.kind = SegmentKind::piece;
  piece.data_bytes = piece_bytes;
  CHECK(session_test::open(Bytes(large).first(seal(large, piece))).has_value());
}

// What was written is not asked for again in the middle: the writer says when it has enough.
TEST_CASE("segment__opened_in_blocks__each_block_once_in_order_and_no_more_after_a_refusal") {
  std::vector<std::byte> buffer(segment_bytes_max);
  for (size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<std::byte>(i * 13 + i / 253);
  SegmentHeader header;
  header.kind = SegmentKind::piece;
  header.data_bytes = 3 * hash_block_bytes + 17;
  const Bytes segment = Bytes(buffer).first(seal(buffer, header));
  std::vector<std::pair<uint64_t, size_t>> blocks;
  const auto write = [&](size_t most) {
    return [&blocks, most](Bytes block, uint64_t at_bytes) {
      blocks.emplace_back(at_bytes, block.size());
      return blocks.size() < most;
    };
  };
  REQUIRE(session_test::open_in_blocks(segment, write(100)));
  const uint64_t block = hash_block_bytes;
  CHECK(blocks == std::vector<std::pair<uint64_t, size_t>>{{0, block}, {block, block}, {2 * block, block}, {3 * block, 17}});
  blocks.clear();
  buffer[0] ^= std::byte{1};
  CHECK(session_test::open_in_blocks(segment, write(2)));  // it was not read to its end
  CHECK(blocks.size() == 2);
  blocks.clear();
  const auto damaged = session_test::open_in_blocks(segment, write(100));
  REQUIRE_FALSE(damaged);
  CHECK(damaged.error().kind == ErrorKind::integrity);
  CHECK(blocks.size() == 4);
}
