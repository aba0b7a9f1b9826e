// All rules of a command, in the order in which they are asked: the first one that matches decides.
// RulesBuilder makes them of what the command line says; they travel to the other side as bytes.
// Errors: ErrorKind::usage with file and line. decode: nullopt for bytes that are no rules; they may be
// a peer's.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/filter/parse.h"
#include "app/filter/rule.h"
#include "core/base/bytes.h"
#include "core/base/result.h"

namespace ccixfer::filter {

inline constexpr size_t rules_bytes_max = 24u << 10;  // encoded: they travel in an Open

struct Rules {
  std::vector<Rule> list;
  bool ends_with_zero = false;   // lines of files of rules do
  bool delete_excluded = false;  // see Template
  // Of the directories above the first one, for the rules that ask for them: which rule, and in what file. Not sent.
  struct Above {
    std::string file;       // rule_merge's pattern
    std::string directory;  // as of Rule::below
    std::string text;
  };
  std::vector<Above> above = {};  // from the root downwards
  [[nodiscard]] bool empty() const { return list.empty(); }
  [[nodiscard]] bool asks_for_parents() const;
};

[[nodiscard]] std::vector<std::byte> encode(const Rules& rules);
[[nodiscard]] std::optional<Rules> decode_rules(Bytes bytes);

class RulesBuilder final : private Collector {
 public:
  using ReadFile = std::function<Result<std::string>(const std::string& path)>;
  // `read` gives the text of a file that a rule or an option names, or says why not.
  RulesBuilder(ReadFile read, bool ends_with_zero, bool delete_excluded);
  [[nodiscard]] Result<void> add_pattern(const std::string& text, bool include);  // --exclude, --include
  [[nodiscard]] Result<void> add_patterns_of(const std::string& file, bool include);
  [[nodiscard]] Result<void> add_filter(const std::string& text);
  [[nodiscard]] Rules take() { return std::move(rules_); }

 private:
  [[nodiscard]] Template outermost(bool include, bool old_prefixes) const;
  [[nodiscard]] Result<void> add_file(const std::string& file, const Template& inherited, const std::string& where);
  void on_rule(uint16_t flags, std::string pattern) override;
  void on_clear() override { rules_.list.clear(); }
  [[nodiscard]] Result<void> on_merge(const std::string& file, const Template& inherited, const std::string& where) override;

  const ReadFile read_;
  Rules rules_;
  uint32_t nested_ = 0;
};

}  // namespace ccixfer::filter
