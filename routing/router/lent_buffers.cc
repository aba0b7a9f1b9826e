#include "routing/router/lent_buffers.h"

#include <utility>

namespace ccixfer::routing {

void LentBuffers::give(uint8_t data_class, memory::Loan buffer, const ports::Handle& region) {
  if (in_use_(region)) {
    lent_.push_back({region, data_class, std::move(buffer)});
  } else {
    pool_.give(data_class, std::move(buffer));
  }
}

bool LentBuffers::return_free() {
  const size_t returned = std::erase_if(lent_, [this](Lent& lent) {
    if (in_use_(lent.region)) return false;
    pool_.give(lent.data_class, std::move(lent.buffer));
    return true;
  });
  return returned > 0;
}

}  // namespace ccixfer::routing
