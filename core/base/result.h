// Result: how the world's failures travel (disk, network, configuration). An Error names its kind, which fixes the
// exit code through the one table in error_table.cc, and carries the one line for standard error: what, where, what to do.
#pragma once
#include <string>
#include <tl/expected.hpp>

namespace ccixfer {

enum class ErrorKind : unsigned char {
  ok,                // 0
  usage,             // 1  also configuration
  protocol,          // 2  version or protocol mismatch
  source_selection,  // 3  a source that cannot be selected (does not exist, not a directory ...)
  network,           // 10 connection lost, socket error
  file_io,           // 11
  interrupted,       // 20
  partial,           // 23 some files failed, the rest delivered
  vanished,          // 24 some source files vanished or changed
  max_delete,        // 25
  timeout,           // 30 no progress within --timeout, or --stop-at
  no_answer,         // 35 no answer from the peer or the only router
  integrity,         // 40
  authentication,    // 41
  not_authorised,    // 42
  no_route,          // 43
  no_space,          // 44
  bug,               // 70
};

struct ErrorRow {
  ErrorKind kind;
  int exit_code;
  const char* name;   // the `status` of the JSON `done` event
  const char* words;  // for people
};
[[nodiscard]] const ErrorRow& error_row(ErrorKind kind);
[[nodiscard]] inline int exit_code(ErrorKind kind) { return error_row(kind).exit_code; }
// The kind that an errno of a file operation means (ENOSPC, EDQUOT -> no_space, ENOENT -> ..., else file_io).
[[nodiscard]] ErrorKind kind_of_file_errno(int error_number);

struct Error {
  ErrorKind kind = ErrorKind::bug;
  std::string message;
};

template <typename T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return tl::unexpected<Error>(Error{kind, std::move(message)});
}

}  // namespace ccixfer
