#include "app/session/refusal.h"

#include <fmt/core.h>

#include "app/session/limits.h"
#include "app/session/messages.h"
#include "core/base/units.h"

namespace ccixfer::session {

std::string format_refusal(const Error& error) {
  return fmt::format("{}: {}", error_row(error.kind).name, error.message).substr(0, reject_reason_bytes_max);
}

std::optional<Error> parse_refusal(std::string_view reason) {
  const size_t colon = reason.find(": ");
  if (colon == std::string_view::npos) return std::nullopt;
  for (auto kind = static_cast<int>(ErrorKind::usage); kind <= static_cast<int>(ErrorKind::bug); ++kind) {
    const ErrorRow& row = error_row(static_cast<ErrorKind>(kind));
    if (!ends_a_session(row.kind)) continue;
    if (reason.substr(0, colon) == row.name) return Error{row.kind, printable(reason.substr(colon + 2))};
  }
  return std::nullopt;
}

}  // namespace ccixfer::session
