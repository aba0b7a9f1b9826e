#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace ccixfer {

void check_failed(const char* expression, const char* file, int line) {
  // fprintf, not the log: the sink may be what is broken.
  std::fprintf(stderr, "ccixfer: bug: CHECK(%s) failed at %s:%d\n", expression, file, line);
  std::fflush(stderr);
  std::abort();
}

}  // namespace ccixfer
