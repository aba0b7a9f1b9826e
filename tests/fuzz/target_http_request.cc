// What strangers send to the place of the metrics, in pieces whose length the first byte says: answered, waited for or hung up on,
// whatever it is, and nobody without the token is told anything.
#include <algorithm>

#include "app/metrics/http.h"
#include "core/base/lower_case.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

namespace {

constexpr std::string_view told = "what is told";
const std::string token_text = "0123456789abcdef0123";

// Every answer of one connection.
std::string answers(const metrics::Site& site, const metrics::Token* token, std::string_view bytes, size_t piece) {
  metrics::HttpConnection connection(site, token);
  std::string out;
  metrics::Next next = metrics::Next::more;
  while (!bytes.empty() && next == metrics::Next::more) {
    next = connection.received(bytes.substr(0, piece), out);
    while (next == metrics::Next::status || (next == metrics::Next::more && connection.has_waiting()))
      next = next == metrics::Next::status ? connection.answer_status(told, out) : connection.received({}, out);
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  if (next == metrics::Next::events) connection.begin_events(out), out += metrics::event_of(told);
  fuzz::must(out.empty() || out.starts_with("HTTP/1.1 "));
  fuzz::must(next == metrics::Next::more || !out.empty());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = 1 + data[0];
  const std::string_view bytes = as_text(fuzz::bytes_of(data, size)).substr(1);
  const metrics::Site site{[](metrics::Format) { return std::string(told); }, true, true};
  const std::string open = answers(site, nullptr, bytes, piece);
  // However it is cut, it is the same.
  fuzz::must(answers(site, nullptr, bytes, bytes.size() + 1) == open);
  const metrics::Site guarded{site.metrics, true, false};
  static const auto token = metrics::Token::parse(token_text);
  fuzz::must(token.has_value());
  const std::string behind = answers(guarded, &*token, bytes, piece);
  // The token as it is, or as a part of some base64.
  const bool may_know = bytes.find(token_text) != std::string_view::npos || lower_case(bytes).find("basic") != std::string::npos;
  fuzz::must(may_know || behind.find(told) == std::string::npos);
  return 0;
}
