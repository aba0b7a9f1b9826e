// Keys and MACs have their known values, and secrets are wiped.
#include "core/trust/derive.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/trust/hmac.h"
#include "core/trust/secret.h"
#include "tests/unit/trust/hex.h"

namespace ccixfer::trust {
namespace {

Secret counting() {  // 00 01 02 ... 1f
  Secret secret;
  std::iota(secret.writable().begin(), secret.writable().end(), uint8_t{0});
  return secret;
}

// HMAC-SHA256 twice, by Python's hmac: HMAC(HMAC(32 zeros, key), u16 label | u32 context | 01).
TEST_CASE("derive__a_label_and_a_context__as_hkdf_computes_it") {
  const std::vector<std::byte> context = bytes_of_hex("010203");
  CHECK(hex(derive(counting(), "ccixfer test", context).bytes()) ==
        "df4211e71a18440046fdc84ceb5f041342e282cbb7add195978c2a339db0231c");
  CHECK(hex(derive(counting(), "", {}).bytes()) == "da8aff7a5b800f0d31b9dd8405161df0a8ac06159565218e70c4a7292f948962");
}

TEST_CASE("derive__what_moves_between_label_and_context__another_key") {
  std::set<std::string> keys;
  for (const auto& [label, context] : {std::pair("ab", "c"), {"a", "bc"}, {"abc", ""}, {"", "abc"}}) {
    keys.insert(hex(derive(counting(), label, as_bytes(context)).bytes()));
  }
  CHECK(keys.size() == 4);
  Secret other = counting();
  other.writable()[31] ^= 1;
  CHECK_FALSE(derive(other, "ab", {}).equals(derive(counting(), "ab", {}).bytes()));
  CHECK(derive(counting(), "ab", {}).equals(derive(counting(), "ab", {}).bytes()));
}

TEST_CASE("mac__known_values__as_rfc_4231_and_python_have_them") {
  // RFC 4231, cases 2 and 6.
  const auto key = [](std::string_view text) { return std::vector<uint8_t>(text.begin(), text.end()); };
  CHECK(hex(hmac_sha256(key("Jefe"), as_bytes("what do ya want for nothing?"))) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hex(hmac_sha256(std::vector<uint8_t>(131, 0xaa), as_bytes("Test Using Larger Than Block-Size Key - Hash Key First"))) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  CHECK(hex(mac(counting(), as_bytes("what do ya want for nothing?"))) ==
        "099805f4ac310786968565c098db515cc50862b420ae31e20238312344bed36a");
}

TEST_CASE("mac__compared__every_bit_and_the_length_count") {
  const Mac good = mac(counting(), as_bytes("text"));
  CHECK(equal(good, std::as_bytes(std::span(good))));
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    Mac bad = good;
    bad[bit / 8] = static_cast<uint8_t>(bad[bit / 8] ^ (1U << bit % 8));
    CHECK_FALSE(equal(good, std::as_bytes(std::span(bad))));
  }
  CHECK_FALSE(equal(good, std::as_bytes(std::span(good)).first(31)));
  CHECK_FALSE(equal(good, {}));
}

TEST_CASE("secret__compared__every_byte_and_the_length_count") {
  const Secret secret = counting();
  CHECK(secret.equals(counting().bytes()));
  for (size_t at = 0; at < secret_bytes; ++at) {
    Secret other = secret;
    other.writable()[at] ^= 0x80;
    CHECK_FALSE(secret.equals(other.bytes()));
  }
  CHECK_FALSE(secret.equals(secret.bytes().first(31)));
  CHECK_FALSE(secret.equals({}));
}

TEST_CASE("secret__goes__its_memory_is_wiped") {
  alignas(Secret) std::array<uint8_t, sizeof(Secret)> memory;
  auto* secret = new (memory.data()) Secret(counting().bytes());
  secret->~Secret();
  for (const uint8_t byte : memory) CHECK(byte == 0);
}

TEST_CASE("random_bytes__twice__other_bytes") {
  std::array<uint8_t, 32> first{}, second{};
  random_bytes(first);
  random_bytes(second);
  CHECK(first != second);
  CHECK(first != std::array<uint8_t, 32>{});
  random_bytes({});
}

}  // namespace
}  // namespace ccixfer::trust
