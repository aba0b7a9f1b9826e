// A file of rules that stands in a tree, read by whoever walks it.
// Errors: file_io for one that cannot be read, which is no reason to go on without it.
#pragma once
#include <optional>
#include <string>

#include "app/filter/rules.h"
#include "core/base/result.h"
#include "core/ports/file_system.h"

namespace ccixfer::filter {

// The text of that file in the directory `fd`; nullopt: there is none, or no file has that name.
[[nodiscard]] Result<std::optional<std::string>> read_rules(ports::FileSystem& files, int fd, const std::string& name, bool follow);

}  // namespace ccixfer::filter
