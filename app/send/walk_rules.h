// Where the rules of a walk begin: the absolute place of a source, and the files of rules above it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "app/filter/rules.h"
#include "core/base/result.h"
#include "core/ports/file_system.h"

namespace ccixfer::send {

// `given` below `base`, without `.`, `..` and slashes that are one too many: no slash in front or behind.
[[nodiscard]] std::string absolute_place(std::string_view base, std::string_view given);
// The files of rules above `place`, below the served directory `root`; of a push (no_directory) below `/`, with links followed.
// Errors: file_io for one that cannot be read, or whose directory cannot be looked at: what it leaves out would be sent.
[[nodiscard]] Result<std::vector<filter::Rules::Above>> rules_above(ports::FileSystem& files, int root, const filter::Rules& rules,
                                                                    std::string_view place);

}  // namespace ccixfer::send
