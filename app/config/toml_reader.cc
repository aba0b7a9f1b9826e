#include "app/config/toml_reader.h"

#include <toml.hpp>

#include "core/base/units.h"

namespace ccixfer::program {

std::string TomlReader::place(const Value& at, std::string_view key) const {
  return fmt::format("{}:{}: {}", printable(file_), at.location().line(), printable(key));
}

void TomlReader::bad(const Value& at, std::string_view key, std::string_view what, std::string_view what_to_do) const {
  throw TomlMistake{fmt::format("{}: {}: {}", place(at, key), what, what_to_do)};
}

void TomlReader::unknown(std::string_view key, const Value& value, std::string_view word, std::string_view known) const {
  bad(value, key, fmt::format("unknown value '{}'", printable(word)), fmt::format("give one of {}", known));
}

const TomlTable& TomlReader::table(std::string_view key, const Value& value) const {
  if (!value.is_table()) bad(value, key, "is not a table", fmt::format("write [{}]", printable(key)));
  return value.as_table();
}

const std::vector<TomlValue>& TomlReader::list(std::string_view key, const Value& value) const {
  if (!value.is_array()) bad(value, key, "is not a list", fmt::format("write {} = [...]", printable(key)));
  return value.as_array();
}

std::string TomlReader::text(std::string_view key, const Value& value, std::string_view example) const {
  if (!value.is_string()) bad(value, key, "is not a string", fmt::format("write {} = {}", printable(key), example));
  return value.as_string().str;
}

bool TomlReader::boolean(std::string_view key, const Value& value) const {
  if (!value.is_boolean()) bad(value, key, "is not true or false", fmt::format("write {} = true", printable(key)));
  return value.as_boolean();
}

uint64_t TomlReader::whole(std::string_view key, const Value& value, uint64_t low, uint64_t high) const {
  if (!value.is_integer() || value.as_integer() < 0 || static_cast<uint64_t>(value.as_integer()) < low ||
      static_cast<uint64_t>(value.as_integer()) > high) {
    bad(value, key, "bad value", fmt::format("give a whole number from {} to {}", low, high));
  }
  return static_cast<uint64_t>(value.as_integer());
}

uint32_t TomlReader::id(std::string_view key, const Value& value) const {
  return static_cast<uint32_t>(whole(key, value, 0, UINT32_MAX));
}

uint64_t TomlReader::size_bytes(std::string_view key, const Value& value, uint64_t low, uint64_t high) const {
  const auto bytes = parse_size_bytes(text(key, value, "\"1MiB\""));
  if (!bytes || *bytes < low || *bytes > high) {
    bad(value, key, "bad value",
        high == UINT64_MAX ? std::string("give a size such as \"1MiB\"")
                           : fmt::format("give a size such as \"64KiB\", from {} to {} bytes", low, high));
  }
  return *bytes;
}

uint64_t TomlReader::rate_bits_per_s(std::string_view key, const Value& value, uint64_t low) const {
  const auto bits = parse_rate_bits_per_s(text(key, value, "\"10Gb/s\""));
  if (!bits || *bits < low) bad(value, key, "bad value", "give a rate with its unit, such as \"10Gb/s\"");
  return *bits;
}

}  // namespace ccixfer::program
