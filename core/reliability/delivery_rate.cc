#include "core/reliability/delivery_rate.h"

#include <algorithm>

#include "core/reliability/send_ledger.h"

namespace ccixfer::reliability {

uint64_t bytes_per_s(uint64_t bytes, Duration interval) {
  constexpr uint64_t ns_per_s = 1'000'000'000;
  const auto ns = static_cast<uint64_t>(std::max<int64_t>(interval.count(), 1));
  if (bytes <= UINT64_MAX / ns_per_s) return bytes * ns_per_s / ns;
  return bytes / ns * ns_per_s;
}

uint64_t RateSample::bytes_per_s() const { return exists() ? reliability::bytes_per_s(delivered_bytes, interval) : 0; }

DeliveryMark DeliveryRate::sent(Instant now, uint64_t in_flight_bytes_before) {
  if (in_flight_bytes_before == 0) first_sent_at_ = delivered_at_ = now;
  return {delivered_bytes_, delivered_at_, first_sent_at_, app_limited_until_ != 0};
}

RateSample DeliveryRate::acked(std::span<const SentPacket> packets, Instant now, Duration round_trip_least) {
  RateSample sample;
  if (packets.empty()) return sample;
  for (const SentPacket& packet : packets) delivered_bytes_ += packet.bytes;
  delivered_at_ = now;
  if (delivered_bytes_ > app_limited_until_) app_limited_until_ = 0;
  const SentPacket& newest = packets.back();
  sample.delivered_before = newest.mark.delivered_bytes;
  sample.delivered_bytes = delivered_bytes_ - newest.mark.delivered_bytes;
  sample.app_limited = newest.mark.app_limited;
  first_sent_at_ = newest.sent_at;
  const Duration interval = std::max(newest.sent_at - newest.mark.first_sent_at, now - newest.mark.delivered_at);
  if (interval >= round_trip_least) sample.interval = interval;
  return sample;
}

void DeliveryRate::app_limited(uint64_t in_flight_bytes) {
  app_limited_until_ = std::max<uint64_t>(delivered_bytes_ + in_flight_bytes, 1);
}

}  // namespace ccixfer::reliability
