// The words of a refused connect. The Hub writes them into the reason of a reject, and the dialler
// reads them there. They are `kind: words`, with the kind's name of the error table, or exactly
// refusal_unknown_session.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ccixfer::session {

inline constexpr std::string_view refusal_unknown_session = "unknown session";

[[nodiscard]] std::string format_refusal(const Error& error);  // at most reject_reason_bytes_max
// nullopt: these are not the words of an acceptor. The words come from a peer, so they are made
// printable.
[[nodiscard]] std::optional<Error> parse_refusal(std::string_view reason);

}  // namespace ccixfer::session
