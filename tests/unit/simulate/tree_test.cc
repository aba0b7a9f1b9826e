// The judge of simulated transfers, and the trees it judges: a judge that sees nothing would make every swarm green.
#include "app/simulate/tree.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::simulate;

namespace {

sim::TreeEntry entry(ports::FileType type, std::string content, uint32_t mode = 0644, ports::FileTime mtime = {5, 7}) {
  sim::TreeEntry out;
  out.stat.type = type;
  out.stat.mode = mode;
  out.stat.mtime = mtime;
  out.content = std::move(content);
  return out;
}

struct Disk {
  explicit Disk(uint64_t seed) : world(seed), files(world, world.add_node("n")), random(seed) {}
  sim::Tree tree(const TreeOptions& options) {
    make_tree(random, files, "/t", options);
    return files.tree("/t");
  }
  sim::World world;
  sim::SimFileSystem files;
  sim::Random random;
};

}  // namespace

TEST_CASE("difference__of_each_kind__is_named") {
  const sim::Tree source{{"f", entry(ports::FileType::regular, "bytes")}, {"l", entry(ports::FileType::symlink, "f")}};
  const auto changed = [&](const std::string& path, auto change) {
    sim::Tree target = source;
    change(target[path]);
    return target;
  };
  CHECK(difference(source, source, true).empty());
  sim::Tree more = source;
  more["more"] = entry(ports::FileType::regular, "");
  CHECK(difference(source, more, true).empty());  // what the source does not have does not matter
  CHECK(difference(more, source, true) == "more is missing");
  const auto type = changed("f", [](sim::TreeEntry& e) { e.stat.type = ports::FileType::directory; });
  CHECK(difference(source, type, false) == "f is of another type");
  const auto content = changed("f", [](sim::TreeEntry& e) { e.content = "byteX"; });
  CHECK(difference(source, content, false) == "f has other content (5 bytes)");
  const auto mode = changed("f", [](sim::TreeEntry& e) { e.stat.mode = 0600; });
  CHECK(difference(source, mode, true) == "f has mode 600, not 644");
  CHECK(difference(source, mode, false).empty());
  const auto second = changed("f", [](sim::TreeEntry& e) { e.stat.mtime.seconds = 6; });
  CHECK(difference(source, second, true) == "f has mtime 6.000000007, not 5.000000007");
  const auto nanosecond = changed("f", [](sim::TreeEntry& e) { e.stat.mtime.nanoseconds = 8; });
  CHECK(difference(source, nanosecond, true) == "f has mtime 5.000000008, not 5.000000007");
  CHECK(difference(source, nanosecond, false).empty());
  const auto link = changed("l", [](sim::TreeEntry& e) { e.stat.mode = 0777, e.stat.mtime.seconds = 9; });
  CHECK(difference(source, link, true).empty());  // a link has neither of its own
  const auto target = changed("l", [](sim::TreeEntry& e) { e.content = "g"; });
  CHECK(difference(source, target, true) == "l has other content (1 bytes)");
}

TEST_CASE("make_tree__options__bound_what_is_made") {
  bool linked = false, odd = false, empty = false, longest = false, nested = false, far = false;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Disk disk(seed);
    TreeOptions options;
    options.entries_min = 20;
    options.entries_max = 40;
    options.file_bytes_max = 300;
    const sim::Tree tree = disk.tree(options);
    CHECK(tree.size() <= 42);
    CHECK(tree.size() >= 10);  // a name may be drawn twice
    CHECK(tree.count("large") == 0);
    for (const auto& [path, one] : tree) {
      CHECK(one.content.size() <= 300);
      linked = linked || one.stat.type == ports::FileType::symlink;
      odd = odd || path.find_first_of(" \n\x1b%~") != std::string::npos;
      nested = nested || path.find('/') != std::string::npos;
      if (one.stat.type != ports::FileType::regular) continue;
      CHECK((one.stat.mode == 0755 || one.stat.mode == 0640));
      empty = empty || one.content.empty();
      longest = longest || one.content.size() > 200;
      far = far || one.stat.mtime.seconds < 0;
    }
  }
  CHECK((linked && odd && empty && longest && nested && far));
}

// Most files are of a size from one to the longest, whatever that is; the others are empty, or of some few bytes.
TEST_CASE("make_tree__longest_file_of_one_byte__most_have_just_that") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Disk disk(seed);
    TreeOptions options;
    options.entries_min = options.entries_max = 60;
    options.file_bytes_max = 1;
    size_t files = 0, of_one = 0;
    for (const auto& [path, one] : disk.tree(options)) {
      if (one.stat.type != ports::FileType::regular) continue;
      ++files;
      of_one += one.content.size() == 1 ? 1u : 0u;
      CHECK(one.content.size() <= 64);
    }
    CHECK(files > 20);
    CHECK(of_one > files / 3);
  }
}

TEST_CASE("make_tree__no_entries__an_empty_directory_that_is_durable") {
  Disk disk(5);
  TreeOptions options;
  options.entries_min = options.entries_max = 0;
  options.large_chance = 0;
  CHECK(disk.tree(options).empty());
  disk.world.crash(0);
  disk.files.mount();
  ports::FileStat stat;
  CHECK(disk.files.stat_at(ports::FileSystem::no_directory, "/t", stat, false) == 0);
  CHECK(stat.type == ports::FileType::directory);
}

TEST_CASE("make_tree__plain__has_neither_links_nor_odd_names") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Disk disk(seed);
    TreeOptions options;
    options.entries_min = options.entries_max = 40;
    options.odd_names = options.links = false;
    for (const auto& [path, one] : disk.tree(options)) {
      CHECK(one.stat.type != ports::FileType::symlink);
      CHECK(path.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789/") == std::string::npos);
    }
  }
}

TEST_CASE("make_tree__large__of_the_size_asked_for_and_durable") {
  Disk disk(3);
  TreeOptions options;
  options.entries_min = options.entries_max = 0;
  options.large_chance = 1;
  options.large_bytes_min = options.large_bytes_max = 4001;
  const sim::Tree tree = disk.tree(options);
  REQUIRE(tree.count("large") == 1);
  CHECK(tree.at("large").content.size() == 4001);
  CHECK(tree.at("large").content.substr(0, 2000) != tree.at("large").content.substr(2000, 2000));
  CHECK(tree.at("large").content.substr(3992) != std::string(9, '\0'));
  disk.world.crash(0);
  disk.files.mount();
  CHECK(difference(tree, disk.files.tree("/t"), true).empty());
}

TEST_CASE("make_older__some_of_the_source__some_with_other_bytes") {
  bool same = false, other = false, missing = false, extra = false, without = false;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Disk disk(seed);
    TreeOptions options;
    options.entries_min = options.entries_max = 30;
    const sim::Tree source = disk.tree(options);
    disk.files.make_directory("/old");
    make_older(disk.random, disk.files, source, "/old");
    const sim::Tree old = disk.files.tree("/old");
    (old.count("not of the source") > 0 ? extra : without) = true;
    for (const auto& [path, one] : source) {
      const auto found = old.find(path);
      if (one.stat.type != ports::FileType::regular) {
        if (one.stat.type == ports::FileType::symlink) CHECK(found == old.end());
        continue;
      }
      if (found == old.end()) {
        missing = true;
        continue;
      }
      const bool equal = found->second.content == one.content && found->second.stat.mtime == one.stat.mtime;
      (equal ? same : other) = true;
      if (equal) CHECK(found->second.stat.mode == one.stat.mode);
    }
  }
  CHECK((same && other && missing && extra && without));
}
