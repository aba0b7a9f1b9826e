#include "app/recv/window.h"

#include <algorithm>

namespace ccixfer::recv {

void Window::expect_long_path(uint64_t posted) {
  if (segments_ >= window_segments_long_path) return;
  segments_ = window_segments_long_path;
  judged_from_ = posted + segments_;
  waited_ = Duration(0);
  count_ = 0;
  mean_before_ = forever;
}

void Window::arrived(uint64_t n, Duration waited, uint64_t posted) {
  if (n < judged_from_) return;
  waited_ += waited;
  if (++count_ < std::max(2u, segments_ / 4)) return;
  const Duration mean = waited_ / count_;
  waited_ = Duration(0);
  count_ = 0;
  if (mean_before_ != forever && mean >= mean_before_ * 3 / 2) return;  // half way between the same time and twice the time
  mean_before_ = mean;
  judged_from_ = posted + segments_;  // behind those that the growth itself posts, all at once
  segments_ = std::min(2 * segments_, window_segments_max);
}

}  // namespace ccixfer::recv
