// Segments with encryption: their data sealed when they were read, their trailers when they were put.
#include <catch2/catch.hpp>

#include "app/session/limits.h"
#include "app/session/segment.h"

namespace ccixfer::session {
namespace {

using Use = trust::SealKey::Use;

trust::Secret secret_of(uint8_t byte) {
  trust::Secret secret;
  secret.writable()[0] = byte;
  return secret;
}
trust::SealKey key_of(uint8_t byte, Use use) { return {trust::Cipher::aes_256_gcm, secret_of(byte), use}; }

struct Sealed {
  explicit Sealed(size_t bytes = 200'000) : buffer(bytes + segment_trailer_bytes) {
    for (size_t i = 0; i < bytes; ++i) buffer[i] = static_cast<std::byte>(i * 31);
    plain = buffer;
    header.kind = SegmentKind::piece;
    header.session = 1;
    header.lane_session = 2;
    header.n = 3;
    header.index = 4;
    header.sequence = 5;
    header.file_version = 6;
    header.data_bytes = static_cast<uint32_t>(bytes);
    header.hash = xxh3_128(MutableBytes(buffer).first(bytes));
    SealingPass pass(&sealer);
    pass.update(MutableBytes(buffer).first(bytes / 3));
    pass.update(MutableBytes(buffer).subspan(bytes / 3, bytes - bytes / 3));
    header.mark = pass.finish();
    put();
  }
  void put() {
    trust::SealKey key = key_of(1, Use::seal);
    REQUIRE(seal_hashed(buffer, header, &key) == buffer.size());
  }
  [[nodiscard]] Result<SegmentHeader> trailer(uint64_t n = 3) const {
    trust::SealKey key = key_of(1, Use::open);
    return open_trailer(buffer, &key, n);
  }
  DataSealer sealer{key_of(2, Use::seal)};
  DataOpener opener{key_of(2, Use::open)};
  SegmentHeader header;
  std::vector<std::byte> plain;
  std::vector<std::byte> buffer;
};

TEST_CASE("sealed_segment__opened_for_its_put__has_its_header_and_its_data") {
  Sealed segment;
  CHECK(std::equal(segment.plain.begin(), segment.plain.begin() + 100, segment.buffer.begin()) == false);
  const Result<SegmentHeader> header = segment.trailer();
  REQUIRE(header);
  CHECK(header->index == 4);
  CHECK(header->sequence == 5);
  CHECK(header->file_version == 6);
  CHECK(header->hash == segment.header.hash);
  CHECK(header->mark == segment.header.mark);
  REQUIRE(open_data(segment.buffer, *header, &segment.opener));
  CHECK(std::equal(segment.plain.begin(), segment.plain.end() - segment_trailer_bytes, segment.buffer.begin()));
}

TEST_CASE("sealed_segment__other_number_lane_or_no_key__does_not_open") {
  const Sealed segment;
  CHECK(segment.trailer(4).error().kind == ErrorKind::integrity);
  trust::SealKey other = key_of(9, Use::open);
  CHECK(open_trailer(segment.buffer, &other, 3).error().kind == ErrorKind::integrity);
  CHECK_FALSE(open_trailer(segment.buffer));
}

TEST_CASE("sealed_segment__without_a_seal_where_one_is_wanted__does_not_open") {
  Sealed segment;
  static_cast<void>(seal_hashed(segment.buffer, segment.header));
  CHECK(open_trailer(segment.buffer));
  CHECK_FALSE(segment.trailer());
}

TEST_CASE("sealed_segment__each_bit_of_the_trailer_flipped__does_not_open") {
  Sealed segment(1000);
  for (size_t bit = 0; bit < size_t{segment_trailer_bytes} * 8; ++bit) {
    std::byte& byte = segment.buffer[1000 + bit / 8];
    byte ^= std::byte{1} << (bit % 8);
    // Whoever changes it can compute the check anew, so it is not what protects.
    std::byte* check = &segment.buffer[1000 + 120];
    const uint64_t right = xxh3_64(Bytes(segment.buffer).subspan(1000, 120));
    if (bit / 8 < 120) std::memcpy(check, &right, 8);
    REQUIRE_FALSE(segment.trailer());
    byte ^= std::byte{1} << (bit % 8);
    segment.put();
  }
  CHECK(segment.trailer());
}

TEST_CASE("sealed_segment__each_part_of_the_data_flipped__does_not_open") {
  for (size_t at = 0; at < 1000; at += 37) {
    Sealed segment(1000);
    segment.buffer[at] ^= std::byte{1};
    const Result<SegmentHeader> header = segment.trailer();
    REQUIRE(header);
    CHECK(open_data(segment.buffer, *header, &segment.opener).error().kind == ErrorKind::integrity);
  }
}

TEST_CASE("sealed_segment__data_of_another_segment__do_not_open") {
  Sealed one(1000);
  SealingPass pass(&one.sealer);
  std::vector<std::byte> other(one.plain.begin(), one.plain.end() - segment_trailer_bytes);
  pass.update(other);
  const DataMark mark = pass.finish();
  CHECK(mark.number != one.header.mark.number);
  std::copy(other.begin(), other.end(), one.buffer.begin());  // the same plain bytes, under another number
  const Result<SegmentHeader> header = one.trailer();
  REQUIRE(header);
  CHECK_FALSE(open_data(one.buffer, *header, &one.opener));
}

TEST_CASE("sealed_segment__put_again_elsewhere__the_data_are_the_same_ciphertext") {
  Sealed segment(1000);
  const std::vector<std::byte> before(segment.buffer.begin(), segment.buffer.begin() + 1000);
  segment.header.n = 77;
  segment.header.lane_session = 78;
  segment.put();
  CHECK(std::equal(before.begin(), before.end(), segment.buffer.begin()));
  CHECK_FALSE(segment.trailer(3));
  REQUIRE(segment.trailer(77));
  CHECK(open_data(segment.buffer, *segment.trailer(77), &segment.opener));
}

TEST_CASE("data_seal__without_encryption__changes_nothing_and_checks_nothing") {
  std::vector<std::byte> data(100, std::byte{7});
  SealingPass sealing(nullptr);
  sealing.update(data);
  CHECK(sealing.finish() == DataMark{});
  OpeningPass opening(nullptr, {5, {}});
  opening.update(data);
  CHECK(opening.finish());
  CHECK(data == std::vector<std::byte>(100, std::byte{7}));
}

}  // namespace
}  // namespace ccixfer::session
