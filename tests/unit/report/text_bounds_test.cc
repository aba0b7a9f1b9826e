// What is text and what is not, to the byte; and a rate between two looks.
#include <catch2/catch.hpp>
#include <string>

#include "app/report/events.h"
#include "app/report/progress_line.h"
#include "app/report/statistics.h"
#include "core/base/utf8.h"

namespace ccixfer::report {

using namespace std::chrono_literals;

namespace {

// By the table of the Unicode standard (3-7): the ranges of each byte of a well-formed sequence.
bool is_well_formed(const std::string& bytes) {
  const auto in = [&](size_t at, unsigned low, unsigned high) {
    const auto byte = static_cast<unsigned char>(bytes.at(at));
    return byte >= low && byte <= high;
  };
  if (bytes.size() == 1) return in(0, 0, 0x7F);
  if (bytes.size() == 2) return in(0, 0xC2, 0xDF) && in(1, 0x80, 0xBF);
  if (bytes.size() == 3) {
    if (!in(2, 0x80, 0xBF)) return false;
    return (in(0, 0xE0, 0xE0) && in(1, 0xA0, 0xBF)) || (in(0, 0xE1, 0xEC) && in(1, 0x80, 0xBF)) ||
           (in(0, 0xED, 0xED) && in(1, 0x80, 0x9F)) || (in(0, 0xEE, 0xEF) && in(1, 0x80, 0xBF));
  }
  if (!in(2, 0x80, 0xBF) || !in(3, 0x80, 0xBF)) return false;
  return (in(0, 0xF0, 0xF0) && in(1, 0x90, 0xBF)) || (in(0, 0xF1, 0xF3) && in(1, 0x80, 0xBF)) ||
         (in(0, 0xF4, 0xF4) && in(1, 0x80, 0x8F));
}

std::string of(std::initializer_list<unsigned> bytes) {
  std::string text;
  for (const unsigned byte : bytes) text += static_cast<char>(byte);
  return text;
}

}  // namespace

TEST_CASE("utf8__each_first_byte_with_others_at_their_bounds__as_the_standards_table") {
  constexpr unsigned edges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF};
  size_t wrong = 0;
  const auto look = [&](const std::string& text) {
    // A byte below 0x80 in the middle begins the next character.
    bool expected = true;
    for (size_t at = 0; at < text.size() && expected;) {
      const auto first = static_cast<unsigned char>(text[at]);
      const size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
      expected = at + length <= text.size() && is_well_formed(text.substr(at, length));
      at += length;
    }
    wrong += is_utf8(text) != expected ? 1u : 0u;
  };
  for (unsigned first = 0; first <= 0xFF; ++first) {
    look(of({first}));
    for (const unsigned second : edges) {
      look(of({first, second}));
      for (const unsigned third : edges) {
        look(of({first, second, third}));
        for (const unsigned fourth : edges) look(of({first, second, third, fourth}));
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(is_utf8(""));
  CHECK(
      is_utf8("a\xC3\xA9"
              "b\xE2\x82\xAC"
              "c\xF0\x9F\x98\x80"));
  CHECK_FALSE(is_utf8("a\xC3\xA9\xC3"));
}

// However many bytes that only go on a character stand behind it.
TEST_CASE("utf8__a_byte_that_begins_nothing__is_no_text_whatever_follows") {
  for (const unsigned first : {0x80u, 0xBFu, 0xC0u, 0xC1u, 0xF5u, 0xF8u, 0xFCu, 0xFFu}) {
    for (size_t more = 0; more <= 40; ++more) {
      const std::string bad = of({first}) + std::string(more, '\x80');
      INFO(first << " and " << more);
      CHECK_FALSE(is_utf8(bad));
      CHECK_FALSE(is_utf8("good " + bad));
    }
  }
}

TEST_CASE("rate_meter__two_looks_within_a_moment__count_from_that_moment_on") {
  RateMeter meter;
  const Instant start{1s};
  meter.sample(start, 0);
  meter.sample(start + 49ms, 4900);
  CHECK(meter.bytes_per_s() == 0);
  meter.sample(start + 100ms, 10'000);  // what came before is in it
  CHECK(meter.bytes_per_s() == Approx(100'000));
  meter.sample(start + 200ms, 10'000);
  meter.sample(start + 300ms, 10'000);
  // 10,000 bytes in 100 ms, and then nothing for 200 ms: the later samples count a little more.
  const double fades = std::exp(-0.05);
  CHECK(meter.bytes_per_s() == Approx(100'000 * fades * fades / (1 + fades + fades * fades)));
}

TEST_CASE("statistics__reasons_of_equal_weight__the_rest_stays_last") {
  FileTally files;
  for (int i = 0; i < 3; ++i) files.count("failed", "other reasons");
  files.count("failed", "b");
  files.count("failed", "a");
  const auto reasons = files.reasons("failed");
  REQUIRE(reasons.size() == 3);
  CHECK(reasons[0].first == "a");
  CHECK(reasons[1].first == "b");
  CHECK(reasons[2] == std::pair<std::string, uint64_t>("other reasons", 3));
  files.count("failed", "");
  CHECK(files.reasons("failed").size() == 3);
}

}  // namespace ccixfer::report
