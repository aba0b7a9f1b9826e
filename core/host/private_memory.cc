#include "core/host/private_memory.h"

#include <fstream>

namespace ccixfer::host {

bool counts_private_memory(const std::string& setting) {
  constexpr int never_more_than_there_is = 2;
  int value = 0;
  return (std::ifstream(setting) >> value) && value == never_more_than_there_is;
}

}  // namespace ccixfer::host
