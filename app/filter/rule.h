// One rule of a filter: which names it is about, and what it says of them. Names are bytes, relative to
// what the transfer begins with.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "app/filter/wild.h"

namespace ccixfer::filter {

// They travel as they are.
enum RuleFlag : uint16_t {
  rule_include = 1u << 0,      // else: exclude
  rule_directory = 1u << 1,    // directories only
  rule_negate = 1u << 2,       // what does not match
  rule_absolute = 1u << 3,     // compared with the absolute path
  rule_perishable = 1u << 4,   // of no account in a directory that is deleted
  rule_sender = 1u << 5,       // what is sent ...
  rule_receiver = 1u << 6,     // ... what may be deleted; neither: both
  rule_merge = 1u << 7,        // the pattern names a file of rules in each directory
  rule_no_inherit = 1u << 8,   // of a merge: not for the directories below
  rule_no_prefixes = 1u << 9,  // of a merge: its lines are patterns
  rule_word_split = 1u << 10,  // of a merge: a rule ends at white space too
  rule_parents = 1u << 11,     // of a merge: the directories above the first one are searched too
};
inline constexpr uint16_t rule_sides = rule_sender | rule_receiver;
inline constexpr uint16_t rule_flags_known = (1u << 12) - 1;
inline constexpr size_t pattern_bytes_max = 4095;

class Rule {
 public:
  // `pattern` as it was written, without a slash behind. `below`: where a pattern that begins with a slash was written, as an
  // absolute path without a slash in front or behind; it begins there.
  Rule(uint16_t flags, std::string pattern);
  Rule(uint16_t flags, std::string pattern, std::string below);

  [[nodiscard]] bool is(RuleFlag flag) const { return (flags_ & flag) != 0; }
  [[nodiscard]] uint16_t flags() const { return flags_; }
  [[nodiscard]] const std::string& pattern() const { return pattern_; }
  // `absolute`: what names are relative to, as of `below`; "": nothing is above.
  [[nodiscard]] bool matches(std::string_view name, bool is_directory, std::string_view absolute) const;

 private:
  [[nodiscard]] bool finds(std::string_view name, bool is_directory, std::string_view absolute) const;

  uint16_t flags_;
  std::string pattern_;
  std::string below_;
  bool is_placed_ = false;  // it begins at below_
  bool is_anchored_ = false;
  bool has_stars_ = false;  // two or more in a row
  bool begins_with_stars_ = false, ends_with_three_ = false;
  size_t slashes_ = 0;
  Wild wild_;
};

}  // namespace ccixfer::filter
