// The words of a refused connect: what the Hub writes into a reject's reason and the dialler reads from it. `kind: words`, with the
// kind's name of the error table; or exactly refusal_unknown_session.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ccixfer::session {

inline constexpr std::string_view refusal_unknown_session = "unknown session";

[[nodiscard]] std::string format_refusal(const Error& error);  // at most reject_reason_bytes_max
// nullopt: not the words of an acceptor. The words are a peer's: made printable.
[[nodiscard]] std::optional<Error> parse_refusal(std::string_view reason);

}  // namespace ccixfer::session
