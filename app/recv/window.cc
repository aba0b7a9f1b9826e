#include "app/recv/window.h"

#include <algorithm>

namespace ccixfer::recv {

void Window::arrived(uint64_t n, Duration waited, uint64_t posted) {
  shortest_ = std::min(shortest_, waited);
  if (n < judged_from_ || waited >= 2 * shortest_) return;
  judged_from_ = posted + segments_;  // behind those that the growth itself posts, all at once
  segments_ = std::min(2 * segments_, window_segments_max);
}

}  // namespace ccixfer::recv
