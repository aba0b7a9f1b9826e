#include "core/reliability/new_reno.h"

#include <algorithm>

#include "core/reliability/send_ledger.h"

namespace ccixfer::reliability {
namespace {
constexpr uint64_t window_min_datagrams = 2;
}  // namespace

NewReno::NewReno(uint32_t datagram_bytes) : datagram_(datagram_bytes), window_(window_first_datagrams * datagram_bytes) {}

void NewReno::acked(const AckReport& report) {
  for (const SentPacket& packet : report.packets) {
    if (packet.sent_at > recovery_from_ && packet.limited) grow(packet.bytes);
  }
}

void NewReno::grow(uint64_t acked_bytes) {
  if (is_doubling()) {
    window_ += acked_bytes;
  } else {
    growth_ += acked_bytes;
    while (growth_ >= window_) {
      growth_ -= window_;
      window_ += datagram_;
    }
  }
  window_ = std::min(window_, in_flight_bytes_max);
}

void NewReno::lost(const LossReport& report) {
  if (report.packets.back().sent_at <= recovery_from_) return;  // of a flight that has been paid for
  recovery_from_ = report.now;
  threshold_ = window_ = std::max(window_ / 2, window_min_datagrams * datagram_);
  growth_ = 0;
}

void NewReno::timed_out() {
  threshold_ = std::max(window_ / 2, window_min_datagrams * datagram_);
  window_ = window_min_datagrams * datagram_;
  growth_ = 0;
}

void NewReno::datagram_length(uint32_t bytes) {
  datagram_ = bytes;
  window_ = std::max(window_, window_min_datagrams * datagram_);
}

uint64_t NewReno::pace_bytes_per_s() const {
  const auto round_trip_us = static_cast<uint64_t>(std::max<int64_t>(smoothed_.count() / 1000, 1));
  return std::max(window_ * (is_doubling() ? 8 : 5) / 4 * 1'000'000 / round_trip_us, pace_min_bytes_per_s);
}

}  // namespace ccixfer::reliability
