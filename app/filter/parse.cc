#include "app/filter/parse.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "core/base/units.h"

namespace ccixfer::filter {
namespace {

// Of one rule while it is read, beside those of RuleFlag.
constexpr uint32_t is_clear = 1u << 16;
constexpr uint32_t is_merge_now = 1u << 17;
constexpr uint32_t excludes_itself = 1u << 18;
constexpr uint16_t inherited_flags = rule_absolute | rule_include | rule_perishable;

struct Word {
  std::string_view name;
  char letter;
};
constexpr std::array words{Word{"clear", '!'},   Word{"dir-merge", ':'}, Word{"exclude", '-'},
                           Word{"hide", 'H'},    Word{"include", '+'},   Word{"merge", '.'},
                           Word{"protect", 'P'}, Word{"risk", 'R'},      Word{"show", 'S'}};

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

tl::unexpected<Error> wrong(const std::string& where, std::string_view text, std::string_view what) {
  return fail(ErrorKind::usage, fmt::format("bad filter rule: {}: {}: {}", printable(where), printable(text), what));
}

struct Head {
  uint32_t flags = 0;
  size_t bytes = 0;  // of the text, before the pattern
  const char* problem = nullptr;
};

// Which rule the text begins with. `at` is behind its letter or word, on a comma or the first modifier.
struct Kind {
  char letter = 0;
  size_t at = 0;
};
Kind kind_of(std::string_view text) {
  for (const Word& word : words) {
    if (!text.starts_with(word.name)) continue;
    const char next = word.name.size() < text.size() ? text[word.name.size()] : '\0';
    if (next != '\0' && next != ' ' && next != '_' && next != ',') break;
    return {word.letter, word.name.size() + (next == ',' ? 1 : 0)};
  }
  return {text.front(), text.size() > 1 && text[1] == ',' ? size_t{2} : size_t{1}};
}

uint32_t flags_of_kind(char letter) {
  switch (letter) {
    case ':':
      return rule_merge;
    case '.':
      return is_merge_now;
    case '+':
      return rule_include;
    case 'S':
      return rule_include | rule_sender;
    case 'H':
      return rule_sender;
    case 'R':
      return rule_include | rule_receiver;
    case 'P':
      return rule_receiver;
    case '!':
      return is_clear;
    default:
      return 0;
  }
}

// What a modifier adds; nullopt: it does not go with the rule.
std::optional<uint32_t> modifier(char c, uint32_t flags, bool names_side) {
  const bool merges = (flags & (rule_merge | is_merge_now)) != 0;
  const auto only = [](bool condition, uint32_t flag) { return condition ? std::optional<uint32_t>(flag) : std::nullopt; };
  switch (c) {
    case '-':
      return only(merges && (flags & rule_no_prefixes) == 0, rule_no_prefixes);
    case '+':
      return only(merges && (flags & rule_no_prefixes) == 0, rule_no_prefixes | rule_include);
    case '/':
      return rule_absolute;
    case '!':
      return only(!merges, rule_negate);
    case 'e':
      return only(merges, excludes_itself);
    case 'n':
      return only(merges, rule_no_inherit);
    case 'w':
      return only(merges, rule_word_split);
    case 'p':
      return rule_perishable;
    case 'r':
      return only(!names_side, rule_receiver);
    case 's':
      return only(!names_side, rule_sender);
    default:
      return std::nullopt;
  }
}

Head read_head(std::string_view text, const Template& inherited) {
  Head head;
  head.flags = inherited.flags & inherited_flags;
  if ((inherited.flags & rule_no_prefixes) != 0) return head;
  if (inherited.old_prefixes) {
    if (text.starts_with("- ") || text.starts_with("+ ")) {
      head.flags = (head.flags & ~uint32_t{rule_include}) | (text.front() == '+' ? uint32_t{rule_include} : 0u);
      head.bytes = 2;
    } else if (text == "!") {
      head.flags |= is_clear;
      head.bytes = 1;
    }
    return head;
  }
  const Kind kind = kind_of(text);
  if (std::string_view(":.+-SHRP!").find(kind.letter) == std::string_view::npos) {
    head.problem = "no such rule: see FILTER RULES in man rsync";
    return head;
  }
  head.flags |= flags_of_kind(kind.letter);
  const bool names_side = std::string_view("SHRP").find(kind.letter) != std::string_view::npos;
  size_t at = kind.at;
  const bool splits = (inherited.flags & rule_word_split) != 0;
  while (kind.letter != '!' && at < text.size() && text[at] != ' ' && text[at] != '_') {
    if (splits && is_space(text[at])) break;
    const auto added = modifier(text[at], head.flags, names_side);
    if (!added) {
      head.problem =
          text[at] == 'C' || text[at] == 'x' ? "this modifier is not in this version" : "a modifier that does not go with it";
      return head;
    }
    head.flags |= *added;
    ++at;
  }
  if (at < text.size() && kind.letter != '!') ++at;
  head.bytes = at;
  return head;
}

// The rule at the beginning of the text; it takes its part of the text away.
Result<void> take_rule(std::string_view& text, const Template& inherited, const std::string& where, Collector& to) {
  const std::string_view whole = inherited.hides_text ? std::string_view("a rule") : text;
  Head head = read_head(text, inherited);
  if (head.problem != nullptr) return wrong(where, whole, head.problem);
  if ((inherited.flags & rule_sides) != 0) {
    if ((head.flags & rule_sides) != 0)
      return wrong(where, whole, "it names a side, and the file that it stands in has one already");
    head.flags |= inherited.flags & rule_sides;
  }
  text.remove_prefix(head.bytes);
  size_t end = text.size();
  if ((inherited.flags & rule_word_split) != 0) {
    end = 0;
    while (end < text.size() && !is_space(text[end])) ++end;
  }
  std::string_view pattern = text.substr(0, end);
  text.remove_prefix(end);
  if ((head.flags & is_clear) != 0) {
    if (!pattern.empty()) return wrong(where, whole, "nothing stands behind a '!'");
    to.on_clear();
    return {};
  }
  if (pattern.empty()) return wrong(where, whole, "a pattern or a file is missing");
  if (pattern.size() > pattern_bytes_max) return wrong(where, "the pattern", "it is too long");
  auto flags = static_cast<uint16_t>(head.flags & rule_flags_known);
  const bool merges = (head.flags & (rule_merge | is_merge_now)) != 0;
  if (inherited.delete_excluded && !merges && (flags & rule_sides) == 0) flags |= rule_sender;
  if (!merges) {
    if (pattern.size() > 1 && pattern.back() == '/') {
      pattern.remove_suffix(1);
      flags |= rule_directory;
    }
    to.on_rule(flags, std::string(pattern));
    return {};
  }
  if ((head.flags & excludes_itself) != 0) to.on_rule(0, std::string(pattern.substr(pattern.rfind('/') + 1)));
  if ((head.flags & is_merge_now) != 0) {
    Template inner = inherited;
    inner.flags = flags;
    inner.old_prefixes = false;
    return to.on_merge(std::string(pattern), inner, where);
  }
  if (pattern.front() == '/') {
    flags |= rule_parents;
    pattern.remove_prefix(1);
  }
  if (pattern.empty() || pattern.find('/') != std::string_view::npos || pattern == "." || pattern == "..")
    return wrong(where, whole, "a file that is looked for in each directory is named without a directory");
  to.on_rule(flags, std::string(pattern));
  return {};
}

}  // namespace

Result<void> parse_rule(std::string_view text, const Template& inherited, const std::string& where, Collector& to) {
  const bool splits = (inherited.flags & rule_word_split) != 0;
  for (;;) {
    while (splits && !text.empty() && is_space(text.front())) text.remove_prefix(1);
    if (text.empty()) return {};
    if (auto taken = take_rule(text, inherited, where, to); !taken) return taken;
    if (!splits) return {};
  }
}

Result<void> parse_lines(std::string_view text, const Template& inherited, const std::string& file, Collector& to) {
  const bool splits = (inherited.flags & rule_word_split) != 0;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = inherited.ends_with_zero ? text.find('\0') : text.find_first_of("\n\r");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (line.empty() || (!splits && (line.front() == ';' || line.front() == '#'))) continue;
    if (line.find('\0') != std::string_view::npos)
      return wrong(fmt::format("{} line {}", file, number), "a zero byte", "no name has one");
    if (auto parsed = parse_rule(line, inherited, fmt::format("{} line {}", file, number), to); !parsed) return parsed;
  }
  return {};
}

}  // namespace ccixfer::filter
