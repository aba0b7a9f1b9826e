#include "app/report/toml_error.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.h"

namespace ccixfer::report {
namespace {

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return printable(text);
}

}  // namespace

std::string toml_error(std::string_view file, uint64_t line, std::string words, std::string text) {
  words = words.substr(0, words.find('\n'));  // the first line says what is wrong
  if (const size_t prefix = words.find("[error] "); prefix != std::string::npos) words = words.substr(prefix + 8);
  if (words.rfind("toml::", 0) == 0) words = words.substr(std::min(words.size(), words.find(": ") + 2));
  text = text.substr(0, text.find('='));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return fmt::format("{}:{}: {}: {}: correct the TOML", printable(file), line, printable(text), one_line(std::move(words)));
}

std::string toml_error(std::string_view file, std::string words) {
  return fmt::format("{}:1: {}: correct the TOML", printable(file), one_line(std::move(words)));
}

}  // namespace ccixfer::report
