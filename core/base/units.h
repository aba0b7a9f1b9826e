// Sizes and rates as people write them: `64KiB`, `4MiB`, `1GB`; `10Gb/s`, `800MB/s`. A bare rate is an error. Ages: `24h`.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ccixfer {

[[nodiscard]] Result<uint64_t> parse_size_bytes(std::string_view text);       // a bare number is bytes
[[nodiscard]] Result<uint64_t> parse_rate_bits_per_s(std::string_view text);  // a bare number is an error
[[nodiscard]] Result<uint64_t> parse_age_s(std::string_view text);  // "90s", "30m", "24h", "7d"; a bare number is an error
[[nodiscard]] std::string format_bytes(uint64_t bytes);             // "4.2 GB"
[[nodiscard]] std::string format_rate(double bytes_per_s);          // "812 MB/s"
[[nodiscard]] std::string format_link_rate(
    uint64_t bits_per_s);  // "10Gb/s", "800Mb/s", as it is configured: the unit that divides it
// Bytes of a file name for one line of text: no control characters, no invalid UTF-8 reach a terminal or a log.
// Anything else becomes %XX (and '%' itself %25 if anything was escaped). `escaped` tells whether anything was.
[[nodiscard]] std::string printable(std::string_view name, bool* escaped = nullptr);

}  // namespace ccixfer
