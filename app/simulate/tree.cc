#include "app/simulate/tree.h"

#include <fmt/format.h>

#include <cstring>

#include "core/base/check.h"
#include "core/base/units.h"

namespace ccixfer::simulate {
namespace {

std::string random_content(sim::Random& random, size_t bytes) {
  std::string content(bytes, '\0');
  size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    const uint64_t word = random.next();
    std::memcpy(content.data() + at, &word, 8);
  }
  for (; at < bytes; ++at) content[at] = static_cast<char>(random.next());
  return content;
}

std::string random_name(sim::Random& random, bool odd) {
  static const char* const odd_names[] = {"a b", "-rf", "new\nline", "\x1b[31m", "\x9b", "caf\xc3\xa9", "...", "%41", "~", "con"};
  if (odd && random.chance(0.1)) return fmt::format("{}{}", odd_names[random.below(std::size(odd_names))], random.below(5));
  return fmt::format("{}{}", static_cast<char>('a' + random.below(26)), random.below(1000));
}

size_t random_size(sim::Random& random, const TreeOptions& options) {
  switch (random.below(5)) {
    case 0:
      return 0;
    case 1:
      return static_cast<size_t>(random.between(1, 64));
    default:
      return static_cast<size_t>(random.between(1, options.file_bytes_max));
  }
}

// Mostly of our days; some are of the far past and future, up to the ends of what a file can have.
ports::FileTime random_mtime(sim::Random& random) {
  const auto nanoseconds = static_cast<uint32_t>(random.below(ports::file_time_nanoseconds));
  if (random.chance(0.8)) return {static_cast<int64_t>(random.between(1'000'000'000, 1'700'000'000)), nanoseconds};
  const auto any = static_cast<int64_t>(random.next());
  return {any >> random.below(64), nanoseconds};
}

}  // namespace

void make_tree(sim::Random& random, sim::SimFileSystem& files, const std::string& path, const TreeOptions& options) {
  files.make_directory(path);
  std::vector<std::string> directories{path};
  const size_t entries = static_cast<size_t>(random.between(options.entries_min, options.entries_max));
  for (size_t i = 0; i < entries; ++i) {
    const std::string& parent = directories[static_cast<size_t>(random.below(directories.size()))];
    const std::string name = parent + "/" + random_name(random, options.odd_names);
    ports::FileStat stat;
    if (files.stat_at(ports::FileSystem::no_directory, name, stat, false) == 0) continue;
    const uint64_t draw = random.below(10);
    if (draw == 0 && options.links) {
      CHECK(files.symlink_at(random.chance(0.5) ? "a0" : "../nowhere/x", ports::FileSystem::no_directory, name) == 0);
    } else if (draw < 3) {
      files.make_directory(name);
      directories.push_back(name);
    } else {
      const uint32_t mode = random.chance(0.3) ? 0755 : 0640;
      files.put(name, random_content(random, random_size(random, options)), mode, random_mtime(random));
    }
  }
  if (random.chance(options.large_chance)) {
    const auto bytes = static_cast<size_t>(random.between(options.large_bytes_min, options.large_bytes_max));
    files.put(path + "/large", random_content(random, bytes), 0644, random_mtime(random));
  }
  for (const std::string& directory : directories) {
    const int fd = files.open(ports::FileSystem::no_directory, directory, {.directory = true}, 0);
    CHECK(fd >= 0);
    CHECK(files.set_mtime(fd, random_mtime(random)) == 0);
    files.close(fd);
  }
  files.sync_all();
}

void make_older(sim::Random& random, sim::SimFileSystem& files, const sim::Tree& source, const std::string& to) {
  for (const auto& [path, entry] : source) {
    if (entry.stat.type != ports::FileType::regular || !random.chance(0.3)) continue;
    if (random.chance(0.3)) {
      files.put(to + "/" + path, entry.content, entry.stat.mode, entry.stat.mtime);
    } else {
      files.put(to + "/" + path, random_content(random, static_cast<size_t>(random.below(5000))), 0600, random_mtime(random));
    }
  }
  if (random.chance(0.5)) files.put(to + "/not of the source", "stays", 0644, random_mtime(random));
}

std::string difference(const sim::Tree& source, const sim::Tree& target, bool attributes) {
  for (const auto& [path, wanted] : source) {
    const auto found = target.find(path);
    if (found == target.end()) return fmt::format("{} is missing", printable(path));
    const sim::TreeEntry& got = found->second;
    if (got.stat.type != wanted.stat.type) return fmt::format("{} is of another type", printable(path));
    if (got.content != wanted.content) return fmt::format("{} has other content ({} bytes)", printable(path), got.content.size());
    if (!attributes || wanted.stat.type == ports::FileType::symlink) continue;
    if (got.stat.mode != wanted.stat.mode)
      return fmt::format("{} has mode {:o}, not {:o}", printable(path), got.stat.mode, wanted.stat.mode);
    if (got.stat.mtime != wanted.stat.mtime) {
      return fmt::format("{} has mtime {}.{:09}, not {}.{:09}", printable(path), got.stat.mtime.seconds, got.stat.mtime.nanoseconds,
                         wanted.stat.mtime.seconds, wanted.stat.mtime.nanoseconds);
    }
  }
  return {};
}

}  // namespace ccixfer::simulate
