#include "app/main/replaced_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "core/base/units.h"

namespace ccixfer::program {

Result<void> may_be_replaced(const std::string& file, std::string_view option) {
  struct stat there {};
  if (::stat(file.c_str(), &there) != 0 || S_ISREG(there.st_mode)) return {};
  return fail(ErrorKind::usage, fmt::format("{}: {} is {}: name a file, which is replaced as a whole", option, printable(file),
                                            S_ISDIR(there.st_mode) ? "a directory" : "no regular file"));
}

}  // namespace ccixfer::program
