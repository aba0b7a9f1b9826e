// Kinds of errors that are about this process and its host alone. They have rows in the error table as all have, with names and
// exit codes for scripts, but stand behind the kinds that travel: a peer that sends one breaks the protocol.
#pragma once
#include "core/base/result.h"

namespace ccixfer {

inline constexpr ErrorKind already_running{static_cast<unsigned char>(ErrorKind::bug) + 1};  // 6: another run has the --lock
inline constexpr ErrorKind last_kind = already_running;

}  // namespace ccixfer
