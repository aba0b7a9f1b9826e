#include "app/main/cli_words.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>

namespace ccixfer::program {

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  if (const size_t at = text.find(": -- "); at != std::string::npos) text.erase(at + 2, 3);  // nobody wrote this of a job's file
  return text;
}

std::optional<std::string> word_without_value(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") break;
    if (word.starts_with("--") && word.find('=') == word.size() - 1) return std::string(word);
  }
  return std::nullopt;
}

std::optional<std::string> option_without_value(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const auto& given = option->results();
    const bool has_empty = std::find(given.begin(), given.end(), std::string()) != given.end();
    if (has_empty && !option->get_positional() && option->get_name() != "--suffix") return option->get_name();
  }
  return std::nullopt;
}

std::string remedy_of(int argc, const char* const* argv, const std::string& command) {
  struct OfRsync {
    std::string_view word;
    const char* remedy;
  };
  constexpr std::array known{
      OfRsync{"-r", "leave -r out: directories are sent with all that is in them"},
      OfRsync{"-rv", "leave -r out: directories are sent with all that is in them"},
      OfRsync{"--recursive", "leave it out: directories are sent with all that is in them"},
      OfRsync{"--partial", "leave it out: what was interrupted is always resumed"},
      OfRsync{"--delete-after", "write --delete, which deletes after the transfer"},
      OfRsync{"--delete-delay", "write --delete, which deletes after the transfer"},
      OfRsync{"--delete-before", "write --delete, which deletes after the transfer"},
      OfRsync{"--delete-during", "write --delete, which deletes after the transfer"},
  };
  const bool transfers = command.ends_with(" send") || command.ends_with(" recv");
  for (int i = 1; transfers && i < argc && argv[i] != std::string_view("--"); ++i) {
    const auto* const found = std::find_if(known.begin(), known.end(), [&](const OfRsync& one) { return one.word == argv[i]; });
    if (found != known.end()) return found->remedy;
  }
  return "see " + command + " --help";
}

std::string why_no_count(const std::string& text) {
  constexpr size_t digits_max = 18;
  const bool is_count = !text.empty() && text.size() <= digits_max && text.find_first_not_of("0123456789") == std::string::npos;
  return is_count ? "" : text + ": give a whole number of 0 or more";
}

}  // namespace ccixfer::program
