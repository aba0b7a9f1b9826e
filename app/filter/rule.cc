#include "app/filter/rule.h"

#include <algorithm>

namespace ccixfer::filter {
namespace {

// The last `count` components; nothing: there are not so many.
bool last_components(std::string_view& text, size_t count) {
  size_t at = text.size();
  while (count > 0) {
    const size_t slash = at == 0 ? std::string_view::npos : text.rfind('/', at - 1);
    --count;
    if (slash == std::string_view::npos) {
      if (count > 0) return false;
      return true;
    }
    at = slash;
  }
  text.remove_prefix(at + 1);
  return true;
}

}  // namespace

Rule::Rule(uint16_t flags, std::string pattern) : flags_(flags), pattern_(std::move(pattern)) {
  if (is(rule_merge)) return;
  std::string_view text = pattern_;
  slashes_ = static_cast<size_t>(std::count(text.begin(), text.end(), '/'));
  has_stars_ = text.find("**") != std::string_view::npos;
  begins_with_stars_ = text.starts_with("**");
  ends_with_three_ = has_stars_ && text.ends_with("***");
  is_anchored_ = text.starts_with('/');
  if (is_anchored_) text.remove_prefix(1);
  wild_ = Wild(text);
}

Rule::Rule(uint16_t flags, std::string pattern, std::string below) : Rule(flags, std::move(pattern)) {
  below_ = std::move(below);
  is_placed_ = is_anchored_ && !is(rule_merge) && !is(rule_absolute);
}

bool Rule::matches(std::string_view name, bool is_directory, std::string_view absolute) const {
  return finds(name, is_directory, absolute) != is(rule_negate);
}

bool Rule::finds(std::string_view name, bool is_directory, std::string_view absolute) const {
  if (is(rule_directory) && !is_directory) return false;
  std::string whole;
  std::string_view text = name;
  if (slashes_ == 0 && !has_stars_) {
    text = name.substr(name.rfind('/') + 1);
  } else if ((is(rule_absolute) || is_placed_) && !absolute.empty()) {
    whole.append(absolute).append("/").append(name);
    text = whole;
  } else if (begins_with_stars_) {  // `**/` matches at the beginning too
    whole.append("/").append(name);
    text = whole;
  }
  if (is_directory && ends_with_three_) {  // `/***` matches the directory too
    if (whole.empty()) whole = text;
    whole += '/';
    text = whole;
  }
  if (is_placed_ && !below_.empty()) {
    if (text.size() <= below_.size() || !text.starts_with(below_) || text[below_.size()] != '/') return false;
    text.remove_prefix(below_.size() + 1);
  }
  if (!is_anchored_ && slashes_ > 0 && !has_stars_) return last_components(text, slashes_ + 1) && wild_.matches(text);
  const bool is_whole = is_anchored_ || !has_stars_ || begins_with_stars_;
  return is_whole ? wild_.matches(text) : wild_.matches_an_end(text);
}

}  // namespace ccixfer::filter
