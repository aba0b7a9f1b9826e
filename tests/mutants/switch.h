// The run-time switch of ./do mutants: woven into a private copy of the product, never part of it. Every mutant has a number; each
// place that can mutate asks here whether its own is the active one, and so says that the running test reached it.
//   CCIXFER_MUTANT           the number of the active mutant (none: the product as it is)
//   CCIXFER_MUTANTS_REACHED  a file of one byte a mutant, which is shared: what was reached counts also when the process is killed
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <type_traits>

namespace ccixfer_mutants {

inline constexpr unsigned mutants_max = 1U << 17U;
inline unsigned char nowhere[mutants_max];  // NOLINT: zero before any constructor runs
inline unsigned char* reached = nowhere;
inline long active = -1;
inline bool started = false;

// Before any constructor of the product, once a process.
[[gnu::constructor(101)]] static void start() {
  if (started) return;
  started = true;
  if (const char* number = std::getenv("CCIXFER_MUTANT"); number != nullptr) active = std::strtol(number, nullptr, 10);
  const char* path = std::getenv("CCIXFER_MUTANTS_REACHED");
  if (path == nullptr) return;
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* memory = ::mmap(nullptr, mutants_max, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory != MAP_FAILED) reached = static_cast<unsigned char*>(memory);
}

inline bool ask(unsigned number) {
  reached[number] = 1;
  return active == static_cast<long>(number);
}

// False where the compiler computes: a constant has no mutant.
constexpr bool on(unsigned number) {
  if (std::is_constant_evaluated()) return false;
  return ask(number);
}

template <typename A, typename B>
constexpr bool less(unsigned number, const A& a, const B& b) {
  return on(number) ? a <= b : a < b;
}
template <typename A, typename B>
constexpr bool less_or_equal(unsigned number, const A& a, const B& b) {
  return on(number) ? a < b : a <= b;
}
template <typename A, typename B>
constexpr bool more(unsigned number, const A& a, const B& b) {
  return on(number) ? a >= b : a > b;
}
template <typename A, typename B>
constexpr bool more_or_equal(unsigned number, const A& a, const B& b) {
  return on(number) ? a > b : a >= b;
}

}  // namespace ccixfer_mutants
