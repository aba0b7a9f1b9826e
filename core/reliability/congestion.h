// How much a connection may have in flight, and how fast it may send: one interface, and what it is
// told. A connection is told each packet that it sends, what each acknowledgement ends and the
// delivery rate that it measures, round trips, losses, and timeouts. It answers with a window and a
// pace, which change only when it is told something. Implementations: new_reno.h, bbr.h.
// Pure; `now` is an argument. Guarantee of each: the window lies within [2 datagrams,
// in_flight_bytes_max], and the pace is never zero.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/base/time.h"
#include "core/reliability/delivery_rate.h"
#include "core/reliability/known_path.h"

namespace ccixfer::reliability {

inline constexpr uint64_t in_flight_bytes_max = 256u << 20;  // 10 Gb/s and a round trip of 200 ms
inline constexpr uint64_t window_first_datagrams = 10;       // RFC 6928
inline constexpr uint64_t pace_min_bytes_per_s = 1000;

// What one acknowledgement tells of packets that were in flight.
struct AckReport {
  Instant now{};
  std::span<const SentPacket> packets;  // now acknowledged; ascending by number, not empty
  RateSample rate;
  uint64_t delivered_bytes = 0;  // in all, with these
  uint64_t in_flight_bytes = 0;  // after it
};

struct LossReport {
  Instant now{};
  std::span<const SentPacket> packets;  // now taken for lost; ascending by number, not empty
  uint64_t in_flight_bytes = 0;         // after it
};

class CongestionControl {
 public:
  virtual ~CongestionControl() = default;
  // A packet that asks for an acknowledgement leaves, with that much in flight before it.
  virtual void sent(uint64_t bytes, uint64_t in_flight_bytes_before, Instant now) = 0;
  virtual void acked(const AckReport& report) = 0;
  // A round trip was measured. This comes before acked() of the acknowledgement that measured it.
  virtual void round_trip(Duration latest, Duration smoothed, Instant now) = 0;
  virtual void lost(const LossReport& report) = 0;
  // From now on the longest packet has another length.
  virtual void datagram_length(uint32_t bytes) = 0;
  // Before anything is sent: what an earlier connection found of this path.
  virtual void recall(const KnownPath& path) { static_cast<void>(path); }
  virtual void timed_out() = 0;  // several probes were not answered, and all that was in flight is lost

  [[nodiscard]] virtual uint64_t window_bytes() const = 0;
  [[nodiscard]] virtual uint64_t pace_bytes_per_s() const = 0;
  // What a later connection may recall; nullopt: the path never was full.
  [[nodiscard]] virtual std::optional<KnownPath> learned() const { return std::nullopt; }
};

enum class Congestion : uint8_t { new_reno, bbr };
// `seed` spreads out in time what connections with one bottleneck do alike.
[[nodiscard]] std::unique_ptr<CongestionControl> make_congestion_control(Congestion kind, uint32_t datagram_bytes, uint64_t seed);

}  // namespace ccixfer::reliability
