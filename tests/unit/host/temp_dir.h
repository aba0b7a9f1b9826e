// A directory that exists as long as the test case does, and its descriptor.
#pragma once
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace ccixfer::testing {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ccixfer-unit-XXXXXX").string();
    if (!(::mkdtemp(pattern.data()) != nullptr)) std::abort();
    path_ = pattern;
    fd_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!(fd_ >= 0)) std::abort();
  }
  ~TempDir() {
    ::close(fd_);
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace ccixfer::testing
