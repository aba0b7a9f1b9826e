#include "app/metrics/token.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/trust/sha256.h"
#include "core/trust/signature.h"

namespace ccixfer::metrics {
namespace {

trust::Secret digest_of(std::string_view text) {
  trust::Sha256 hash;
  hash.update(as_bytes(text));
  return trust::Secret(hash.digest());
}

// Of "SCHEME  REST" what is behind the scheme, whose case does not matter; "": it is another one.
std::string_view behind(std::string_view authorization, std::string_view scheme) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b; };
  if (authorization.size() <= scheme.size() ||
      !std::equal(scheme.begin(), scheme.end(), authorization.begin(), [&](char want, char got) { return same(got, want); }) ||
      authorization[scheme.size()] != ' ')
    return {};
  authorization.remove_prefix(std::min(authorization.find_first_not_of(' ', scheme.size()), authorization.size()));
  return authorization;
}

}  // namespace

Result<Token> Token::parse(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (text.size() < token_bytes_min || text.size() > token_bytes_max) {
    return fail(ErrorKind::usage, fmt::format("a token has {} to {} characters: make one with `openssl rand -hex 20`",
                                              token_bytes_min, token_bytes_max));
  }
  // A colon or a space would end it in a header.
  if (std::any_of(text.begin(), text.end(), [](char c) { return c <= ' ' || c > '~' || c == ':'; }))
    return fail(ErrorKind::usage, "a token is one line of printable characters: make one with `openssl rand -hex 20`");
  return Token(digest_of(text));
}

bool Token::is_in(std::string_view authorization) const {
  if (const std::string_view given = behind(authorization, "bearer"); !given.empty())
    return digest_.equals(digest_of(given).bytes());
  const std::string_view coded = behind(authorization, "basic");
  if (coded.empty() || coded.size() > 4 * token_bytes_max) return false;
  const auto pair = trust::from_base64(coded);
  if (!pair) return false;
  const size_t colon = pair->find(':');
  return colon != std::string::npos && digest_.equals(digest_of(std::string_view(*pair).substr(colon + 1)).bytes());
}

}  // namespace ccixfer::metrics
