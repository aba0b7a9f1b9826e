#include <catch2/catch.hpp>

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

TEST_CASE("printable__percent_beside_escaped__unambiguous") {
  CHECK(shown("100%\n", true) == "100%25%0A");
  CHECK(shown("\xc3\xa9\xff", true) == "\xc3\xa9%FF");  // what is readable stays readable
}
