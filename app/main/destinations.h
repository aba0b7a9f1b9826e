// DEST... of `ccixfer send`. A team may name several receivers of one file system: the first owns the transfer, and each process
// has one of them for pieces of large files (app/session/README.md, "Several receivers of one file system").
#pragma once
#include <string_view>

#include "app/main/cli.h"
#include "core/base/result.h"

namespace ccixfer::program {

[[nodiscard]] bool is_uri(std::string_view text);

// What the command line gave as paths becomes sources and destinations: the URIs at its end are these. At least two paths.
void take_destinations(SendCommand& command);

// usage: they do not go together with what else the command says.
[[nodiscard]] Result<void> check_destinations(const SendCommand& command);

}  // namespace ccixfer::program
