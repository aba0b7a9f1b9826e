#include "app/metrics/status_page.h"

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/trust/sha256.h"
#include "core/trust/signature.h"

namespace ccixfer::metrics {

extern const char* const status_page_text;  // made of status_page.html by app/CMakeLists.txt

namespace {

// What is between the first <tag> and its end, of which the page has one.
std::string hash_of(std::string_view page, std::string_view tag) {
  const std::string begin = fmt::format("<{}>", tag), end = fmt::format("</{}>", tag);
  const size_t from = page.find(begin), to = page.find(end);
  CHECK(from != std::string_view::npos && to != std::string_view::npos && page.find(begin, from + 1) == std::string_view::npos);
  trust::Sha256 hash;
  hash.update(as_bytes(page.substr(from + begin.size(), to - from - begin.size())));
  const trust::Sha256Digest digest = hash.digest();
  return trust::base64({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

}  // namespace

std::string_view status_page() { return status_page_text; }

const std::string& status_page_policy() {
  static const std::string policy = fmt::format(
      "Content-Security-Policy: default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; "
      "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n",
      hash_of(status_page(), "script"), hash_of(status_page(), "style"));
  return policy;
}

}  // namespace ccixfer::metrics
