// What --on-complete is told of a transfer that this side dialled. A side that listens tells of each of its transfers in the
// Acceptor.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "app/main/commands.h"

namespace ccixfer::program {

[[nodiscard]] const TransferOptions* transfer_of(const Command& command);  // nullptr: it moves nothing

struct DialledNames {
  bool is_push = true;
  std::string peer;  // as the user named it
  std::string path;  // push: the sources, of many the first 4 KiB and how many more; pull: the directory
};
// The names of the transfer that is to be told of. none: --on-complete hears nothing from here, because the command listens, or
// only says what it would do, or another run of it goes on and will tell, or it is one of a team and took no part.
[[nodiscard]] std::optional<DialledNames> dialled_transfer(const Command& command, const CommandEnd& end);
[[nodiscard]] std::string result_of(const DialledNames& names, const CommandEnd& end, int64_t began_s);  // a JSON object
// Of a command that fails before it is run. `started`: its --on-complete, where there is one already.
void tell_unbegun(const Command& command, const Error& error, OnComplete* started);

}  // namespace ccixfer::program
