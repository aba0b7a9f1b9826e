// `--bwlimit`: one rate, or a timetable such as "08:00,1Gb/s 18:00,off": from each time of the day on, every day, that rate holds
// until the next one. Before the first time of a day the last one of the day before holds. Pure.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace ccixfer::program {

inline constexpr size_t rate_changes_max = 1440;  // one a minute

class RateTable {
 public:
  RateTable() = default;  // no cap
  explicit RateTable(uint64_t bytes_per_s) : entries_{{0, bytes_per_s}} {}
  // usage: a rate without its unit or of zero, a time twice or out of order.
  [[nodiscard]] static Result<RateTable> parse(std::string_view text);
  [[nodiscard]] uint64_t at(unsigned minute_of_day) const;  // bytes a second; 0: no cap
  [[nodiscard]] bool changes() const { return entries_.size() > 1; }

 private:
  struct Entry {
    unsigned minute_of_day = 0;
    uint64_t bytes_per_s = 0;
  };
  std::vector<Entry> entries_ = {};  // ascending
};

}  // namespace ccixfer::program
