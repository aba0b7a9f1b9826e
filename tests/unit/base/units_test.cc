// Sizes, rates and ages as people write them, and what is refused.
#include "core/base/units.h"

#include <catch2/catch.hpp>
#include <limits>

using namespace ccixfer;

TEST_CASE("parse_size_bytes__units_people_write__bytes") {
  const struct {
    const char* text;
    uint64_t bytes;
  } cases[] = {{"0", 0},
               {"0KiB", 0},
               {"1", 1},
               {"65536", 65536},
               {"64KiB", 65536},
               {"4MiB", 4u << 20},
               {"1GB", 1000000000},
               {"1kB", 1000},
               {"1KB", 1000},
               {"7B", 7},
               {"64K", 65536},
               {"2M", 2u << 20},
               {"1.5GiB", 3u << 29},
               {" 4 MiB ", 4u << 20},
               {"007", 7},
               {"0.5KiB", 512},
               {"1.1kB", 1100},
               {"18446744073709551615B", 0},
               {"9999999999999999999", 9999999999999999999ull},
               {"0000000000000000000000001", 1},
               {"09999999999999999999", 9999999999999999999ull},  // a leading zero is none of the nineteen digits
               {"0.5000000000000000000KiB", 0},
               {"0.500000000000000000KiB", 512},
               {"0.0000000000000000000KiB", 0},
               {"15EiB", 15ull << 60}};
  for (const auto& c : cases) {
    INFO(c.text);
    const Result<uint64_t> got = parse_size_bytes(c.text);
    if (c.bytes == 0 && std::string_view(c.text).size() > 20) {
      CHECK_FALSE(got.has_value());  // more than 19 digits are refused rather than trusted
      continue;
    }
    REQUIRE(got.has_value());
    CHECK(*got == c.bytes);
  }
}

TEST_CASE("parse_size_bytes__not_a_size__usage_error") {
  for (const char* text :
       {"",          " ",      "B",      "KiB",     "-1", "+1", "1.",  ".5",  "1..2",  "1.2.3", "1e3",
        "0x10",      "64 Kib", "64KiBs", "4 MiB x", "4b", "1i", "1iB", "nan", "16EiB", "20EB",  "99999999999999999999",
        "0.0001KiB", "1\n2",   "1GB/s",  "1KiBB"}) {
    INFO(text);
    const Result<uint64_t> got = parse_size_bytes(text);
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error().kind == ErrorKind::usage);
    CHECK(got.error().message.find('\n') == std::string::npos);
  }
}

TEST_CASE("parse_rate__units_people_write__bits_per_s") {
  const struct {
    const char* text;
    uint64_t bits;
  } cases[] = {{"10Gb/s", 10000000000},
               {"800MB/s", 6400000000},
               {"0Gb/s", 0},
               {"0B/s", 0},
               {"1b/s", 1},
               {"64KiB/s", 524288},
               {"2.5Gbit/s", 2500000000},
               {"100Mbps", 100000000},
               {"1Kib/s", 1024},
               {"1kb/s", 1000},
               {"10 Gb/s", 10000000000},
               {"0.5B/s", 4}};
  for (const auto& c : cases) {
    INFO(c.text);
    const Result<uint64_t> got = parse_rate_bits_per_s(c.text);
    REQUIRE(got.has_value());
    CHECK(*got == c.bits);
  }
}

TEST_CASE("parse_rate__bare_or_wrong__usage_error") {
  for (const char* text : {"0", "10", "10G", "10Gb", "10GB", "10GiB", "Gb/s", "10gb/s", "10Gb/S", "10Gb/h", "-1Gb/s", "", "16EiB/s",
                           "3EB/s", "0.1b/s", "10 G b/s", "unlimited", "10Gb/ss"}) {
    INFO(text);
    const Result<uint64_t> got = parse_rate_bits_per_s(text);
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error().kind == ErrorKind::usage);
    CHECK(got.error().message.find(text) != std::string::npos);
  }
}

TEST_CASE("parse_age__units_people_write__seconds") {
  CHECK(parse_age_s("90s").value() == 90);
  CHECK(parse_age_s("30m").value() == 1800);
  CHECK(parse_age_s(" 1.5 h ").value() == 5400);
  CHECK(parse_age_s("24h").value() == 86400);
  CHECK(parse_age_s("7d").value() == 604800);
  CHECK(parse_age_s("0s").value() == 0);
}

TEST_CASE("parse_age__bare_or_wrong__usage_error") {
  for (const char* text : {"24", "h", "", "-1h", "1w", "1H", "1hh", "1 h m", "0.5s", "9999999999999999999d"}) {
    INFO(text);
    const Result<uint64_t> got = parse_age_s(text);
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error().kind == ErrorKind::usage);
    CHECK(got.error().message.find(text) != std::string::npos);
  }
}

TEST_CASE("format_bytes__all_magnitudes__three_digits_and_unit") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(999) == "999 B");
  CHECK(format_bytes(1000) == "1.0 kB");
  CHECK(format_bytes(99949) == "99.9 kB");
  CHECK(format_bytes(99951) == "100 kB");
  CHECK(format_bytes(999499) == "999 kB");
  CHECK(format_bytes(999501) == "1.0 MB");
  CHECK(format_bytes(4200000000) == "4.2 GB");
  CHECK(format_bytes(UINT64_MAX) == "18.4 EB");
}

TEST_CASE("format_rate__also_nonsense__a_rate") {
  CHECK(format_rate(812e6) == "812 MB/s");
  CHECK(format_rate(0) == "0 B/s");
  CHECK(format_rate(-5) == "0 B/s");
  CHECK(format_rate(std::numeric_limits<double>::quiet_NaN()) == "0 B/s");
  CHECK(format_rate(std::numeric_limits<double>::infinity()) == "0 B/s");
  CHECK(format_rate(1.5e9) == "1.5 GB/s");
}

TEST_CASE("format_link_rate__as_it_is_configured") {
  CHECK(format_link_rate(10'000'000'000) == "10Gb/s");
  CHECK(format_link_rate(2'500'000'000) == "2500Mb/s");
  CHECK(format_link_rate(64'000) == "64kb/s");
  CHECK(format_link_rate(9'601) == "9601b/s");
  for (const uint64_t rate : {uint64_t{1}, uint64_t{9'600}, uint64_t{1'500'000}, uint64_t{400'000'000'000}})
    CHECK(parse_rate_bits_per_s(format_link_rate(rate)).value() == rate);
}
