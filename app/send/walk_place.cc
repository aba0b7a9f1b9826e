// Where a file of the sources stands: for the source that listed it, and for one that is told by others what to read.
#include <utility>

#include "app/send/walk.h"

namespace ccixfer::send {

using ports::FileType;

SourcePlace Walk::place(uint32_t source, std::string_view path) const {
  if (!is_listed_by_another_ || sources_.size() == 1) return place_in(sources_[source], path);
  std::optional<SourcePlace> first;
  for (const Source& from : sources_) {
    if (!may_have(from, path)) continue;
    SourcePlace place = place_in(from, path);
    if (first) {
      first->others.push_back({place.directory, std::string(place.name), place.follow});
    } else {
      first = std::move(place);
    }
  }
  return first ? std::move(*first) : SourcePlace{ports::FileSystem::no_directory, ""};
}

// One that is sent under its name has nothing beside it.
bool Walk::may_have(const Source& source, std::string_view path) {
  if (source.name.empty()) return source.type == FileType::directory;
  if (!path.starts_with(source.name)) return false;
  return path.size() == source.name.size() || (source.type == FileType::directory && path[source.name.size()] == '/');
}

SourcePlace Walk::place_in(const Source& from, std::string_view path) const {
  SourcePlace place;
  if (from.type == FileType::directory) {
    // A list may lead through a link to a directory.
    const Follow listed = options_.list && options_.served_root < 0 ? Follow::on_the_way : Follow::none;
    place = {from.root, path, follow_ ? Follow::all : listed};
  } else if (options_.served_root >= 0) {
    place = {options_.served_root, from.given, Follow::none};
  } else {
    place = {ports::FileSystem::no_directory, from.given, follow_ ? Follow::all : Follow::none};
  }
  return place;
}

}  // namespace ccixfer::send
