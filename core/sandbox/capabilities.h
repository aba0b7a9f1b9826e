// Capabilities: a process keeps those of a FileRights that it has, and none else; the bounding, inheritable and ambient sets are
// emptied as far as it may.
#pragma once
#include <cstdint>

#include "core/sandbox/sandbox.h"

namespace ccixfer::sandbox {

// As bits, 1 << CAP_X. Pure.
[[nodiscard]] uint64_t kept_capabilities(FileRights rights);
[[nodiscard]] Result<void> drop_capabilities(FileRights rights, Report& report);

}  // namespace ccixfer::sandbox
