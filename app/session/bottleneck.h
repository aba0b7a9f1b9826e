// What a transfer waits for, as the progress line says it. A role notes in each turn what it waits for from then on; the answer is
// what it waited for the longest lately, older times fading. Pure: time is an argument.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/time.h"

namespace ccixfer::session {

enum class Bottleneck : uint8_t {
  none,  // nobody waits, or it is not known
  source_disk,
  network,
  destination_disk,
  source_or_network,  // as a destination sees it
  rate_cap,           // --bwlimit, here
};
inline constexpr size_t bottlenecks = 6;

// Of a source: what it has and what keeps that from going.
struct SourceState {
  bool has_more = false;       // entries, or wanted data, that have not ended
  bool reads = false;          // jobs are in our disk
  bool segment_ready = false;  // filled, and not put
  bool put_in_air = false;     // not acknowledged
  bool credit = false;         // for another put
  bool waits_for_rate = false;
};
[[nodiscard]] Bottleneck waits_for(const SourceState& state);

// Of a destination: what it has room for, and its own disk.
struct DestinationState {
  bool has_more = false;       // not everything has ended
  bool buffer_posted = false;  // a put has a place
  bool writes = false;         // jobs are in our disk
  bool waits_for_rate = false;
};
[[nodiscard]] Bottleneck waits_for(const DestinationState& state);

class BottleneckWatch {
 public:
  // From `now` on, until the next call.
  void note(Instant now, Bottleneck what);
  [[nodiscard]] Bottleneck lately(Instant now) const;

 private:
  using Weights = std::array<double, bottlenecks>;
  [[nodiscard]] Weights weights(Instant now) const;

  static constexpr Duration fades_in = std::chrono::seconds(2);  // with this time constant, as the rate does
  Bottleneck what_ = Bottleneck::none;
  Instant since_{};
  Weights waited_{};  // until since_
};

}  // namespace ccixfer::session
