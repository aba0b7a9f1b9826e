// What went wrong with a file at the receiver, in words that both ends say: the sender is told only
// an errno.
#pragma once
#include <cerrno>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ccixfer::session {

// The entry has a field that must be understood and that the receiver does not know. No file system
// returns it.
inline constexpr int errno_of_unknown_field = EPROTONOSUPPORT;
inline constexpr int errno_of_no_devices = ENOLINK;  // the peer has no right to make them
inline constexpr int errno_of_same_name = ENOTUNIQ;  // where case is ignored
inline constexpr int errno_of_no_backup = EBADSLT;   // a directory with content, or what the source has, has the name of the backup

inline constexpr std::string_view words_of_left_out_device =
    "skipping non-regular file: only a receiver that is root makes devices";
[[nodiscard]] std::string words_of_receiver_errno(int error_number);
// Of files and directories that came without their set-ID bits, as this peer has no right to them, or as owners are not kept.
[[nodiscard]] std::string words_of_no_setid(uint64_t count);
// How a session ends that another one is to follow, as so many files changed while they were read.
[[nodiscard]] Error changed_files(uint64_t count);

}  // namespace ccixfer::session
