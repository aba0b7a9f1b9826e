// What tests of whole transfers below a real directory need beside the rig of a destination.
#pragma once
#include <string>
#include <vector>

#include "tests/unit/recv/destination_rig.h"

namespace ccixfer::recv::test {

inline std::string hex_free(const std::vector<std::byte>& data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

}  // namespace ccixfer::recv::test
