// What the dialler changes of the owners and modes that the source has (--chown, --chmod): at the source in a push, at the
// destination in a pull, so that it never travels.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "app/session/entry.h"
#include "app/session/mode_changes.h"

namespace ccixfer::session {

struct OwnerWish {
  bool is_set = false;
  uint32_t id = 0;
  std::string name = {};  // "": it was given by its number
};

struct Tweaks {
  ModeChanges modes = {};
  OwnerWish user = {}, group = {};
};
using TweaksRef = std::shared_ptr<const Tweaks>;  // none: nothing is changed

void apply(const Tweaks& tweaks, Entry& entry);

}  // namespace ccixfer::session
