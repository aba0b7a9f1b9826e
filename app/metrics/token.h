// What who asks from elsewhere has to know: a line of printable characters in a file, sent as `Authorization: Bearer TOKEN` by
// programs, and by browsers as the password of `Authorization: Basic` with any name. Only its SHA-256 is kept, and what is sent is
// compared by its own, in a time that does not depend on where they differ. Immutable; any thread. Errors: usage, without the
// token. Source: RFC 6750, 2.1; RFC 7617, 2.
#pragma once
#include <string_view>

#include "core/base/result.h"
#include "core/trust/secret.h"

namespace ccixfer::metrics {

inline constexpr size_t token_bytes_min = 20;  // chance finds none of them: `openssl rand -hex 20` has 40
inline constexpr size_t token_bytes_max = 1024;

class Token {
 public:
  // The content of a file: one line, whose end is not part of it.
  [[nodiscard]] static Result<Token> parse(std::string_view text);
  // `authorization`: the value of that header of a request.
  [[nodiscard]] bool is_in(std::string_view authorization) const;

 private:
  explicit Token(const trust::Secret& digest) : digest_(digest) {}
  trust::Secret digest_;
};

}  // namespace ccixfer::metrics
