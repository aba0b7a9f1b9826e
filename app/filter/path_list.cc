#include "app/filter/path_list.h"

#include <algorithm>

#include "core/base/units.h"
#include "core/wire/cursor.h"

namespace ccixfer::filter {
namespace {

constexpr size_t path_bytes_max = 4096;
constexpr uint8_t flag_whole = 1;
constexpr uint8_t flag_names_top = 2;

// The order of a walk: what is in a directory comes right after it, before what has a longer name.
bool comes_before(std::string_view a, std::string_view b) {
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c); };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return rank(x) < rank(y); });
}

bool is_in(std::string_view path, std::string_view directory) {
  if (directory.empty()) return !path.empty();
  return path.size() > directory.size() && path.starts_with(directory) && path[directory.size()] == '/';
}

}  // namespace

void PathList::add(std::string_view typed) {
  Item item;
  names_top_ = names_top_ || (typed.starts_with("./") && typed.find_first_not_of("./") != std::string_view::npos);
  item.content = typed.ends_with('/') || typed == "." || typed.ends_with("/.");
  while (!typed.empty()) {
    const size_t slash = typed.find('/');
    const std::string_view part = typed.substr(0, slash);
    typed.remove_prefix(slash == std::string_view::npos ? typed.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      const size_t last = item.path.rfind('/');
      item.path.resize(last == std::string::npos ? 0 : last);
      continue;
    }
    if (!item.path.empty()) item.path += '/';
    item.path += part;
  }
  item.content = item.content || item.path.empty();
  items_.push_back(std::move(item));
}

Result<void> PathList::add_lines(std::string_view text, bool ends_with_zero) {
  if (text.size() > path_list_bytes_max) return fail(ErrorKind::usage, "the list of names is too long: at most 256 MiB");
  while (!text.empty()) {
    const size_t end = ends_with_zero ? text.find('\0') : text.find_first_of("\n\r");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.find('\0') != std::string_view::npos)
      return fail(ErrorKind::usage, "the list of names has a zero byte: give -0 if its names end with one");
    add(line);
  }
  return {};
}

void PathList::close() {
  const auto before = [](const Item& a, const Item& b) {
    return comes_before(a.path, b.path) || (a.path == b.path && a.content && !b.content);  // the one that says more is kept
  };
  std::sort(items_.begin(), items_.end(), before);
  const auto same = [](const Item& a, const Item& b) { return a.path == b.path; };
  items_.erase(std::unique(items_.begin(), items_.end(), same), items_.end());
}

size_t PathList::first_not_before(Range in, std::string_view path) const {
  const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(in.begin);
  const auto end = items_.begin() + static_cast<std::ptrdiff_t>(in.end);
  const auto at =
      std::lower_bound(begin, end, path, [](const Item& item, std::string_view p) { return comes_before(item.path, p); });
  return static_cast<size_t>(at - items_.begin());
}

// What is below a path stands together.
size_t PathList::end_of_below(Range in, std::string_view path) const {
  const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(in.begin);
  const auto end = items_.begin() + static_cast<std::ptrdiff_t>(in.end);
  const auto at = std::partition_point(begin, end, [&](const Item& item) { return item.path == path || is_in(item.path, path); });
  return static_cast<size_t>(at - items_.begin());
}

PathList::Child PathList::find(Range in, std::string_view path) const {
  Child child;
  child.name = path.substr(path.rfind('/') + 1);
  child.below.begin = first_not_before(in, path);
  child.below.end = end_of_below({child.below.begin, in.end}, path);
  if (child.below.empty() || items_[child.below.begin].path != path) return child;
  child.listed = true;
  child.content = items_[child.below.begin].content;
  ++child.below.begin;
  return child;
}

PathList::Child PathList::take(Range& in, std::string_view directory) const {
  const std::string_view first = items_[in.begin].path;
  const size_t name_at = directory.empty() ? 0 : directory.size() + 1;
  const std::string_view path = first.substr(0, first.find('/', name_at));
  Child child = find(in, path);
  in.begin = child.below.end;
  return child;
}

bool PathList::allows(std::string_view path, bool is_directory) const {
  const Range everything{0, items_.size()};
  const size_t last = path.rfind('/');
  const std::string_view parent = last == std::string_view::npos ? std::string_view{} : path.substr(0, last);
  const Child child = find(everything, path);
  if (child.listed || (is_directory && !child.below.empty())) return true;
  for (size_t slash = last;; slash = path.rfind('/', slash - 1)) {
    const std::string_view above = slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
    const Child directory = find(everything, above);
    if (directory.listed && whole_) return true;
    if (directory.listed && directory.content && above == parent) return true;
    if (slash == std::string_view::npos || slash == 0) return false;
  }
}

Result<void> PathList::check_travel() const {
  for (const Item& item : items_) {
    if (item.path.size() <= path_bytes_max) continue;
    constexpr size_t shown_bytes = 40;
    return fail(ErrorKind::usage, "a name of the list is too long: " + printable(item.path.substr(0, shown_bytes)) +
                                      "...: a path has at most 4096 bytes");
  }
  if (encode().size() <= path_list_travels_bytes_max) return {};
  return fail(ErrorKind::usage, "too many names: a pull sends at most 32 KiB of them: pull in several runs");
}

std::vector<std::byte> PathList::encode() const {
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  out.u8(static_cast<uint8_t>((whole_ ? flag_whole : 0) | (names_top_ ? flag_names_top : 0)));
  for (const Item& item : items_) {
    out.u8(item.content ? 1 : 0);
    out.text16(item.path);
  }
  return bytes;
}

std::optional<PathList> PathList::decode(Bytes bytes) {
  wire::Reader in(bytes);
  in.require(bytes.size() <= path_list_travels_bytes_max);
  const uint8_t flags = in.u8();
  in.require((flags & ~(flag_whole | flag_names_top)) == 0);
  PathList list((flags & flag_whole) != 0);
  list.names_top_ = (flags & flag_names_top) != 0;
  while (in.ok() && !in.done()) {
    const uint8_t content = in.u8();
    const std::string_view path = in.text16(path_bytes_max);
    in.require(content <= 1 && path.find('\0') == std::string_view::npos);
    if (!in.ok()) break;
    const size_t before = list.items_.size();
    list.add(path);
    in.require(list.items_[before].path == path);  // as it was cleaned by whoever sent it
    list.items_[before].content = content == 1 || path.empty();
  }
  if (!in.ok()) return std::nullopt;
  list.close();
  return list;
}

}  // namespace ccixfer::filter
