// The version of the running kernel, where what a system call promises depends on it.
#pragma once
#include <compare>

namespace ccixfer::host {

// Of uname: 0.0 when it is not to be read, which is older than any.
struct KernelVersion {
  unsigned major_number = 0, minor_number = 0;
  friend auto operator<=>(const KernelVersion&, const KernelVersion&) = default;
};
[[nodiscard]] KernelVersion parse_kernel_version(const char* release);
[[nodiscard]] KernelVersion running_kernel();

// Before, syncfs wrote the data back and did not say that it could not.
inline constexpr KernelVersion kernel_whose_syncfs_tells_of_data{5, 8};
// Before, what the file system itself answered was dropped; fsync of a directory asks it too.
inline constexpr KernelVersion kernel_whose_syncfs_tells_of_the_journal{5, 17};

}  // namespace ccixfer::host
