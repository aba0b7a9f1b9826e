// What a command line gives standard input and standard output to: to one thing each.
// Errors: ErrorKind::usage, with the options that do not go together.
#pragma once
#include <string_view>

#include "app/main/cli.h"
#include "core/base/result.h"

namespace ccixfer::program {

// The file that is read now because of this option; "": none is.
[[nodiscard]] std::string_view file_of(const RuleWord& word);
// A push. Of two readers of standard input the second would find nothing left, and exclude nothing.
[[nodiscard]] Result<void> check_standard_streams(const SendCommand& push);
// A pull, whose file may go to standard output: nothing else does then, and options on what stands at the destination have no
// meaning.
[[nodiscard]] Result<void> check_standard_streams(const ReceiveCommand& pull);

}  // namespace ccixfer::program
