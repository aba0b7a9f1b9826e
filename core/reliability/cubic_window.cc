#include "core/reliability/cubic_window.h"

#include <algorithm>
#include <cmath>

namespace ccixfer::reliability {
namespace {

constexpr double growth = 0.4;  // C, datagrams per cubic second
constexpr double kept = 0.7;    // beta: after a loss
constexpr double friendly_growth = 3 * (1 - kept) / (1 + kept);
constexpr double target_max = 1.5;  // of the window, in one round trip

}  // namespace

void CubicWindow::begin(uint64_t bytes, uint64_t bytes_max) {
  window_ = static_cast<double>(bytes);
  window_max_ = static_cast<double>(bytes_max);
  in_epoch_ = false;
}

void CubicWindow::begin_epoch(double datagram, Instant now) {
  in_epoch_ = true;
  epoch_ = now;
  friendly_ = window_;
  window_max_ = std::max(window_max_, window_);
  plateau_s_ = std::cbrt((window_max_ - window_) / datagram / growth);
}

void CubicWindow::acked(uint64_t bytes, uint32_t datagram_bytes, Duration round_trip, Instant now) {
  const double datagram = datagram_bytes;
  if (!in_epoch_) begin_epoch(datagram, now);
  const double share = static_cast<double>(bytes) / window_;  // of a round trip
  friendly_ += (friendly_ < window_max_ ? friendly_growth : 1.0) * datagram * share;
  const double at = std::chrono::duration<double>(now - epoch_ + round_trip).count() - plateau_s_;
  const double target = std::clamp(growth * at * at * at * datagram + window_max_, window_, target_max * window_);
  window_ = std::max(window_ + (target - window_) * share, friendly_);
}

void CubicWindow::lost(uint32_t datagram_bytes) {
  // Who does not get back to where it was makes way for those who came later.
  window_max_ = window_ < window_max_ ? window_ * (1 + kept) / 2 : window_;
  window_ = std::max(window_ * kept, 2.0 * datagram_bytes);
  in_epoch_ = false;
}

}  // namespace ccixfer::reliability
