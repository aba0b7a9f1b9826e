// The rules that hold in the directory in hand: those of the command, and those of the files that they
// name in each directory. Whoever walks a tree enters and leaves its directories here.
// Memory: the rules of the directories that are entered and have such a file.
// Errors: ErrorKind::usage for a rule in such a file, with its path and line.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/filter/rules.h"

namespace ccixfer::filter {

enum class Side : uint8_t { sender, receiver };

class Scope {
 public:
  // The text of the file of that name in the directory that is entered; nullopt: there is none.
  using Read = std::function<Result<std::optional<std::string>>(const std::string& name)>;

  Scope(Rules rules, Side side);
  [[nodiscard]] bool is_empty() const { return rules_.empty(); }       // nothing is ever excluded
  [[nodiscard]] bool reads_files() const { return !merges_.empty(); }  // in the directories that are entered
  [[nodiscard]] const Rules& rules() const { return rules_; }
  void set_above(std::vector<Rules::Above> above) { rules_.above = std::move(above); }  // before begin()
  // Names are relative to `absolute` from now on: a path without a slash in front or behind. Nothing is entered.
  [[nodiscard]] Result<void> begin(std::string absolute);
  [[nodiscard]] Result<void> enter(std::string_view directory, const Read& read);  // a name as of excludes(), or ""
  void leave();
  // `lasting_only`: perishable rules do not count.
  [[nodiscard]] bool excludes(std::string_view name, bool is_directory, bool lasting_only = false) const;

 private:
  struct Placed {
    Rule rule;
    size_t merge = 0;  // of a rule_merge: which list
  };
  // The rules of one file, before those of the same name in the directories above.
  struct Local {
    std::vector<Placed> rules;
    std::shared_ptr<const Local> outer;
  };
  struct Merge {
    std::string file;
    uint16_t flags = 0;
  };
  struct Level {
    std::vector<std::shared_ptr<const Local>> lists;  // of merges_[i]; none: no rules
    size_t merges = 0;                                // before this level was entered
    size_t held = 0;                                  // too
  };
  class Gatherer;
  enum class Verdict : uint8_t { none, include, exclude };

  [[nodiscard]] std::string absolute_of(std::string_view directory) const;
  [[nodiscard]] Result<void> gather(Level& level, size_t merge, std::string_view text, const std::string& directory,
                                    const std::string& file, const Read& read);
  [[nodiscard]] std::optional<size_t> add_merge(uint16_t flags, const std::string& file);
  [[nodiscard]] Verdict ask(const Placed& placed, std::string_view name, bool is_directory, bool lasting_only) const;
  [[nodiscard]] Verdict ask_list(size_t merge, std::string_view name, bool is_directory, bool lasting_only) const;

  Rules rules_;
  const uint16_t other_side_;
  std::vector<Placed> base_;
  std::vector<Merge> merges_;
  std::string absolute_;
  size_t held_ = 0;            // rules that were read in the tree and hold, at most rules_read_max
  std::vector<Level> levels_;  // the first one: what holds before anything is entered
};

}  // namespace ccixfer::filter
