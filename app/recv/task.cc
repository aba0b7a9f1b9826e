#include "app/recv/task.h"

#include <fmt/format.h>

#include <system_error>

#include "app/session/receiver_words.h"
#include "core/base/units.h"

namespace ccixfer::recv {

Error fatal_error(int error_number, const std::string& path) {
  if (error_number == ESTALE) {
    return {ErrorKind::interrupted,
            fmt::format("a directory was moved, removed or replaced at the receiver during the transfer: {}: "
                        "run again to go on with what is there now",
                        path.empty() ? std::string("its root") : printable(path))};
  }
  const ErrorKind kind = is_no_space(error_number) ? ErrorKind::no_space : ErrorKind::file_io;
  return {kind, fmt::format("cannot write {}: {}", printable(path), std::generic_category().message(error_number))};
}

std::string describe_errno(int error_number) { return session::words_of_receiver_errno(error_number); }

}  // namespace ccixfer::recv
