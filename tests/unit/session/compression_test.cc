// Compressed segments: what saves something, and what a peer may make of it.
#include "app/session/compression.h"

#include <zstd.h>

#include <catch2/catch.hpp>
#include <string>

#include "app/session/limits.h"
#include "core/trust/seal_key.h"
#include "tests/unit/session/whole_segment.h"

namespace ccixfer::session {
namespace {

std::vector<std::byte> text(size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>((i / 7) % 61);
  return data;
}

std::vector<std::byte> noise(size_t bytes) {
  std::vector<std::byte> data(bytes);
  uint64_t state = 1;
  for (std::byte& byte : data) byte = static_cast<std::byte>((state = state * 6364136223846793005u + 1442695040888963407u) >> 56);
  return data;
}

// A compressed piece in a buffer, and its header.
struct Compressed {
  explicit Compressed(const std::vector<std::byte>& plain) : buffer(segment_bytes_max) {
    Compressor compressor(3);
    const Workspaces::Lease lease(compressor.workspaces());
    set(compressor.compress(plain, lease), static_cast<uint32_t>(plain.size()));
    header.hash = xxh3_128(plain);
  }
  void set(Bytes data, uint32_t plain_bytes) {
    std::copy(data.begin(), data.end(), buffer.begin());
    header.kind = SegmentKind::piece;
    header.data_bytes = static_cast<uint32_t>(data.size());
    header.plain_bytes = plain_bytes;
    header.compressed_check = xxh3_64(data);
  }
  Decompressed open() { return decompress(buffer, header, nullptr, workspaces); }
  std::vector<std::byte> buffer;
  SegmentHeader header;
  Workspaces workspaces;
};

TEST_CASE("compression__a_piece__comes_back_as_it_was") {
  const auto plain = text(piece_bytes);
  Compressed piece(plain);
  CHECK(piece.header.data_bytes < piece_bytes / 10);
  REQUIRE(piece.open() == Decompressed::ok);
  CHECK(piece.header.data_bytes == plain.size());
  CHECK_FALSE(piece.header.is_compressed());
  CHECK(open_data(piece.buffer, piece.header).has_value());
}

TEST_CASE("compression__whatever_the_level__a_workspace_stays_within_its_memory") {
  // Neither noise nor a pattern, so that a level uses what it asks for.
  auto plain = noise(piece_bytes);
  for (size_t i = 0; i < plain.size(); ++i) plain[i] &= i % 3 == 0 ? std::byte{0xff} : std::byte{0x07};
  for (int level = 1; level <= compress_level_max; ++level) {
    INFO(level);
    Compressor compressor(level);
    const Workspaces::Lease lease(compressor.workspaces());
    const Bytes compressed = compressor.compress(plain, lease);
    CHECK(compressed.size() < plain.size());
    CHECK_FALSE(compressed.empty());
    CHECK(lease.memory_bytes() <= workspace_bytes_max);
    CHECK(lease.memory_bytes() > piece_bytes);
    std::vector<std::byte> back(piece_bytes);
    REQUIRE(ZSTD_decompress(back.data(), back.size(), compressed.data(), compressed.size()) == plain.size());
    CHECK(back == plain);
  }
}

TEST_CASE("compression__noise__is_left_as_it_is") {
  Compressor compressor(19);
  const Workspaces::Lease lease(compressor.workspaces());
  CHECK(compressor.compress(noise(piece_bytes), lease).empty());
  CHECK(compressor.compress(noise(1000), lease).empty());
  CHECK(compressor.compress({}, lease).empty());
  CHECK_FALSE(compressor.compress(text(1000), lease).empty());
}

TEST_CASE("compression__the_trailer__says_the_length_before") {
  for (const bool is_pack : {false, true}) {
    Compressed piece(text(100'000));
    if (is_pack) {
      piece.header.kind = SegmentKind::pack;
      piece.header.count = 3;
    } else {
      piece.header.sequence = 9;
    }
    const uint32_t length = seal_hashed(piece.buffer, piece.header);
    const Result<SegmentHeader> read = open_trailer(Bytes(piece.buffer).first(length));
    REQUIRE(read);
    CHECK(read->plain_bytes == 100'000);
    CHECK(read->compressed_check == piece.header.compressed_check);
    CHECK(read->count == (is_pack ? 3u : 0u));
    CHECK(read->sequence == (is_pack ? 0u : 9u));
  }
}

TEST_CASE("compression__damage_on_the_way__is_no_fault_of_the_peer") {
  Compressed piece(text(100'000));
  piece.buffer[piece.header.data_bytes / 2] ^= std::byte{1};
  CHECK(piece.open() == Decompressed::damaged);
}

TEST_CASE("compression__data_that_lie__are_malformed") {
  const auto plain = text(100'000);
  Compressed piece(plain);
  const std::vector<std::byte> frame(piece.buffer.begin(), piece.buffer.begin() + piece.header.data_bytes);
  SECTION("longer than it says") { piece.set(frame, 99'999); }
  SECTION("shorter than it says") { piece.set(frame, 100'001); }
  SECTION("cut") { piece.set(Bytes(frame).first(frame.size() - 1), 100'000); }
  SECTION("no frame") { piece.set(Bytes(plain).first(500), 100'000); }
  SECTION("nothing") { piece.set({}, 100'000); }
  SECTION("something behind it") {
    auto longer = frame;
    longer.resize(longer.size() + 9);
    piece.set(longer, 100'000);
  }
  SECTION("a second frame behind it") {
    auto two = frame;
    two.insert(two.end(), frame.begin(), frame.end());
    piece.set(two, 100'000);
  }
  SECTION("a bomb") {
    const std::vector<std::byte> zeros(256u << 20);
    std::vector<std::byte> bomb(ZSTD_compressBound(zeros.size()));
    bomb.resize(ZSTD_compress(bomb.data(), bomb.size(), zeros.data(), zeros.size(), 1));
    piece.set(bomb, piece_bytes);
  }
  CHECK(piece.open() == Decompressed::malformed);
}

TEST_CASE("compression__trailers_that_lie__are_refused") {
  const auto sealed = [](auto change) {
    Compressed piece(text(100'000));
    const uint32_t length = seal_hashed(piece.buffer, piece.header);
    const MutableBytes trailer = MutableBytes(piece.buffer).subspan(piece.header.data_bytes, segment_trailer_bytes);
    change(trailer);
    const uint64_t check = xxh3_64(trailer.first(segment_trailer_bytes - 8));
    for (size_t i = 0; i < 8; ++i) trailer[segment_trailer_bytes - 8 + i] = static_cast<std::byte>(check >> (8 * i));
    return open_trailer(Bytes(piece.buffer).first(length)).has_value();
  };
  CHECK(sealed([](MutableBytes) {}));
  CHECK_FALSE(sealed([](MutableBytes trailer) { trailer[7] = std::byte{2}; }));                           // another compression
  CHECK_FALSE(sealed([](MutableBytes trailer) { trailer[5] = std::byte{1}; }));                           // of entries
  CHECK_FALSE(sealed([](MutableBytes trailer) { trailer[63] = std::byte{1}; }));                          // more than a piece
  CHECK_FALSE(sealed([](MutableBytes trailer) { std::fill_n(trailer.begin() + 60, 4, std::byte{0}); }));  // of nothing
}

TEST_CASE("compression__the_level__follows_what_is_waited_for") {
  Compressor compressor(0);
  const int first = compressor.level();
  for (int i = 0; i < 50; ++i) compressor.adapt(Bottleneck::network);
  CHECK(compressor.level() > first);
  const int most = compressor.level();
  compressor.adapt(Bottleneck::none);
  CHECK(compressor.level() == most);
  for (int i = 0; i < 50; ++i) compressor.adapt(i % 2 == 0 ? Bottleneck::source_disk : Bottleneck::destination_disk);
  CHECK(compressor.level() < first);
  const auto plain = text(piece_bytes);
  const Workspaces::Lease lease(compressor.workspaces());
  CHECK_FALSE(compressor.compress(plain, lease).empty());
  Compressor fixed(7);
  fixed.adapt(Bottleneck::network);
  CHECK(fixed.level() == 7);
}

}  // namespace
}  // namespace ccixfer::session
