// The status page: status_page.html, as it stands in the source tree, and what a browser may do with it: run the script and use the
// styles that are in it, which it knows by their hashes, ask the place where it comes from, and nothing else. Any thread.
// Source: Content Security Policy Level 3 (w3.org).
#pragma once
#include <string>
#include <string_view>

namespace ccixfer::metrics {

[[nodiscard]] std::string_view status_page();
[[nodiscard]] const std::string& status_page_policy();  // a header, with its line end

}  // namespace ccixfer::metrics
