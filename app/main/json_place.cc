#include "app/main/json_place.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace ccixfer::program {

int json_fd_of(const Command& command) {
  const auto* receive = std::get_if<ReceiveCommand>(&command);
  return receive != nullptr && receive->directory == "-" ? STDERR_FILENO : STDOUT_FILENO;
}

int json_fd_of(int argc, const char* const* argv) {
  const std::vector<std::string_view> words(argv, argv + argc);
  const auto has = [&words](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  if (!has("--json")) return -1;
  return has("recv") && has("-") ? STDERR_FILENO : STDOUT_FILENO;
}

}  // namespace ccixfer::program
