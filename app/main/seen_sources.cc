#include "app/main/seen_sources.h"

#include <fmt/format.h>

#include "core/base/units.h"

namespace ccixfer::program {

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
