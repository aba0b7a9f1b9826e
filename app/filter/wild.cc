#include "app/filter/wild.h"

#include <array>
#include <utility>

namespace ccixfer::filter {
namespace {

bool is_lower(uint8_t c) { return c >= 'a' && c <= 'z'; }
bool is_upper(uint8_t c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }
bool is_alpha(uint8_t c) { return is_lower(c) || is_upper(c); }
bool is_graph(uint8_t c) { return c > ' ' && c < 0x7f; }

// Of the "C" locale, whatever the user's: the result must not depend on the side that compares.
constexpr std::array<std::pair<std::string_view, bool (*)(uint8_t)>, 12> classes{{
    {"alnum", [](uint8_t c) { return is_alpha(c) || is_digit(c); }},
    {"alpha", is_alpha},
    {"blank", [](uint8_t c) { return c == ' ' || c == '\t'; }},
    {"cntrl", [](uint8_t c) { return c < ' ' || c == 0x7f; }},
    {"digit", is_digit},
    {"graph", is_graph},
    {"lower", is_lower},
    {"print", [](uint8_t c) { return c >= ' ' && c < 0x7f; }},
    {"punct", [](uint8_t c) { return is_graph(c) && !is_alpha(c) && !is_digit(c); }},
    {"space", [](uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }},
    {"upper", is_upper},
    {"xdigit", [](uint8_t c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }},
}};

}  // namespace

bool is_wild(std::string_view pattern) { return pattern.find_first_of("*?[") != std::string_view::npos; }

Wild::Wild(std::string_view pattern) : is_plain_(!is_wild(pattern)) {
  if (is_plain_) {
    plain_ = pattern;
    return;
  }
  size_t at = 0;
  while (at < pattern.size()) {
    const char c = pattern[at++];
    if (c == '?') {
      tokens_.push_back({Kind::any});
    } else if (c == '*') {
      const bool several = at < pattern.size() && pattern[at] == '*';
      while (at < pattern.size() && pattern[at] == '*') ++at;
      tokens_.push_back({several ? Kind::stars : Kind::star});
    } else if (c == '[') {
      at = add_set(pattern, at);
    } else if (c != '\\') {
      tokens_.push_back({Kind::byte, static_cast<uint8_t>(c)});
    } else if (at < pattern.size()) {
      tokens_.push_back({Kind::byte, static_cast<uint8_t>(pattern[at++])});
    } else {
      tokens_.push_back({Kind::nothing});
    }
  }
}

size_t Wild::add_set(std::string_view pattern, size_t at) {
  const auto byte_at = [&](size_t index) { return static_cast<uint8_t>(index < pattern.size() ? pattern[index] : '\0'); };
  const auto malformed = [&] {
    tokens_.push_back({Kind::nothing});
    return pattern.size();
  };
  const bool inverted = byte_at(at) == '!' || byte_at(at) == '^';
  if (inverted) ++at;
  Set set;
  uint8_t before = 0;  // 0: no range can begin with what was read last
  bool first = true;   // a `]` there is one of the set
  for (;;) {
    if (at >= pattern.size()) return malformed();
    uint8_t c = byte_at(at);
    if (c == ']' && !first) break;
    first = false;
    if (c == '\\') {
      if (++at >= pattern.size()) return malformed();
      before = byte_at(at++);
      set.set(before);
    } else if (c == '-' && before != 0 && at + 1 < pattern.size() && byte_at(at + 1) != ']') {
      c = byte_at(++at);
      if (c == '\\') {
        if (++at >= pattern.size()) return malformed();
        c = byte_at(at);
      }
      for (unsigned member = before; member <= c; ++member) set.set(member);
      before = 0;
      ++at;
    } else if (c == '[' && byte_at(at + 1) == ':') {
      const size_t end = pattern.find(']', at + 2);
      if (end == std::string_view::npos) return malformed();
      if (end == at + 2 || pattern[end - 1] != ':') {  // a bracket like any other byte
        set.set('[');
        before = '[';
        ++at;
        continue;
      }
      const std::string_view name = pattern.substr(at + 2, end - 1 - (at + 2));
      const auto* known = classes.begin();
      while (known != classes.end() && known->first != name) ++known;
      if (known == classes.end()) return malformed();
      for (unsigned member = 0; member < set.size(); ++member) {
        if (known->second(static_cast<uint8_t>(member))) set.set(member);
      }
      before = 0;
      at = end + 1;
    } else {
      set.set(c);
      before = c;
      ++at;
    }
  }
  if (inverted) set.flip();
  set.reset('/');
  tokens_.push_back({Kind::set, 0, static_cast<uint32_t>(sets_.size())});
  sets_.push_back(set);
  return at + 1;
}

bool Wild::takes(const Token& token, uint8_t byte) const {
  switch (token.kind) {
    case Kind::byte:
      return byte == token.byte;
    case Kind::any:
    case Kind::star:
      return byte != '/';
    case Kind::set:
      return sets_[token.set].test(byte);
    case Kind::stars:
      return true;
    case Kind::nothing:
      break;
  }
  return false;
}

bool Wild::matches(std::string_view text) const { return is_plain_ ? text == plain_ : run(text, false); }

bool Wild::matches_an_end(std::string_view text) const {
  if (!is_plain_) return run(text, true);
  if (!text.ends_with(plain_)) return false;
  return text.size() == plain_.size() || text[text.size() - plain_.size() - 1] == '/';
}

// Follows all ways through the pattern at once: at[i] says that the tokens before i match what was read, from the beginning or
// from behind a slash on.
bool Wild::run(std::string_view text, bool begins_anywhere) const {
  const size_t count = tokens_.size();
  const auto is_star = [this](size_t i) { return tokens_[i].kind == Kind::star || tokens_[i].kind == Kind::stars; };
  std::vector<uint8_t> at(count + 1), next(count + 1);
  const auto begin = [&](std::vector<uint8_t>& ways) {
    ways[0] = 1;
    for (size_t i = 0; i < count && is_star(i); ++i) ways[i + 1] = 1;
  };
  begin(at);
  for (const char c : text) {
    std::fill(next.begin(), next.end(), uint8_t{0});
    bool alive = false;
    for (size_t i = 0; i < count; ++i) {
      if (at[i] != 0 && takes(tokens_[i], static_cast<uint8_t>(c))) {
        next[is_star(i) ? i : i + 1] = 1;
        alive = true;
      }
      if (next[i] != 0 && is_star(i)) next[i + 1] = 1;
    }
    if (begins_anywhere && c == '/') begin(next);
    if (!alive && !begins_anywhere) return false;
    at.swap(next);
  }
  return at[count] != 0;
}

}  // namespace ccixfer::filter
