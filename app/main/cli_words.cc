#include "app/main/cli_words.h"

#include <CLI/CLI.hpp>
#include <algorithm>
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

std::string why_no_count(const std::string& text) {
  constexpr size_t digits_max = 18;
  const bool is_count = !text.empty() && text.size() <= digits_max && text.find_first_not_of("0123456789") == std::string::npos;
  return is_count ? "" : text + ": give a whole number of 0 or more";
}

}  // namespace ccixfer::program
