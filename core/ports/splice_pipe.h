// A place for bytes that pass from one connection of this process to another without coming into its memory: a pipe of the kernel,
// for sockets. It is bounded, first in first out, and belongs to one arrival (core/ports/fill_progress.h) at a time, of which it
// holds the last bytes that came. Whoever made it owns it, until no operation and no region names the fill. Single-threaded.
// Source: routing/router/README.md 'A fragment's way'; Linux splice(2).
#pragma once
#include <cstddef>

#include "core/base/bytes.h"

namespace ccixfer::ports {

class SplicePipe {
 public:
  virtual ~SplicePipe() = default;
  [[nodiscard]] virtual size_t held_bytes() const = 0;
  // All that it holds, at the beginning of `memory`, which has room for it. It is empty then.
  virtual void unload(MutableBytes memory) = 0;
};

}  // namespace ccixfer::ports
