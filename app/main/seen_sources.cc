#include "app/main/seen_sources.h"

#include <fmt/format.h>

#include "core/base/units.h"

namespace ccixfer::program {

// The device is left out: each host has a number of its own for a file system. With a slash behind its name an automatic mount is
// there when a directory is looked at.
std::string identities_of(ports::FileSystem& files, const std::vector<std::string>& sources, bool follows_links) {
  std::string identities;
  for (const std::string& source : sources) {
    ports::FileStat stat;
    int status = files.stat_at(ports::FileSystem::no_directory, source, stat, follows_links);
    if (status >= 0 && stat.type == ports::FileType::directory)
      status = files.stat_at(ports::FileSystem::no_directory, source + "/", stat, true);
    identities += status < 0 ? "none;" : fmt::format("{} {};", static_cast<int>(stat.type), stat.inode);
  }
  return identities;
}

SeenSources::SeenSources(ports::FileSystem& files, const std::vector<std::string>& sources) : files_(files) {
  for (const std::string& source : sources) {
    const auto inode = source == "-" ? std::nullopt : inode_of(source);
    if (inode) seen_.push_back({source, *inode});
  }
}

// The device is left out: a file system that is mounted again may get another number.
std::optional<uint64_t> SeenSources::inode_of(const std::string& source) const {
  ports::FileStat stat;
  if (files_.stat_at(ports::FileSystem::no_directory, source, stat, true) < 0) return std::nullopt;
  return stat.inode;
}

std::vector<std::string> SeenSources::replaced() {
  std::vector<std::string> words;
  std::erase_if(seen_, [&](const Seen& seen) {
    const auto now = inode_of(seen.source);
    if (!now || *now == seen.inode) return false;
    words.push_back(fmt::format("{}: another one has taken its place since this command began, and cannot be read: run it again",
                                printable(seen.source)));
    return true;
  });
  return words;
}

}  // namespace ccixfer::program
