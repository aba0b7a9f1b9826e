#include "app/recv/open_directories.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "app/recv/names.h"

namespace ccixfer::recv {

void OpenDirectories::enter(Directory directory) {
  while (!chain_.empty() && !is_below(directory.path, chain_.back().path)) chain_.pop_back();
  chain_.push_back(std::move(directory));
}

std::optional<OpenDirectories::Directory> OpenDirectories::leave(std::string_view path) {
  const auto found = std::find_if(chain_.rbegin(), chain_.rend(), [&](const Directory& open) { return open.path == path; });
  if (found == chain_.rend()) return std::nullopt;
  Directory left = std::move(*found);
  chain_.erase(std::prev(found.base()), chain_.end());
  return left;
}

bool OpenDirectories::is_new(std::string_view path) const {
  return !chain_.empty() && chain_.back().was_empty && chain_.back().path == path;
}

}  // namespace ccixfer::recv
