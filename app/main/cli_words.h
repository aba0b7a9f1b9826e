// What a command line or the help of CLI11 says, looked at as text.
#pragma once
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace ccixfer::program {

[[nodiscard]] std::string one_line(std::string text);

// An option with nothing behind its `=`, as a script with an empty variable makes it: CLI11 would take the next word, which may be
// a file that is to be sent.
[[nodiscard]] std::optional<std::string> word_without_value(int argc, const char* const* argv);
// The same of `--option ''`: whoever wrote that meant some value. Only a suffix may be empty.
[[nodiscard]] std::optional<std::string> option_without_value(const CLI::App& command);

// What to do about a word that is no option: of one that rsync has, that it is not needed here; else to read the help of `command`.
[[nodiscard]] std::string remedy_of(int argc, const char* const* argv, const std::string& command);

// CLI11 takes -1 for the largest number. "": it is a count.
[[nodiscard]] std::string why_no_count(const std::string& text);

}  // namespace ccixfer::program
