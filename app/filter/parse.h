// Rules from text, in the words of rsync's manual (FILTER RULES).
// In: one rule, or the text of a file of them. Out: a Collector hears of each in order.
// Errors: ErrorKind::usage, with where the rule stands and what is wrong with it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "app/filter/rule.h"
#include "core/base/result.h"

namespace ccixfer::filter {

inline constexpr uint32_t merges_nested_max = 16;
inline constexpr size_t rules_file_bytes_max = 1u << 20;
inline constexpr size_t rules_read_max = 100'000;  // that hold at a time, of files in the tree

// What the rules of a text inherit from whatever named it.
struct Template {
  uint16_t flags = 0;            // of RuleFlag
  bool old_prefixes = false;     // of --exclude and --include: only `+ `, `- ` and `!`
  bool ends_with_zero = false;   // lines do (--from0)
  bool delete_excluded = false;  // what says of no side whom it is for is for the sender only
  bool hides_text = false;       // an error says the file and the line only: whoever named the file may not read it
};

class Collector {
 public:
  virtual ~Collector() = default;
  virtual void on_rule(uint16_t flags, std::string pattern) = 0;
  virtual void on_clear() = 0;  // all rules before go
  // The rules of that file stand here. `where`: who says so.
  [[nodiscard]] virtual Result<void> on_merge(const std::string& file, const Template& inherited, const std::string& where) = 0;
};

// `where`: what an error names, such as `--filter` or a file.
[[nodiscard]] Result<void> parse_rule(std::string_view text, const Template& inherited, const std::string& where, Collector& to);
[[nodiscard]] Result<void> parse_lines(std::string_view text, const Template& inherited, const std::string& file, Collector& to);

}  // namespace ccixfer::filter
