// For what root may always do: a test, and all that it makes from here on, is an ordinary account's. Its temporary directories are
// below /tmp, as those of who runs the tests may let nobody else in. Tests that run as an ordinary account already are left as they
// are.
#pragma once
#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace ccixfer::recv::test {

class NotRoot {
 public:
  static constexpr uid_t account = 65'534;
  explicit NotRoot(std::vector<gid_t> groups = {}) {
    if (!was_root_) return;
    groups_.resize(static_cast<size_t>(std::max(0, ::getgroups(0, nullptr))));
    if (!groups_.empty() && ::getgroups(static_cast<int>(groups_.size()), groups_.data()) < 0)
      throw std::runtime_error("getgroups");
    if (const char* directory = std::getenv("TMPDIR"); directory != nullptr) temporary_ = directory;
    if (!temporary_.empty() && ::setenv("TMPDIR", "/tmp", 1) != 0) throw std::runtime_error("setenv");
    if (::setgroups(groups.size(), groups.data()) != 0 || ::setegid(account) != 0 || ::seteuid(account) != 0)
      throw std::runtime_error("root cannot become another account");
  }
  ~NotRoot() {
    if (!was_root_ || ::seteuid(0) != 0) return;
    if (!temporary_.empty()) ::setenv("TMPDIR", temporary_.c_str(), 1);
    if (::setegid(group_) != 0 || ::setgroups(groups_.size(), groups_.data()) != 0) ::_exit(1);
  }
  NotRoot(const NotRoot&) = delete;
  NotRoot& operator=(const NotRoot&) = delete;

 private:
  const bool was_root_ = ::geteuid() == 0;
  const gid_t group_ = ::getegid();
  std::vector<gid_t> groups_;
  std::string temporary_;  // TMPDIR; empty: none was set
};

}  // namespace ccixfer::recv::test
