// Several sources that go into one directory: what an earlier one has is its.
#include <algorithm>
#include <cerrno>

#include "app/filter/rules_file.h"
#include "app/send/walk.h"
#include "app/send/walk_parts.h"
#include "app/session/reserved.h"
#include "core/base/units.h"

namespace ccixfer::send {

using ports::FileStat;
using ports::FileType;
using session::EntryType;
using Kind = WalkRecord::Kind;

int Walk::open_earlier(ports::FileSystem& files, uint32_t source, std::string_view path) const {
  const int root = open_source(files, sources_[source]);
  // What is beside a source may not be listed by a process that is confined, so the root is not opened anew.
  if (root < 0 || path.empty()) return root;
  const int directory = open_below(files, root, path);
  files.close(root);
  return directory;
}

Result<void> Walk::begin_earlier_rules(ports::FileSystem& files) {
  for (uint32_t i = 0; i < current_; ++i) {
    const Source& source = sources_[i];
    if (source.type != FileType::directory || earlier_rules_.contains(i)) continue;
    if (!path_.empty() && !may_have(source, path_)) continue;
    filter::Scope& rules = earlier_rules_.emplace(i, scope_).first->second;
    auto begun = rules.begin(rules_begin_at(source));
    if (begun && source.name.empty()) begun = enter_earlier_rules(files, i, {});
    if (!begun) return begun;
  }
  return {};
}

Result<void> Walk::enter_earlier_rules(ports::FileSystem& files, uint32_t source, std::string_view directory) {
  filter::Scope& rules = earlier_rules_.at(source);
  const bool reads = rules.reads_files() && sources_[source].missing == 0;
  const int fd = reads ? open_earlier(files, source, directory) : -ENOENT;
  if (fd < 0 && !is_absent(fd) && fd != -EACCES) {  // of what may not be read nothing is sent, and the names in it fail
    return fail(ErrorKind::file_io, printable(sources_[source].given) + ": " + words(fd));
  }
  const auto read = [&](const std::string& name) -> Result<std::optional<std::string>> {
    if (fd < 0) return std::optional<std::string>();  // nothing of it is sent either
    return filter::read_rules(files, fd, name, options_.served_root < 0);
  };
  auto entered = rules.enter(directory, read);
  if (fd >= 0) files.close(fd);
  return entered;
}

void Walk::emit_directory(ports::FileSystem& files, WalkBatch& out, const Merged& merged, const FileStat& own,
                          const EntryDetails::Place& place) {
  if (!merged.first) return emit_whole(files, out, EntryType::directory, own, place);
  const int first = options_.details.extended != 0 ? open_earlier(files, merged.first_source, path_) : -1;
  emit_whole(files, out, EntryType::directory, *merged.first, {.fd = first, .error = std::min(first, 0)});
  if (first >= 0) files.close(first);
}

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
    if (sources_[source].missing < 0 || !may_have(sources_[source], path_)) continue;
    const int directory = open_earlier(files, source, parent);
    FileStat other;
    FileStat above;
    int error = std::min(directory, 0);
    const bool is_sent = directory >= 0 && [&] {
      error = files.stat_at(directory, name, other, follow_);
      if (error < 0) return false;
      if (!scope_.is_empty() && earlier_rules_.at(source).excludes(path_, other.type == FileType::directory)) return false;
      return other.type != FileType::other || (options_.specials && other.special != ports::SpecialKind::none);
    }();
    // It lists nothing of a file system that is mounted there, but what was given.
    const bool asks_device = is_sent && options_.one_file_system && path_ != sources_[source].name;
    if (asks_device) error = files.fstat(directory, above);
    const bool is_mount = asks_device && error >= 0 && above.device != other.device;
    if (directory >= 0) files.close(directory);
    if (error < 0 && !is_absent(error)) {
      // Whether the first source has it is not known, so none may be sent in its place.
      tell(out, Kind::failed, "an earlier source cannot be looked at: " + words(error));
      stack_.empty() ? void(root_listed_.is_whole = false) : is_there(name);
      return true;
    }
    if (!is_sent || session::is_reserved_name(name)) continue;
    if (other.type == FileType::directory && is_directory) {
      if (!merged.first) {
        merged.first = other;
        merged.first_source = source;
      }
      if (!is_mount) merged.sources.push_back(source);
    } else {
      theirs = !merged.first;  // merged already: the first that has it decides, and that is a directory
    }
  }
  if (theirs) tell(out, Kind::warning, "in several sources: the first is sent");
  return theirs;
}

}  // namespace ccixfer::send
