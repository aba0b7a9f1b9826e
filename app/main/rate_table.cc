#include "app/main/rate_table.h"

#include <fmt/format.h>

#include <optional>

#include "app/main/wall_clock.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

tl::unexpected<Error> bad(std::string_view text, const char* what_to_do) {
  return fail(ErrorKind::usage, fmt::format("bad value: --bwlimit {}: {}", printable(text), what_to_do));
}

std::optional<uint64_t> parse_rate(std::string_view text) {
  if (text == "off") return 0;
  const auto bits = parse_rate_bits_per_s(text);
  if (!bits || *bits < 8) return std::nullopt;
  return *bits / 8;
}

}  // namespace

Result<RateTable> RateTable::parse(std::string_view text) {
  constexpr const char* one_rate = "give a rate above zero with its unit, such as 800MB/s or 10Gb/s, or off";
  constexpr const char* timetable = "give a timetable as 08:00,1Gb/s 18:00,off: times of the day in order, each with its rate";
  if (text.find_first_of(", ") == std::string_view::npos) {
    const auto rate = parse_rate(text);
    if (!rate) return bad(text, one_rate);
    return RateTable(*rate);
  }
  RateTable table;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    if (entry.empty()) continue;
    const size_t comma = entry.find(',');
    const auto minute = parse_minute_of_day(entry.substr(0, comma));
    if (comma == std::string_view::npos || !minute) return bad(text, timetable);
    const auto rate = parse_rate(entry.substr(comma + 1));
    if (!rate) return bad(text, one_rate);
    const bool in_order = table.entries_.empty() || table.entries_.back().minute_of_day < *minute;
    if (!in_order || table.entries_.size() >= rate_changes_max) return bad(text, timetable);
    table.entries_.push_back({*minute, *rate});
  }
  if (table.entries_.empty()) return bad(text, timetable);
  return table;
}

uint64_t RateTable::at(unsigned minute_of_day) const {
  if (entries_.empty()) return 0;
  uint64_t rate = entries_.back().bytes_per_s;
  for (const Entry& entry : entries_) {
    if (entry.minute_of_day <= minute_of_day) rate = entry.bytes_per_s;
  }
  return rate;
}

}  // namespace ccixfer::program
