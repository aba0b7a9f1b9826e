// Whether a text is UTF-8, strictly: no overlong form, no surrogate, nothing over U+10FFFF, nothing cut off.
#pragma once
#include <string_view>

namespace ccixfer {

[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace ccixfer
