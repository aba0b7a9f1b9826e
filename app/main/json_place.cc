#include "app/main/json_place.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace ccixfer::program {
namespace {

bool reads_list(std::string_view option) {
  return option == "--files-from" || option == "--exclude-from" || option == "--include-from";
}

// Whether a `-` is the DIR of a pull: it is no option's value, and no name comes right behind it, as one does behind a ticket's.
bool ends_in_output(const std::vector<std::string_view>& words) {
  bool is_output = false;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "-") {
      is_output = is_output || !reads_list(words[i - 1]);
    } else if (words[i - 1] == "-" && !words[i].starts_with('-')) {
      is_output = false;
    }
  }
  return is_output;
}

}  // namespace

int json_fd_of(const Command& command) {
  const auto* receive = std::get_if<ReceiveCommand>(&command);
  return receive != nullptr && receive->directory == "-" ? STDERR_FILENO : STDOUT_FILENO;
}

int json_fd_of(int argc, const char* const* argv) {
  const std::vector<std::string_view> words(argv, argv + argc);
  const auto has = [&words](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  if (!has("--json")) return -1;
  return has("recv") && ends_in_output(words) ? STDERR_FILENO : STDOUT_FILENO;
}

}  // namespace ccixfer::program
