#include "core/reliability/congestion.h"

#include <algorithm>

namespace ccixfer::reliability {
namespace {
constexpr uint64_t window_first_datagrams = 10;  // RFC 6928
constexpr uint64_t window_min_datagrams = 2;
}  // namespace

NewReno::NewReno(uint32_t datagram_bytes) : datagram_(datagram_bytes), window_(window_first_datagrams * datagram_bytes) {}

void NewReno::acked(uint64_t bytes, Instant sent_at, bool limited) {
  if (sent_at <= recovery_from_ || !limited) return;
  if (probing()) {
    window_ += bytes;
  } else {
    growth_ += bytes;
    while (growth_ >= window_) {
      growth_ -= window_;
      window_ += datagram_;
    }
  }
  window_ = std::min(window_, in_flight_bytes_max);
}

void NewReno::lost(Instant newest_sent_at, Instant now) {
  if (newest_sent_at <= recovery_from_) return;  // of a flight that has been paid for
  recovery_from_ = now;
  threshold_ = window_ = std::max(window_ / 2, window_min_datagrams * datagram_);
  growth_ = 0;
}

void NewReno::timed_out() {
  threshold_ = std::max(window_ / 2, window_min_datagrams * datagram_);
  window_ = window_min_datagrams * datagram_;
  growth_ = 0;
}

}  // namespace ccixfer::reliability
