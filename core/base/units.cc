#include "core/base/units.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace ccixfer {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr size_t digits_max = 19;  // of mantissa and fraction together: always fits 64 bits

struct Number {
  uint64_t mantissa = 0;
  uint64_t divisor = 1;   // 10 to the count of digits after the point
  std::string_view unit;  // what follows, spaces trimmed
};

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Digits with at most one point among them: no sign, no exponent, no locale.
std::optional<Number> split_number(std::string_view text) {
  text = trimmed(text);
  Number number;
  size_t digits = 0;
  size_t at = 0;
  bool point = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !point && digits > 0) {
      point = true;
      continue;
    }
    if (!is_digit(text[at])) break;
    const uint64_t digit = static_cast<uint64_t>(text[at] - '0');
    if (number.mantissa > 0 || point) {
      if (++digits > digits_max) return std::nullopt;
    } else {
      digits = 1;  // leading zeros cost nothing
    }
    number.mantissa = number.mantissa * 10 + digit;
    if (point) number.divisor *= 10;
  }
  if (digits == 0 || text[at - 1] == '.') return std::nullopt;
  number.unit = trimmed(text.substr(at));
  return number;
}

// What stands before b or B: a letter K M G T P E, binary with 'i' after it.
struct Prefix {
  unsigned power = 0;  // 0: none
  bool binary = false;
  [[nodiscard]] uint64_t factor() const {
    uint64_t value = 1;
    for (unsigned i = 0; i < power; ++i) value *= binary ? 1024 : 1000;
    return value;  // at most 2^60
  }
};

Prefix take_prefix(std::string_view& unit) {
  constexpr std::string_view letters = "KMGTPE";
  if (unit.empty()) return {};
  const size_t at = letters.find(unit[0] == 'k' ? 'K' : unit[0]);
  if (at == std::string_view::npos) return {};
  unit.remove_prefix(1);
  const bool binary = !unit.empty() && unit[0] == 'i';
  if (binary) unit.remove_prefix(1);
  return {static_cast<unsigned>(at) + 1, binary};
}

enum class ScaleFault : unsigned char { none, overflow, underflow };

ScaleFault scale(const Number& number, uint64_t factor, uint64_t& out) {
  const Wide product = Wide{number.mantissa} * factor / number.divisor;
  if (product > std::numeric_limits<uint64_t>::max()) return ScaleFault::overflow;
  out = static_cast<uint64_t>(product);
  // Zero means zero: a small something never becomes 'none' or 'no limit' by rounding.
  return out == 0 && number.mantissa != 0 ? ScaleFault::underflow : ScaleFault::none;
}

Result<uint64_t> scaled(std::string_view text, const Number& number, uint64_t factor) {
  uint64_t value = 0;
  switch (scale(number, factor, value)) {
    case ScaleFault::none:
      return value;
    case ScaleFault::overflow:
      return fail(ErrorKind::usage, fmt::format("'{}' is too large", printable(text)));
    case ScaleFault::underflow:
      break;
  }
  return fail(ErrorKind::usage, fmt::format("'{}' is less than one", printable(text)));
}

tl::unexpected<Error> bad_size(std::string_view text) {
  return fail(ErrorKind::usage, fmt::format("'{}' is not a size; write for instance 65536, 64KiB, 4MiB or 1GB", printable(text)));
}

tl::unexpected<Error> bad_rate(std::string_view text) {
  return fail(ErrorKind::usage,
              fmt::format("'{}' is not a rate; write it with its unit, for instance 10Gb/s or 800MB/s", printable(text)));
}

constexpr std::array<const char*, 7> decimal_units{"B", "kB", "MB", "GB", "TB", "PB", "EB"};

std::string format_decimal(double value, std::string_view suffix) {
  size_t unit = 0;
  // The limits are where rounding would print 1000: below 100 one decimal is shown, from there none.
  while (value >= 999.5 && unit + 1 < decimal_units.size()) {
    value /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : 1;
  return fmt::format("{:.{}f} {}{}", value, decimals, decimal_units[unit], suffix);
}

}  // namespace

Result<uint64_t> parse_size_bytes(std::string_view text) {
  const std::optional<Number> number = split_number(text);
  if (!number) return bad_size(text);
  std::string_view unit = number->unit;
  Prefix prefix = take_prefix(unit);
  if (unit.empty()) prefix.binary = true;  // a letter alone is binary, as rsync and rclone have it
  if (!unit.empty() && unit != "B") return bad_size(text);
  return scaled(text, *number, prefix.factor());
}

Result<uint64_t> parse_rate_bits_per_s(std::string_view text) {
  const std::optional<Number> number = split_number(text);
  if (!number) return bad_rate(text);
  std::string_view unit = number->unit;
  const Prefix prefix = take_prefix(unit);
  uint64_t bits = 0;
  if (unit == "b/s" || unit == "bit/s" || unit == "bps") bits = 1;
  if (unit == "B/s") bits = 8;
  if (bits == 0) return bad_rate(text);
  return scaled(text, *number, prefix.factor() * bits);  // at most 2^60 * 8
}

Result<uint64_t> parse_age_s(std::string_view text) {
  const auto wrong = [&] {
    return fail(ErrorKind::usage,
                fmt::format("'{}' is not an age; write it with its unit, for instance 30m, 24h or 7d", printable(text)));
  };
  const std::optional<Number> number = split_number(text);
  if (!number || number->unit.size() != 1) return wrong();
  uint64_t seconds = 0;
  if (number->unit == "s") seconds = 1;
  if (number->unit == "m") seconds = 60;
  if (number->unit == "h") seconds = 3600;
  if (number->unit == "d") seconds = 86400;
  if (seconds == 0) return wrong();
  return scaled(text, *number, seconds);
}

std::string format_bytes(uint64_t bytes) { return format_decimal(static_cast<double>(bytes), ""); }

std::string format_rate(double bytes_per_s) {
  return format_decimal(std::isfinite(bytes_per_s) && bytes_per_s > 0 ? bytes_per_s : 0.0, "/s");
}

std::string format_link_rate(uint64_t bits_per_s) {
  struct Unit {
    uint64_t bits;
    const char* name;
  };
  for (const Unit unit : {Unit{1'000'000'000, "Gb/s"}, Unit{1'000'000, "Mb/s"}, Unit{1'000, "kb/s"}}) {
    if (bits_per_s % unit.bits == 0) return fmt::format("{}{}", bits_per_s / unit.bits, unit.name);
  }
  return fmt::format("{}b/s", bits_per_s);
}

}  // namespace ccixfer
