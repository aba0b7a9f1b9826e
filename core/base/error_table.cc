// The one table from kinds of error to exit codes, the names that scripts see and the words that people see.
// Source: the command line's contract, 'Exit codes' (rsync's where it has one).
#include <array>
#include <cerrno>
#include <cstddef>

#include "core/base/check.h"
#include "core/base/local_kinds.h"
#include "core/base/result.h"

namespace ccixfer {
namespace {

constexpr std::array error_rows{
    ErrorRow{ErrorKind::ok, 0, "ok", "done"},
    ErrorRow{ErrorKind::usage, 1, "usage", "usage or configuration error"},
    ErrorRow{ErrorKind::protocol, 2, "protocol", "protocol or version mismatch"},
    ErrorRow{ErrorKind::source_selection, 3, "source_selection", "cannot select the source"},
    ErrorRow{ErrorKind::network, 10, "network", "network error"},
    ErrorRow{ErrorKind::file_io, 11, "file_io", "file error"},
    ErrorRow{ErrorKind::interrupted, 20, "interrupted", "interrupted; run again to resume"},
    ErrorRow{ErrorKind::partial, 23, "partial", "some files failed, the rest were delivered"},
    ErrorRow{ErrorKind::vanished, 24, "vanished", "some source files vanished or changed"},
    ErrorRow{ErrorKind::max_delete, 25, "max_delete", "--max-delete reached"},
    ErrorRow{ErrorKind::timeout, 30, "timeout", "timed out; run again to resume"},
    ErrorRow{ErrorKind::no_answer, 35, "no_answer", "no answer from the peer"},
    ErrorRow{ErrorKind::integrity, 40, "integrity", "data damaged on the way"},
    ErrorRow{ErrorKind::authentication, 41, "authentication", "authentication failed"},
    ErrorRow{ErrorKind::not_authorised, 42, "not_authorised", "not authorised"},
    ErrorRow{ErrorKind::no_route, 43, "no_route", "no route to the peer"},
    ErrorRow{ErrorKind::no_space, 44, "no_space", "no space left or quota exceeded"},
    ErrorRow{ErrorKind::bug, 70, "bug", "a bug in ccixfer"},
    ErrorRow{already_running, 6, "already_running", "the same job is running"},
};

constexpr bool in_order_of_kind() {
  for (size_t i = 0; i < error_rows.size(); ++i) {
    if (static_cast<size_t>(error_rows[i].kind) != i) return false;
  }
  return error_rows.size() == static_cast<size_t>(last_kind) + 1;
}
static_assert(in_order_of_kind(), "one row a kind, in the order of the kinds");

}  // namespace

const ErrorRow& error_row(ErrorKind kind) {
  CHECK(static_cast<size_t>(kind) < error_rows.size());
  return error_rows[static_cast<size_t>(kind)];
}

ErrorKind kind_of_file_errno(int error_number) {
  switch (error_number) {
    case 0:
      return ErrorKind::ok;
    case ENOSPC:
    case EDQUOT:
      return ErrorKind::no_space;
    case ENOENT:
    case ESTALE:
      return ErrorKind::vanished;  // it was there when it was listed
    case EINTR:
      return ErrorKind::interrupted;
    default:
      return ErrorKind::file_io;
  }
}

}  // namespace ccixfer
