#include "app/main/destinations.h"

#include <fmt/format.h>

#include "core/base/units.h"

namespace ccixfer::program {

bool is_uri(std::string_view text) { return text.find("://") != std::string_view::npos; }

void take_destinations(SendCommand& command) {
  command.destination = command.sources.back();
  command.sources.pop_back();
  while (command.sources.size() > 1 && is_uri(command.sources.back())) {
    command.more_destinations.insert(command.more_destinations.begin(), command.destination);
    command.destination = command.sources.back();
    command.sources.pop_back();
  }
}

Result<void> check_destinations(const SendCommand& command) {
  if (command.more_destinations.empty()) return {};
  if (!command.team.stripe && command.team.part.empty()) {
    return fail(ErrorKind::usage, fmt::format("bad use: several DEST: {}: they are the receivers of one file system, for several "
                                              "processes: give --stripe or --part, or one DEST",
                                              printable(command.more_destinations.front())));
  }
  return {};
}

}  // namespace ccixfer::program
