// Which error a command ends with when several things went wrong. In: kinds. Out: the one whose exit code scripts see.
// Precedence: what endangers data or needs a person comes before what a rerun mends: bug, integrity, authentication, authorisation,
// space, file I/O, protocol, usage, a run under way, selection, interruption, route, answer, network, timeout, and last the partial
// ones (23 before 25 before 24).
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace ccixfer::report {

[[nodiscard]] ErrorKind worse(ErrorKind a, ErrorKind b);
// The end of a session that ran to its summary: 23 when any file failed, 24 when the source's own changes are all that kept files
// from arriving. The two counts are of different files: `files_vanished` vanished or changed, `files_failed` failed otherwise.
[[nodiscard]] ErrorKind kind_of_counts(uint64_t files_failed, uint64_t files_vanished);
// A transfer that ended so has delivered all that it could: nothing of it needs another run as it is.
[[nodiscard]] constexpr bool has_delivered(ErrorKind kind) {
  return kind == ErrorKind::ok || kind == ErrorKind::partial || kind == ErrorKind::vanished || kind == ErrorKind::max_delete;
}
// The error as a person wants it, `WHAT: WHERE: what to do`: a place named in front goes behind what happened, and what to do is
// added by kind. A message that has three parts already, or no place, stays as it is, and so does `WHAT: the rest is delivered`.
[[nodiscard]] Error advised(Error error, std::string_view where);
[[nodiscard]] const std::vector<ErrorKind>& precedence();  // worst first; every kind once

}  // namespace ccixfer::report
