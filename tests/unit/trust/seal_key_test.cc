// Seals have their known values, and one changed bit opens nothing.
#include "core/trust/seal_key.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/trust/hex.h"

namespace ccixfer::trust {
namespace {

using Use = SealKey::Use;
constexpr std::array ciphers{Cipher::aes_256_gcm, Cipher::chacha20_poly1305};

Secret key_of(std::string_view text) {
  const auto bytes = bytes_of_hex(text);
  Secret key;
  std::transform(bytes.begin(), bytes.end(), key.writable().begin(), [](std::byte b) { return static_cast<uint8_t>(b); });
  return key;
}
Secret counting() { return key_of("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"); }
std::vector<std::byte> vector_of(std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

TEST_CASE("seal_key__gcm_test_cases_13_and_14_of_nist__its_tags_and_text") {
  SealKey key(Cipher::aes_256_gcm, Secret(), Use::seal);
  CHECK(hex(key.seal(0, {}, {})) == "530f8afbc74536b9a963b4f1c4cb738b");
  std::vector<std::byte> text(16);
  CHECK(hex(key.seal(0, {}, text)) == "d0d1c8a799996bf0265b98b5d48ab919");
  CHECK(hex(text) == "cea7403d4d606b6e074ec5d3baf39d18");
}

TEST_CASE("seal_key__chacha20_poly1305_of_rfc_8439_a_5__its_tag_and_text") {
  SealKey key(Cipher::chacha20_poly1305, key_of("1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0"), Use::seal);
  std::vector<std::byte> text = vector_of(
      "Internet-Drafts are draft documents valid for a maximum of six months and may be updated, replaced, or obsoleted by other "
      "documents at any time. It is inappropriate to use Internet-Drafts as reference material or to cite them other than as "
      "/\xe2\x80\x9cwork in progress./\xe2\x80\x9d");
  const auto associated = bytes_of_hex("f33388860000000000004e91");
  CHECK(hex(key.seal(0x0807060504030201, associated, text)) == "eead9d67890cbb22392336fea1851f38");
  CHECK(hex(std::span(text).first(16)) == "64a0861575861af460f062c79be643bd");
}

TEST_CASE("seal_key__a_number_a_text_and_associated_data__as_another_library_seals") {
  // pyca/cryptography, nonce = 4 zeros and the number little-endian.
  const std::array<std::string, 2> sealed = {"6f918731074aa66ef41d9a13f1405f849c", "8320d590ce5c843805c54eec1c160496c1"};
  const std::array<std::string, 2> tags = {"6e2b7604b555072571172ee7a272892b", "8f1d78917b1bbf5cd911363277a39b0b"};
  const std::array<std::string, 2> of_nothing = {"791c630d5f720b7ddb9750590a89e81a", "0c00743c60005b83c78a1842c1aeed0b"};
  for (const Cipher cipher : ciphers) {
    const auto row = static_cast<size_t>(cipher);
    SealKey key(cipher, counting(), Use::seal);
    std::vector<std::byte> text = vector_of("sixteen and one.!");
    CHECK(hex(key.seal(0x0102030405060708, as_bytes("header"), text)) == tags[row]);
    CHECK(hex(text) == sealed[row]);
    CHECK(hex(key.seal(0x0102030405060708, as_bytes("header"), {})) == of_nothing[row]);
  }
}

TEST_CASE("seal_key__any_cut_into_pieces__the_same_as_at_once") {
  for (const Cipher cipher : ciphers) {
    SealKey seal(cipher, counting(), Use::seal), open(cipher, counting(), Use::open);
    std::vector<std::byte> plain(517);
    for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::byte>(i * 7);
    std::vector<std::byte> whole = plain;
    const Tag tag = seal.seal(9, as_bytes("associated"), whole);
    for (const size_t piece : {size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{64}, size_t{500}}) {
      std::vector<std::byte> text = plain;
      seal.begin(9, as_bytes("associated"));
      for (size_t at = 0; at < text.size(); at += piece)
        seal.update(MutableBytes(text).subspan(at, std::min(piece, text.size() - at)));
      CHECK(seal.finish() == tag);
      CHECK(text == whole);
      open.begin(9, as_bytes("associated"));
      for (size_t at = 0; at < text.size(); at += piece)
        open.update(MutableBytes(text).subspan(at, std::min(piece, text.size() - at)));
      CHECK(open.finish(tag));
      CHECK(text == plain);
    }
  }
}

TEST_CASE("seal_key__one_bit_of_anything_changed__not_opened_and_the_next_one_is") {
  for (const Cipher cipher : ciphers) {
    SealKey seal(cipher, counting(), Use::seal), open(cipher, counting(), Use::open);
    std::vector<std::byte> sealed = vector_of("a text of some bytes");
    const std::vector<std::byte> plain = sealed;
    std::vector<std::byte> header = vector_of("header");
    const Tag tag = seal.seal(5, header, sealed);
    const auto opens = [&](uint64_t number, Bytes associated, std::vector<std::byte> text, const Tag& with) {
      return open.open(number, associated, text, with) && text == plain;
    };
    for (size_t bit = 0; bit < sealed.size() * 8; ++bit) {
      auto bad = sealed;
      bad[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
      CHECK_FALSE(opens(5, header, bad, tag));
    }
    for (size_t bit = 0; bit < header.size() * 8; ++bit) {
      auto bad = header;
      bad[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
      CHECK_FALSE(opens(5, bad, sealed, tag));
    }
    for (size_t bit = 0; bit < tag.size() * 8; ++bit) {
      Tag bad = tag;
      bad[bit / 8] = static_cast<uint8_t>(bad[bit / 8] ^ (1U << bit % 8));
      CHECK_FALSE(opens(5, header, sealed, bad));
    }
    for (unsigned bit = 0; bit < 64; ++bit) CHECK_FALSE(opens(5 ^ (uint64_t{1} << bit), header, sealed, tag));
    CHECK_FALSE(opens(5, {}, sealed, tag));
    CHECK_FALSE(opens(5, header, {sealed.begin(), sealed.end() - 1}, tag));
    CHECK(opens(5, header, sealed, tag));
    SealKey other(cipher, Secret(), Use::open);
    CHECK_FALSE(other.open(5, header, sealed, tag));
  }
}

TEST_CASE("seal_key__a_copy__seals_the_same_and_both_go_on_alone") {
  for (const Cipher cipher : ciphers) {
    SealKey key(cipher, counting(), Use::seal);
    const std::vector<std::byte> plain = vector_of("the same text for both of them");
    std::vector<std::byte> first = plain, second = plain;
    const Tag fresh = key.copy().seal(1, {}, first);  // of a key that has sealed nothing yet
    CHECK(key.seal(1, {}, second) == fresh);
    CHECK(first == second);
    SealKey copied = key.copy();
    key.begin(2, as_bytes("a"));
    copied.begin(3, as_bytes("b"));
    first = second = plain;
    key.update(first);
    copied.update(second);
    const Tag of_key = key.finish(), of_copy = copied.finish();
    SealKey moved(std::move(key));
    CHECK(moved.seal(3, as_bytes("b"), first = plain) == of_copy);
    moved = std::move(copied);
    CHECK(moved.seal(2, as_bytes("a"), second = plain) == of_key);
    SealKey open(cipher, counting(), Use::open);
    SealKey open_copy = open.copy();
    CHECK(open_copy.open(2, as_bytes("a"), second, of_key));
    CHECK(second == plain);
  }
}

TEST_CASE("seal_key__after_a_rest__it_is_the_same_key") {
  for (const Cipher cipher : ciphers) {
    SealKey key(cipher, counting(), Use::seal), rested(cipher, counting(), Use::seal), open(cipher, counting(), Use::open);
    const std::vector<std::byte> plain = vector_of("before and after");
    std::vector<std::byte> text = plain, again = plain, copied = plain;
    const Tag tag = key.seal(4, as_bytes("x"), text);
    rested.rest();
    CHECK(rested.copy().seal(4, as_bytes("x"), copied) == tag);
    CHECK(rested.seal(4, as_bytes("x"), again) == tag);
    CHECK(again == text);
    CHECK(copied == text);
    open.rest();
    open.rest();
    CHECK(open.open(4, as_bytes("x"), text, tag));
    CHECK(text == plain);
    open.rest();
    CHECK_FALSE(open.open(5, as_bytes("x"), again, tag));
  }
}

TEST_CASE("seal_key__begun_and_left__begins_again_cleanly") {
  for (const Cipher cipher : ciphers) {
    SealKey key(cipher, counting(), Use::seal), clean(cipher, counting(), Use::seal);
    std::vector<std::byte> text = vector_of("left half-way"), again = text, expected = text;
    key.begin(1, as_bytes("x"));
    key.update(text);
    const Tag tag = key.seal(2, {}, again);
    CHECK(tag == clean.seal(2, {}, expected));
    CHECK(again == expected);
  }
}

TEST_CASE("seal_key__copies_on_threads__each_seals_for_itself") {
  for (const Cipher cipher : ciphers) {
    const SealKey key(cipher, counting(), Use::seal);
    std::array<Tag, 4> tags{};
    std::vector<std::thread> threads;
    for (Tag& tag : tags) {
      threads.emplace_back([&tag, mine = key.copy()]() mutable {
        std::vector<std::byte> text(100'000, std::byte{3});
        tag = mine.seal(7, {}, text);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Tag& tag : tags) CHECK(tag == tags[0]);
  }
}

}  // namespace
}  // namespace ccixfer::trust
