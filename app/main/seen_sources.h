// The sources of a push as they were before the process was confined: Landlock knows which file or directory each is, and one that
// has taken its place since cannot be read. That is to be said, where a session would only say that it may not read it.
// Thread: the protocol thread; a look waits for the disk.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ports/file_system.h"

namespace ccixfer::program {

// What a source has on every host that sees it: its type and its inode, for each of `sources`. One that is not there has others.
// `follows_links`: what a link leads to is the source.
[[nodiscard]] std::string identities_of(ports::FileSystem& files, const std::vector<std::string>& sources, bool follows_links);

class SeenSources {
 public:
  SeenSources(ports::FileSystem& files, const std::vector<std::string>& sources);
  // Words for each source that is another one by now, once.
  [[nodiscard]] std::vector<std::string> replaced();

 private:
  [[nodiscard]] std::optional<uint64_t> inode_of(const std::string& source) const;  // none: it is not there

  struct Seen {
    std::string source;
    uint64_t inode = 0;
  };
  ports::FileSystem& files_;
  std::vector<Seen> seen_;
};

}  // namespace ccixfer::program
