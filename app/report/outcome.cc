#include "app/report/outcome.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/local_kinds.h"

namespace ccixfer::report {
namespace {

const char* advice(ErrorKind kind) {
  if (kind == already_running) return "wait for its end, or stop it";
  switch (kind) {
    case ErrorKind::no_answer:
      return "check that the peer runs and can be reached";
    case ErrorKind::no_route:
      return "check the routers and their configuration (ccixfer routes)";
    case ErrorKind::source_selection:
      return "name a file or directory that exists";
    case ErrorKind::not_authorised:
      return "name a place below the peer's directory";
    case ErrorKind::no_space:
      return "free some space there and run the same command again to resume";
    case ErrorKind::file_io:
      return "mend what it names and run the same command again to resume";
    case ErrorKind::protocol:
      return "use the same version at both ends";
    case ErrorKind::integrity:
      return "check memory and disks at both ends and run again";
    case ErrorKind::network:
    case ErrorKind::interrupted:
    case ErrorKind::timeout:
      return "run the same command again to resume";
    case ErrorKind::bug:
      return "report it with the log (-vv --log-file FILE)";
    case ErrorKind::partial:
    case ErrorKind::vanished:
      return "see the files that are named and run again";
    default:
      return "correct it and try again";
  }
}

size_t parts(std::string_view text) {
  size_t count = 1;
  for (size_t at = text.find(": "); at != std::string_view::npos; at = text.find(": ", at + 2)) ++count;
  return count;
}

}  // namespace

const std::vector<ErrorKind>& precedence() {
  static const std::vector<ErrorKind> order = {
      ErrorKind::bug,
      ErrorKind::integrity,
      ErrorKind::authentication,
      ErrorKind::not_authorised,
      ErrorKind::no_space,
      ErrorKind::file_io,
      ErrorKind::protocol,
      ErrorKind::usage,
      already_running,
      ErrorKind::source_selection,
      ErrorKind::interrupted,
      ErrorKind::no_route,
      ErrorKind::no_answer,
      ErrorKind::network,
      ErrorKind::timeout,
      ErrorKind::partial,
      ErrorKind::max_delete,
      ErrorKind::vanished,
      ErrorKind::ok,
  };
  return order;
}

ErrorKind worse(ErrorKind a, ErrorKind b) {
  for (const ErrorKind kind : precedence()) {
    if (kind == a || kind == b) return kind;
  }
  CHECK(false && "precedence() names every kind");
  return a;
}

Error advised(Error error, std::string_view where) {
  if (error.kind == ErrorKind::ok) return error;
  const std::string in_front = std::string(where) + ": ";
  if (!where.empty() && error.message.rfind(in_front, 0) == 0) error.message.erase(0, in_front.size());
  const bool named = where.empty() || error.message.find(where) != std::string::npos;
  if (parts(error.message) >= (has_delivered(error.kind) ? 2 : 3)) return error;
  if (!named) error.message += ": " + std::string(where);
  error.message += std::string(": ") + advice(error.kind);
  return error;
}

ErrorKind kind_of_counts(uint64_t files_failed, uint64_t files_vanished) {
  return worse(files_failed > 0 ? ErrorKind::partial : ErrorKind::ok, files_vanished > 0 ? ErrorKind::vanished : ErrorKind::ok);
}

}  // namespace ccixfer::report
