#include "app/recv/older_trees.h"

#include <fmt/format.h>

#include <cerrno>

#include "app/recv/names.h"
#include "app/recv/task.h"
#include "core/base/log.h"
#include "core/base/units.h"

namespace ccixfer::recv {

void OlderTrees::open() {
  if (std::exchange(is_open_, true)) return;
  for (const SidePlace& place : places_) {
    const int fd = open_side(root_, place);
    if (fd < 0) {
      log(LogLevel::warning, "no older tree to link to: {}: {}", printable(place.path), describe_errno(-fd));
      continue;
    }
    Tree tree;
    tree.top = std::make_shared<HeldFile>(root_.files, fd);
    tree.directory = tree.top;
    tree.is_there = true;
    trees_.push_back(std::move(tree));
  }
}

bool OlderTrees::enter(Tree& tree, std::string_view directory) {
  if (tree.path == directory) return tree.is_there;
  tree.path = directory;
  // What is not there has nothing below it either.
  const int fd = directory.empty() ? -1 : root_.files.open(tree.top->fd(), directory, {.directory = true}, 0);
  tree.directory = directory.empty() ? tree.top : fd >= 0 ? std::make_shared<HeldFile>(root_.files, fd) : nullptr;
  tree.is_there = tree.directory != nullptr;
  if (!tree.is_there) not_seen(directory, fd);
  return tree.is_there;
}

void OlderTrees::not_seen(std::string_view directory, int error) {
  if (error != -EACCES || std::exchange(was_told_, true)) return;
  warning_ = fmt::format("{} of an older tree does not let the receiver in: what is in such directories is sent and not linked",
                         printable(directory));
}

std::optional<OlderTrees::Match> OlderTrees::find(std::string_view path, const Judge& judge) {
  open();
  std::optional<Match> best;
  const SplitPath split = split_path(path);
  for (Tree& tree : trees_) {
    if (!enter(tree, split.parent)) continue;
    Candidate candidate{tree.directory, std::string(split.name), tree.top, std::string(path), {}};
    const int found = path.empty() ? root_.files.fstat(tree.top->fd(), candidate.stat)
                                   : root_.files.stat_at(tree.directory->fd(), split.name, candidate.stat, false);
    if (found < 0) not_seen(split.parent, found);
    if (found < 0) continue;
    const std::optional<Likeness> likeness = judge(candidate);
    if (!likeness || (best && best->likeness >= *likeness)) continue;
    best = Match{std::move(candidate), *likeness};
    if (*likeness == Likeness::all) break;
  }
  return best;
}

}  // namespace ccixfer::recv
