// What --stats says at the end of a transfer, in words: files, bytes, rates, and what was left out or failed, and why.
// Pure: values in, lines out.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/report/events.h"

namespace ccixfer::report {

inline constexpr size_t reasons_counted_max = 32;  // of one status; what comes later is counted together

// How many files ended how, by reason.
class FileTally {
 public:
  void count(std::string_view status, std::string_view reason);
  // The most frequent first; equal ones by their words. Those beyond the bound come last, as "other reasons".
  [[nodiscard]] std::vector<std::pair<std::string, uint64_t>> reasons(std::string_view status) const;

 private:
  std::map<std::string, std::map<std::string, uint64_t>, std::less<>> by_status_;
};

[[nodiscard]] std::vector<std::string> statistics(const Done& done, const FileTally& files);

}  // namespace ccixfer::report
