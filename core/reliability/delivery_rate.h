// How fast the network delivers what a connection sends. Each acknowledgement that tells something
// new gives one sample: the bytes that were delivered between the moment when the newest of its
// packets was sent and now, and the time that took. Pure; `now` is an argument.
//
// The interval is the longer of two: the time in which those bytes were sent, and the time in which
// they were acknowledged. So neither a burst of ours nor acknowledgements that come in a bunch make
// the network look faster than it is. A sample whose interval is shorter than the least round trip
// is none. A sample is `app_limited` if the application gave too little to send while its packets
// left: such a rate is what the application did, and perhaps not all that the network can do.
// Source: draft-cheng-iccrg-delivery-rate-estimation-02, section 3.
#pragma once
#include <cstdint>
#include <span>

#include "core/base/time.h"

namespace ccixfer::reliability {

struct SentPacket;

// What each packet keeps of the moment when it was sent.
struct DeliveryMark {
  uint64_t delivered_bytes = 0;  // that the connection had delivered by then
  Instant delivered_at{};        // when the last of those were acknowledged
  Instant first_sent_at{};       // when the first packet left of the flight that it belongs to
  bool app_limited = false;
};

struct RateSample {
  uint64_t delivered_bytes = 0;  // within the interval
  Duration interval{0};          // zero: there is no sample
  bool app_limited = false;
  uint64_t delivered_before = 0;  // total when the newest packet was sent; set even without a sample

  [[nodiscard]] bool exists() const { return interval > Duration{0}; }
  [[nodiscard]] uint64_t bytes_per_s() const;  // 0: there is no sample
};

[[nodiscard]] uint64_t bytes_per_s(uint64_t bytes, Duration interval);

class DeliveryRate {
 public:
  // Of the packet that is sent now, with that much in flight before it.
  [[nodiscard]] DeliveryMark sent(Instant now, uint64_t in_flight_bytes_before);
  // `packets` were acknowledged together; ascending by number.
  [[nodiscard]] RateSample acked(std::span<const SentPacket> packets, Instant now, Duration round_trip_least);
  // The application has nothing more to send now, though the window and the pace would let it.
  void app_limited(uint64_t in_flight_bytes);

  [[nodiscard]] uint64_t delivered_bytes() const { return delivered_bytes_; }  // in all

 private:
  uint64_t delivered_bytes_ = 0;
  Instant delivered_at_{};
  Instant first_sent_at_{};
  uint64_t app_limited_until_ = 0;  // what is sent counts as limited until so much is delivered; 0: not
};

}  // namespace ccixfer::reliability
