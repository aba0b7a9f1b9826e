// Bytes of a peer become one printable line: what is escaped, and that it can be told apart.
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "core/base/units.h"

using namespace ccixfer;
using namespace std::string_view_literals;

namespace {

std::string shown(std::string_view name, bool expect_escaped) {
  bool escaped = !expect_escaped;
  std::string out = printable(name, &escaped);
  INFO(out);
  CHECK(escaped == expect_escaped);
  CHECK(printable(name) == out);
  return out;
}

}  // namespace

TEST_CASE("printable__clean_utf8__unchanged") {
  for (std::string_view name :
       {""sv, "plain.txt"sv, "a b"sv, "100%"sv, "%41"sv, "\xc3\xa9t\xc3\xa9"sv, "\xe6\x97\xa5\xe6\x9c\xac"sv, "\xf0\x9f\x98\x80"sv,
        "\xc2\xa0"sv, "\xed\x9f\xbf"sv, "\xee\x80\x80"sv, "\xf4\x8f\xbf\xbf"sv}) {
    CHECK(shown(name, false) == name);
  }
}

TEST_CASE("printable__every_control_character__escaped") {
  for (unsigned value = 0; value < 0xa0; ++value) {
    if (value >= 0x20 && value < 0x7f) continue;
    const std::string name =
        value < 0x80 ? std::string(1, static_cast<char>(value)) : std::string{'\xc2', static_cast<char>(value)};
    const std::string out = shown(name, true);
    CHECK(out.size() == 3 * name.size());
    for (char c : out) CHECK((c >= 0x20 && c < 0x7f));
  }
  CHECK(shown("a\x1b[2Jb", true) == "a%1B[2Jb");
  CHECK(shown("a\x7f", true) == "a%7F");
  CHECK(shown("\xc2\x9b", true) == "%C2%9B");                       // C1 CSI
  CHECK(shown("\xe2\x80\xaegpj.exe", true) == "%E2%80%AEgpj.exe");  // right-to-left override
  CHECK(shown("\xe2\x80\xa8", true) == "%E2%80%A8");                // line separator
  CHECK(shown("a\0b"sv, true) == "a%00b");
}

TEST_CASE("printable__invalid_utf8__escaped_byte_by_byte") {
  CHECK(shown("\xff", true) == "%FF");
  CHECK(shown("\x80x", true) == "%80x");
  CHECK(shown("x\xc3", true) == "x%C3");  // cut off
  CHECK(shown("\xc3(", true) == "%C3(");
  CHECK(shown("\xc0\x80", true) == "%C0%80");  // overlong
  CHECK(shown("\xe0\x80\x80", true) == "%E0%80%80");
  CHECK(shown("\xf0\x80\x80\x80", true) == "%F0%80%80%80");
  CHECK(shown("\xed\xa0\x80", true) == "%ED%A0%80");         // surrogate
  CHECK(shown("\xf4\x90\x80\x80", true) == "%F4%90%80%80");  // past U+10FFFF
  CHECK(shown("\xe6\x97", true) == "%E6%97");
}

// Each code point written as UTF-8 by the definition: these sequences are valid, and no others of the edges of each byte are.
TEST_CASE("printable__sequences_of_bytes__valid_ones_are_those_of_the_definition") {
  std::set<std::string> valid;
  for (uint32_t point = 0x80; point <= 0x10ffff; ++point) {
    if (point >= 0xd800 && point <= 0xdfff) continue;
    std::string bytes;
    const auto tail = [&](unsigned shift) { bytes += static_cast<char>(0x80 | (point >> shift & 0x3f)); };
    if (point < 0x800) {
      bytes += static_cast<char>(0xc0 | point >> 6);
    } else if (point < 0x10000) {
      bytes += static_cast<char>(0xe0 | point >> 12);
      tail(6);
    } else {
      bytes += static_cast<char>(0xf0 | point >> 18);
      tail(12);
      tail(6);
    }
    tail(0);
    const bool harmful = point <= 0x9f || (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
    if (!harmful) valid.insert(bytes);
  }
  const std::string edges = "\x7f\x80\x81\x8f\x90\x9f\xa0\xa5\xa6\xa7\xa8\xa9\xaa\xae\xaf\xbf\xc0";
  size_t wrong = 0;
  const auto look = [&](const std::string& bytes) { wrong += (printable(bytes) == bytes) == valid.contains(bytes) ? 0u : 1u; };
  for (unsigned lead = 0x80; lead <= 0xff; ++lead) {
    const std::string one(1, static_cast<char>(lead));
    look(one);
    for (unsigned second = 0x80; second <= 0xff; ++second) {
      const std::string two = one + static_cast<char>(second);
      look(two);
      for (const char third : edges) {
        if (third != '\x7f') look(two + third);
        if (third == '\x7f' || lead < 0xef) continue;
        for (const char fourth : edges) {
          if (fourth != '\x7f') look(two + third + fourth);
        }
      }
    }
  }
  // Two that stand beside one another are not one.
  CHECK(wrong == 0);
}

TEST_CASE("printable__percent_beside_escaped__unambiguous") {
  CHECK(shown("100%\n", true) == "100%25%0A");
  CHECK(shown("\xc3\xa9\xff", true) == "\xc3\xa9%FF");  // what is readable stays readable
}
