// Files that a command writes whole and puts in the place of what stands there: lists, receipts, addresses.
#pragma once
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ccixfer::program {

// usage: a device, a pipe or a directory stands there. /dev/null would be a file from then on, for everybody.
[[nodiscard]] Result<void> may_be_replaced(const std::string& file, std::string_view option);

}  // namespace ccixfer::program
