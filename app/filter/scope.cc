#include "app/filter/scope.h"

#include <fmt/format.h>

#include "core/base/units.h"

namespace ccixfer::filter {
namespace {

constexpr const char* too_many = "more than 100,000 rules hold here";

}  // namespace

// Makes a Local of what a file says.
class Scope::Gatherer final : public Collector {
 public:
  Gatherer(Scope& scope, Local& into, const std::string& directory, const Read& read)
      : scope_(scope), into_(into), directory_(directory), read_(read) {}
  void on_rule(uint16_t flags, std::string pattern) override {
    if (scope_.held_ > rules_read_max) return;
    ++scope_.held_;
    if ((flags & rule_merge) == 0) {
      into_.rules.push_back({Rule(flags, std::move(pattern), directory_)});
      return;
    }
    const auto merge = scope_.add_merge(flags, pattern);
    if (merge) into_.rules.push_back({Rule(flags, std::move(pattern)), *merge});
  }
  void on_clear() override {
    into_.rules.clear();
    into_.outer.reset();
  }
  [[nodiscard]] Result<void> on_merge(const std::string& file, const Template& inherited, const std::string& where) override {
    const auto wrong = [&](std::string_view what) {
      const std::string shown = inherited.hides_text ? "the file that it names" : printable(file);
      return fail(ErrorKind::usage, fmt::format("bad filter rule: {}: {}: {}", printable(where), shown, what));
    };
    if (scope_.held_ > rules_read_max) return wrong(too_many);
    if (file.find('/') != std::string::npos || file == "." || file == "..") return wrong("name a file of the same directory");
    if (nested_ >= merges_nested_max) return wrong("files of rules name one another too deeply");
    auto text = read_(file);
    if (!text) return tl::unexpected<Error>(text.error());
    if (!*text) return wrong("there is no such file");
    ++nested_;
    auto parsed = parse_lines(**text, inherited, "/" + directory_ + "/" + file, *this);
    --nested_;
    return parsed;
  }

 private:
  Scope& scope_;
  Local& into_;
  const std::string& directory_;
  const Read& read_;
  uint32_t nested_ = 0;
};

Scope::Scope(Rules rules, Side side)
    : rules_(std::move(rules)), other_side_(side == Side::sender ? rule_receiver : rule_sender), levels_(1) {
  for (const Rule& rule : rules_.list) {
    if (!rule.is(rule_merge)) {
      base_.push_back({rule});
    } else if (const auto merge = add_merge(rule.flags(), rule.pattern())) {
      base_.push_back({rule, *merge});
    }
  }
}

std::optional<size_t> Scope::add_merge(uint16_t flags, const std::string& file) {
  for (const Merge& merge : merges_) {
    if (merge.file == file) return std::nullopt;  // one list for each name, at its first place
  }
  merges_.push_back({file, flags});
  return merges_.size() - 1;
}

std::string Scope::absolute_of(std::string_view directory) const {
  std::string path = absolute_;
  if (!path.empty() && !directory.empty()) path += '/';
  path += directory;
  return path;
}

Result<void> Scope::begin(std::string absolute) {
  absolute_ = std::move(absolute);
  levels_.assign(1, {});
  held_ = 0;
  Level& first = levels_.front();
  first.lists.resize(merges_.size());
  const Read none = [](const std::string&) { return Result<std::optional<std::string>>(std::nullopt); };
  for (const Rules::Above& above : rules_.above) {
    for (size_t i = 0; i < merges_.size(); ++i) {
      if (merges_[i].file != above.file || (merges_[i].flags & rule_parents) == 0) continue;
      if (auto done = gather(first, i, above.text, above.directory, "/" + above.directory + "/" + above.file, none); !done)
        return done;
    }
  }
  return {};
}

Result<void> Scope::gather(Level& level, size_t merge, std::string_view text, const std::string& directory, const std::string& file,
                           const Read& read) {
  Local local;
  if ((merges_[merge].flags & rule_no_inherit) == 0 && merge < level.lists.size()) local.outer = level.lists[merge];
  Gatherer gatherer(*this, local, directory, read);
  Template inherited;
  inherited.flags = static_cast<uint16_t>(merges_[merge].flags & ~(rule_merge | rule_parents));
  inherited.ends_with_zero = rules_.ends_with_zero;
  inherited.delete_excluded = rules_.delete_excluded;
  inherited.hides_text = other_side_ == rule_sender;
  if (auto parsed = parse_lines(text, inherited, file, gatherer); !parsed) return parsed;
  if (held_ > rules_read_max) return fail(ErrorKind::usage, fmt::format("bad filter: {}: {}", printable(file), too_many));
  if (level.lists.size() <= merge) level.lists.resize(merge + 1);
  level.lists[merge] = std::make_shared<const Local>(std::move(local));
  return {};
}

Result<void> Scope::enter(std::string_view directory, const Read& read) {
  Level level;
  level.lists = levels_.back().lists;
  level.merges = merges_.size();
  level.held = held_;
  levels_.push_back(std::move(level));
  if (merges_.empty()) return {};
  const std::string here = absolute_of(directory);
  Level& now = levels_.back();
  for (size_t i = 0; i < merges_.size(); ++i) {  // a file may add some
    if ((merges_[i].flags & rule_no_inherit) != 0 && i < now.lists.size()) now.lists[i].reset();
    const std::string file = merges_[i].file;
    auto text = read(file);
    if (!text) return tl::unexpected<Error>(text.error());
    if (!*text) continue;
    if (auto gathered = gather(now, i, **text, here, "/" + here + (here.empty() ? "" : "/") + file, read); !gathered)
      return gathered;
  }
  return {};
}

void Scope::leave() {
  merges_.resize(levels_.back().merges);
  held_ = levels_.back().held;
  levels_.pop_back();
}

Scope::Verdict Scope::ask(const Placed& placed, std::string_view name, bool is_directory, bool lasting_only) const {
  const Rule& rule = placed.rule;
  if (rule.is(rule_merge)) return ask_list(placed.merge, name, is_directory, lasting_only);
  const auto sides = static_cast<uint16_t>(rule.flags() & rule_sides);
  if (sides == other_side_ || (lasting_only && rule.is(rule_perishable))) return Verdict::none;
  if (!rule.matches(name, is_directory, absolute_)) return Verdict::none;
  return rule.is(rule_include) ? Verdict::include : Verdict::exclude;
}

Scope::Verdict Scope::ask_list(size_t merge, std::string_view name, bool is_directory, bool lasting_only) const {
  const auto& lists = levels_.back().lists;
  if (merge >= lists.size()) return Verdict::none;
  for (const Local* local = lists[merge].get(); local != nullptr; local = local->outer.get()) {
    for (const Placed& placed : local->rules) {
      const Verdict verdict = ask(placed, name, is_directory, lasting_only);
      if (verdict != Verdict::none) return verdict;
    }
  }
  return Verdict::none;
}

bool Scope::excludes(std::string_view name, bool is_directory, bool lasting_only) const {
  for (const Placed& placed : base_) {
    const Verdict verdict = ask(placed, name, is_directory, lasting_only);
    if (verdict != Verdict::none) return verdict == Verdict::exclude;
  }
  return false;
}

}  // namespace ccixfer::filter
