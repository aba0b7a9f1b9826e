// CHECK (core/base/check.h) without a macro, for headers that tests include: Catch2 has a CHECK of its own.
#pragma once
#include <source_location>

namespace ccixfer {

[[noreturn]] void check_failed(const char* expression, const char* file, int line);

inline void invariant(bool holds, const char* words, std::source_location at = std::source_location::current()) {
  if (!holds) [[unlikely]] {
    check_failed(words, at.file_name(), static_cast<int>(at.line()));
  }
}

}  // namespace ccixfer
