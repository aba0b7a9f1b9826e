#include "tests/unit/reliability/cubic.h"

#include <algorithm>

#include "core/reliability/send_ledger.h"

namespace ccixfer::reliability::testing {

void Cubic::acked(const AckReport& report) {
  uint64_t bytes = 0;
  for (const SentPacket& packet : report.packets)
    if (packet.sent_at >= recovery_from_) bytes += packet.bytes;
  if (bytes == 0) return;
  if (window_.bytes() < threshold_) {
    window_.begin(window_.bytes() + bytes, 0);
  } else {
    window_.acked(bytes, datagram_, round_trip_, report.now);
  }
}

void Cubic::lost(const LossReport& report) {
  if (report.packets.back().sent_at < recovery_from_) return;
  recovery_from_ = report.now;
  window_.lost(datagram_);
  threshold_ = window_.bytes();
}

void Cubic::timed_out() {
  threshold_ = std::max(window_.bytes() * 7 / 10, uint64_t{2} * datagram_);
  window_.begin(uint64_t{2} * datagram_, window_.bytes());
}

uint64_t Cubic::window_bytes() const { return std::clamp(window_.bytes(), uint64_t{2} * datagram_, in_flight_bytes_max); }

}  // namespace ccixfer::reliability::testing
