// The directories of a walk that were begun and not left: the chain from the session's base to where
// the walk is. What their entries said is kept until their `leave`, which has no attributes itself.
// Memory: one for each level of the tree.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/recv/attributes.h"

namespace ccixfer::recv {

class OpenDirectories {
 public:
  struct Directory {
    std::string path;
    uint64_t index = 0;     // of its entry
    Attributes attributes;  // as listed
    bool made = false;      // by this session
    bool unlocked = false;  // it was there, and was given u+rwx for the time
    uint32_t mode_before = 0;
    bool was_empty = false;  // nothing stood there before: what is in it now is of this run
  };
  // The walk has entered this directory. Open directories that it is not in have been left, whether or not their `leave` was
  // understood.
  void enter(Directory directory);
  // The walk has left the directory at `path`, and so all that are still open in it. none: its own entry failed, or there was none.
  [[nodiscard]] std::optional<Directory> leave(std::string_view path);

  // The walk is in that directory, and nothing stood in it before this run.
  [[nodiscard]] bool is_new(std::string_view path) const;

 private:
  std::vector<Directory> chain_;  // the innermost is last
};

}  // namespace ccixfer::recv
