// The older trees of --link-dest: finds what an entry has there under the same path, and links it into the new tree.
// The trees are only read, and no link is followed in them. One directory of each is held open, because a walk stays in one for
// long.
// Used by one job at a time.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/recv/aside.h"
#include "app/recv/held.h"

namespace ccixfer::recv {

enum class Likeness : uint8_t {
  kind,     // of the same type
  content,  // and the content is the same
  all,      // and so are the attributes
};

class OlderTrees {
 public:
  OlderTrees(OpenedRoot& root, std::vector<SidePlace> places) : root_(root), places_(std::move(places)) {}

  struct Candidate {
    HeldFileRef directory;  // that it is in
    std::string name;
    HeldFileRef top;   // of its tree ...
    std::string path;  // ... and where it is below it
    ports::FileStat stat;
  };
  using Judge = std::function<std::optional<Likeness>(const Candidate&)>;
  struct Match {
    Candidate candidate;
    Likeness likeness = Likeness::kind;
  };
  // Looks for `path` in each tree, and gives the match with the highest likeness, of equals that of the first tree. The judge says
  // how like a candidate is; nullopt: it is of another kind.
  [[nodiscard]] std::optional<Match> find(std::string_view path, const Judge& judge);
  // The warning that a directory of the trees may not be looked into, so that nothing in it is linked. It is given once. "": there
  // is none.
  [[nodiscard]] std::string take_warning() { return std::exchange(warning_, {}); }
  [[nodiscard]] bool empty() const { return places_.empty(); }

 private:
  struct Tree {
    HeldFileRef top;
    HeldFileRef directory;  // the last that was used
    std::string path;
    bool is_there = false;  // what `path` leads to
  };
  void open();
  [[nodiscard]] bool enter(Tree& tree, std::string_view directory);
  void not_seen(std::string_view directory, int error);

  OpenedRoot& root_;
  const std::vector<SidePlace> places_;
  bool is_open_ = false;
  bool was_told_ = false;
  std::string warning_;
  std::vector<Tree> trees_;  // those that are there
};

}  // namespace ccixfer::recv
