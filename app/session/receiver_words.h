// What went wrong with a file at the receiver, in words that both ends say: the sender is told only
// an errno.
#pragma once
#include <cerrno>
#include <string>

namespace ccixfer::session {

// The entry has a field that must be understood and that the receiver does not know. No file system
// returns it.
inline constexpr int errno_of_unknown_field = EPROTONOSUPPORT;

[[nodiscard]] std::string words_of_receiver_errno(int error_number);

}  // namespace ccixfer::session
