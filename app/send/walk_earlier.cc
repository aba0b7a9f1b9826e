// Several sources that go into one directory: what an earlier one has is its.
#include "app/send/walk.h"
#include "app/session/reserved.h"

namespace ccixfer::send {

using ports::FileStat;
using ports::FileType;
using Kind = WalkRecord::Kind;

bool Walk::taken_earlier(ports::FileSystem& files, WalkBatch& out, bool is_directory, Merged& merged) {
  const size_t slash = path_.rfind('/');
  const std::string_view parent = slash == std::string::npos ? std::string_view{} : std::string_view(path_).substr(0, slash);
  const std::string_view name = slash == std::string::npos ? std::string_view(path_) : std::string_view(path_).substr(slash + 1);
  bool theirs = false;
  if (parent.empty()) {
    const auto file = file_names_.find(path_);
    theirs = file != file_names_.end() && file->second < current_;
  }
  std::vector<uint32_t> sources;
  if (!stack_.empty()) {
    sources = stack_.back().earlier;
  } else {
    for (uint32_t i = 0; i < current_; ++i) {
      if (sources_[i].type == FileType::directory) sources.push_back(i);
    }
  }
  for (const uint32_t source : sources) {
    if (theirs) break;
    if (!may_have(sources_[source], path_)) continue;
    const int root = open_source(files, sources_[source]);
    if (root < 0) continue;
    // What is beside a source may not be listed by a process that is confined, so the root is not opened anew.
    const int directory = parent.empty() ? root : open_below(files, root, parent);
    if (directory != root) files.close(root);
    if (directory < 0) continue;
    FileStat other;
    const bool is_sent = [&] {
      if (files.stat_at(directory, name, other, follow_) < 0) return false;
      return other.type != FileType::other || (options_.specials && other.special != ports::SpecialKind::none);
    }();
    files.close(directory);
    if (!is_sent || session::is_reserved_name(name)) continue;
    if (other.type == FileType::directory && is_directory) {
      if (!merged.first) merged.first = other;
      merged.sources.push_back(source);
    } else {
      theirs = !merged.first;  // merged already: the first that has it decides, and that is a directory
    }
  }
  if (theirs) tell(out, Kind::warning, "in several sources: the first is sent");
  return theirs;
}

}  // namespace ccixfer::send
