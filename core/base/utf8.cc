#include "core/base/utf8.h"

#include <cstddef>

namespace ccixfer {

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t more = first < 0x80 ? 0 : first < 0xC2 ? 9 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : first < 0xF5 ? 3 : 9;
    if (more == 9 || text.size() - i <= more) return false;
    for (size_t k = 1; k <= more; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
    }
    if (more >= 2) {
      const auto second = static_cast<unsigned char>(text[i + 1]);
      const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
      const bool surrogate = first == 0xED && second >= 0xA0;
      const bool beyond = first == 0xF4 && second >= 0x90;
      if (overlong || surrogate || beyond) return false;
    }
    i += more + 1;
  }
  return true;
}

}  // namespace ccixfer
