#include "app/filter/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.h"
#include "core/wire/cursor.h"

namespace ccixfer::filter {
namespace {

constexpr uint8_t bit_ends_with_zero = 1;
constexpr uint8_t bit_delete_excluded = 2;

bool same_merge(const Rule& a, const std::string& file) { return a.is(rule_merge) && a.pattern() == file; }

}  // namespace

bool Rules::asks_for_parents() const {
  return std::any_of(list.begin(), list.end(), [](const Rule& rule) { return rule.is(rule_parents); });
}

std::vector<std::byte> encode(const Rules& rules) {
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  const int bits = (rules.ends_with_zero ? bit_ends_with_zero : 0) | (rules.delete_excluded ? bit_delete_excluded : 0);
  out.u8(static_cast<uint8_t>(bits));
  for (const Rule& rule : rules.list) {
    out.u16(rule.flags());
    out.text16(rule.pattern());
  }
  return bytes;
}

std::optional<Rules> decode_rules(Bytes bytes) {
  wire::Reader in(bytes);
  in.require(bytes.size() <= rules_bytes_max);
  Rules rules;
  const uint8_t bits = in.u8();
  in.require((bits & ~(bit_ends_with_zero | bit_delete_excluded)) == 0);
  rules.ends_with_zero = (bits & bit_ends_with_zero) != 0;
  rules.delete_excluded = (bits & bit_delete_excluded) != 0;
  while (in.ok() && !in.done()) {
    const uint16_t flags = in.u16();
    std::string pattern(in.text16(pattern_bytes_max));
    in.require((flags & ~rule_flags_known) == 0 && !pattern.empty() && pattern.find('\0') == std::string::npos);
    const bool is_path = pattern.find('/') != std::string::npos || pattern == "." || pattern == "..";
    in.require((flags & rule_merge) == 0 || !is_path);
    if (in.ok()) rules.list.emplace_back(flags, std::move(pattern));
  }
  if (!in.ok()) return std::nullopt;
  return rules;
}

RulesBuilder::RulesBuilder(ReadFile read, bool ends_with_zero, bool delete_excluded) : read_(std::move(read)) {
  rules_.ends_with_zero = ends_with_zero;
  rules_.delete_excluded = delete_excluded;
}

Template RulesBuilder::outermost(bool include, bool old_prefixes) const {
  return {include ? uint16_t{rule_include} : uint16_t{0}, old_prefixes, rules_.ends_with_zero, rules_.delete_excluded};
}

Result<void> RulesBuilder::add_pattern(const std::string& text, bool include) {
  return parse_rule(text, outermost(include, true), include ? "--include" : "--exclude", *this);
}
Result<void> RulesBuilder::add_filter(const std::string& text) {
  return parse_rule(text, outermost(false, false), "--filter", *this);
}
Result<void> RulesBuilder::add_patterns_of(const std::string& file, bool include) {
  return add_file(file, outermost(include, true), include ? "--include-from" : "--exclude-from");
}

Result<void> RulesBuilder::add_file(const std::string& file, const Template& inherited, const std::string& where) {
  const Result<std::string> text = read_(file);
  if (!text && text.error().kind != ErrorKind::usage) return tl::unexpected<Error>(text.error());
  if (!text) return fail(ErrorKind::usage, fmt::format("bad filter: {}: {}", printable(where), text.error().message));
  return parse_lines(*text, inherited, file, *this);
}

Result<void> RulesBuilder::on_merge(const std::string& file, const Template& inherited, const std::string& where) {
  if (nested_ >= merges_nested_max)
    return fail(ErrorKind::usage, fmt::format("bad filter: {}: files of rules name one another too deeply", printable(where)));
  ++nested_;
  auto added = add_file(file, inherited, where);
  --nested_;
  return added;
}

void RulesBuilder::on_rule(uint16_t flags, std::string pattern) {
  // What the modifier e excludes too, which the parser gives no side: rsync keeps it for the sender as any other exclusion of the
  // command line. In a file of the tree it stands for both sides there.
  if (rules_.delete_excluded && (flags & (rule_sides | rule_merge)) == 0) flags |= rule_sender;
  const bool is_known = (flags & rule_merge) != 0 && std::any_of(rules_.list.begin(), rules_.list.end(),
                                                                 [&](const Rule& rule) { return same_merge(rule, pattern); });
  if (!is_known) rules_.list.emplace_back(flags, std::move(pattern));
}

}  // namespace ccixfer::filter
