// Scripts with which a shell completes command lines of ccixfer. They are made of what the parser itself has, so that no option is
// missing or gone. Pure. Errors: usage: no such shell.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace ccixfer::program {

struct OptionWords {
  std::vector<std::string> names = {};  // with their dashes
  std::string value = {};               // what --help calls it: FILE, DIR, N; empty: it takes none
  std::string help = {};                // one line
};

struct CommandWords {
  std::string name = {};
  std::string help = {};
  std::vector<OptionWords> options = {};
};

inline constexpr const char* completion_shells = "bash, zsh or fish";

[[nodiscard]] Result<std::string> completion_script(std::string_view shell, const std::vector<CommandWords>& commands);

}  // namespace ccixfer::program
