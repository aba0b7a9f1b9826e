#include "app/main/out_of_memory.h"

#include <unistd.h>

#include <string_view>

#include "core/base/result.h"

namespace ccixfer::program {

// Nothing here takes memory.
void end_out_of_memory() {
  constexpr std::string_view words =
      "ccixfer: the host gives no more memory: give less to --memory, or raise its limit (ulimit -v; vm.overcommit_memory)\n";
  static_cast<void>(!::write(STDERR_FILENO, words.data(), words.size()));
  ::_exit(exit_code(ErrorKind::usage));
}

}  // namespace ccixfer::program
