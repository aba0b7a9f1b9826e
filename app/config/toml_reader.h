// Reads the values of a TOML tree and refuses what is not of the wanted kind: the base of whoever reads a file of the user. A
// mistake is thrown as TomlMistake, which the function that began the reading catches and makes an Error of kind usage.
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/config/toml_file.h"

namespace ccixfer::program {

using TomlTable = std::map<std::string, TomlValue>;

struct TomlMistake {
  std::string line;  // "FILE:LINE: KEY: what is wrong: what to do"
};

class TomlReader {
 public:
  explicit TomlReader(std::string file) : file_(std::move(file)) {}

 protected:
  using Value = TomlValue;

  [[nodiscard]] std::string place(const Value& at, std::string_view key) const;  // "FILE:LINE: KEY"
  [[noreturn]] void bad(const Value& at, std::string_view key, std::string_view what, std::string_view what_to_do) const;

  [[nodiscard]] const TomlTable& table(std::string_view key, const Value& value) const;
  [[nodiscard]] const std::vector<Value>& list(std::string_view key, const Value& value) const;
  // `example` as it is written in TOML.
  [[nodiscard]] std::string text(std::string_view key, const Value& value, std::string_view example) const;
  [[nodiscard]] bool boolean(std::string_view key, const Value& value) const;
  [[nodiscard]] uint64_t whole(std::string_view key, const Value& value, uint64_t low, uint64_t high) const;
  [[nodiscard]] uint32_t id(std::string_view key, const Value& value) const;
  [[nodiscard]] uint64_t size_bytes(std::string_view key, const Value& value, uint64_t low, uint64_t high) const;
  [[nodiscard]] uint64_t rate_bits_per_s(std::string_view key, const Value& value, uint64_t low) const;
  template <size_t N>
  [[nodiscard]] std::string one_of(std::string_view key, const Value& value, const std::array<const char*, N>& known) const {
    std::string word = text(key, value, fmt::format("\"{}\"", known[0]));
    if (std::find(known.begin(), known.end(), word) == known.end())
      unknown(key, value, word, fmt::format("{}", fmt::join(known, ", ")));
    return word;
  }

 private:
  [[noreturn]] void unknown(std::string_view key, const Value& value, std::string_view word, std::string_view known) const;
  std::string file_;
};

}  // namespace ccixfer::program
