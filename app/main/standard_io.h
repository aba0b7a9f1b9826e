// Small things that are read and written outside of the loop (turn_loop.h): its signals are blocked, so a plain read(2) of a
// terminal or a pipe could not be interrupted. These wait with an eye on SIGINT and SIGTERM.
// Errors: interrupted, when one of them came; else file_io of what is written, usage of what is read.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/host/descriptor.h"

namespace ccixfer::program {

// Until the descriptor can be read (POLLIN) or written (POLLOUT), or is broken; false: the process is told to end.
[[nodiscard]] bool wait_until_ready(int fd, short events);

// What is in a file, or comes from standard input ("-"): up to its end, or to the first `end` byte, which is left out and behind
// which nothing is read; those before anything else count for nothing. More than `bytes_max` is an error.
[[nodiscard]] Result<std::string> read_text(const std::string& file, size_t bytes_max, std::optional<char> end = std::nullopt);

// A file that is to be read more than once, at its beginning. Of what has none, a pipe or a FIFO, all that comes is copied first,
// into a file without a name below `temporary`. usage: it cannot be read; file_io, no_space: the copy.
[[nodiscard]] Result<host::Descriptor> open_again_and_again(const std::string& file, const std::string& temporary);

// All of a text. file_io begins with `what` could not be done. No copy of the text is kept.
[[nodiscard]] Result<void> write_text(std::string_view text, int to, const char* what);

// A whole file to a descriptor, and to its medium if it has one.
[[nodiscard]] Result<void> write_out(const std::filesystem::path& file, int to);

}  // namespace ccixfer::program
