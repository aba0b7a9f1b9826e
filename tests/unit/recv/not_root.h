// For what root may always do: a test, and all that it makes from here on, is an ordinary account's. Tests that run as one already
// are left as they are.
#pragma once
#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
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
    if (::setgroups(groups.size(), groups.data()) != 0 || ::setegid(account) != 0 || ::seteuid(account) != 0)
      throw std::runtime_error("root cannot become another account");
  }
  ~NotRoot() {
    if (!was_root_ || ::seteuid(0) != 0) return;
    if (::setegid(group_) != 0 || ::setgroups(groups_.size(), groups_.data()) != 0) ::_exit(1);
  }
  NotRoot(const NotRoot&) = delete;
  NotRoot& operator=(const NotRoot&) = delete;

 private:
  const bool was_root_ = ::geteuid() == 0;
  const gid_t group_ = ::getegid();
  std::vector<gid_t> groups_;
};

}  // namespace ccixfer::recv::test
