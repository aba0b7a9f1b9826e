// Random trees of files for simulated worlds, and what may be where they are sent to.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "transports/sim/sim_file_system.h"

namespace ccixfer::simulate {

struct TreeOptions {
  size_t entries_min = 0, entries_max = 30;
  size_t file_bytes_max = 20'000;  // of most files
  size_t large_bytes_min = (4u << 20) + 1, large_bytes_max = 9u << 20;
  double large_chance = 0.0;  // that there is one of several pieces (more than 4 MiB)
  bool odd_names = true;
  bool links = true;  // without -a links are followed, and those to nowhere fail
};

// Makes a tree below `path` on the disk, durable.
void make_tree(sim::Random& random, sim::SimFileSystem& files, const std::string& path, const TreeOptions& options);
// Puts older versions of some of the source's files (and files that the source does not have) below `to`.
void make_older(sim::Random& random, sim::SimFileSystem& files, const sim::Tree& source, const std::string& to);

// Tells whether the tree is as the source's, with attributes if asked; else what differs first. Names that the source does not
// have do not matter.
[[nodiscard]] std::string difference(const sim::Tree& source, const sim::Tree& target, bool attributes);

}  // namespace ccixfer::simulate
