// How a step of enter() says that it failed.
#pragma once
#include <fmt/format.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "core/base/result.h"

namespace ccixfer::sandbox {

[[nodiscard]] inline tl::unexpected<Error> failed_step(std::string_view step, int error = errno) {
  return fail(ErrorKind::file_io, fmt::format("cannot confine this process: {}: {}: give it descriptors and memory, and try again",
                                              step, std::generic_category().message(error)));
}

}  // namespace ccixfer::sandbox
