#include "app/report/outcome.h"

#include <algorithm>

#include "core/base/check.h"

namespace ccixfer::report {

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

ErrorKind kind_of_counts(uint64_t files_failed, uint64_t files_vanished) {
  if (files_failed > files_vanished) return ErrorKind::partial;
  return files_vanished > 0 ? ErrorKind::vanished : ErrorKind::ok;
}

}  // namespace ccixfer::report
