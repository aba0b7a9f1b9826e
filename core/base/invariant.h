// CHECK (core/base/check.h) without a macro, for headers that tests include: Catch2 has a CHECK of its own.
#pragma once

namespace ccixfer {

[[noreturn]] void check_failed(const char* expression, const char* file, int line);

// The built-ins tell where the caller stands. (std::source_location is not there for clang 14 with the library of g++ 12.)
inline void invariant(bool holds, const char* words, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!holds) [[unlikely]] {
    check_failed(words, file, line);
  }
}

}  // namespace ccixfer
