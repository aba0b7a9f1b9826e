#pragma once
#include <sys/stat.h>

#include <string>
#include <vector>

#include "app/main/turn_loop.h"
#include "core/base/result.h"

namespace ccixfer::program {

// The file of --uri-file: written whole at once (a reader finds all of it or nothing), removed with the object,
// and at the second signal, unless another process has put its own in its place.
class UriFile {
 public:
  explicit UriFile(TurnLoop& loop) : loop_(loop) {}
  ~UriFile();
  UriFile(const UriFile&) = delete;
  UriFile& operator=(const UriFile&) = delete;
  [[nodiscard]] Result<void> write(const std::string& path, const std::vector<std::string>& uris);  // usage: it cannot be written

 private:
  void remove() const;

  TurnLoop& loop_;
  std::string path_;
  struct stat written_ {};  // as it was written last
};

}  // namespace ccixfer::program
