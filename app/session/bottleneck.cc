#include "app/session/bottleneck.h"

#include <algorithm>
#include <cmath>

namespace ccixfer::session {

// A segment that is ready waits for the puts before it, which are on their way, or, when they have all arrived, for the
// destination to write them and to post buffers again. Without one, our disk has it to make, or the destination to answer.
Bottleneck waits_for(const SourceState& state) {
  if (!state.has_more) return Bottleneck::none;
  if (state.waits_for_rate) return Bottleneck::rate_cap;
  if (state.segment_ready && !state.credit) return state.put_in_air ? Bottleneck::network : Bottleneck::destination_disk;
  if (state.segment_ready || state.put_in_air) return state.reads && !state.segment_ready ? Bottleneck::none : Bottleneck::network;
  return state.reads ? Bottleneck::source_disk : Bottleneck::destination_disk;
}

// What is not on its way though it has a place is not read yet, or held up: a destination cannot tell.
Bottleneck waits_for(const DestinationState& state) {
  if (!state.has_more) return Bottleneck::none;
  if (state.waits_for_rate) return Bottleneck::rate_cap;
  if (!state.writes) return Bottleneck::source_or_network;
  return state.buffer_posted ? Bottleneck::none : Bottleneck::destination_disk;
}

BottleneckWatch::Weights BottleneckWatch::weights(Instant now) const {
  Weights weights = waited_;
  if (now <= since_) return weights;
  const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
  const double left = std::exp(-seconds(now - since_) / seconds(fades_in));
  for (double& weight : weights) weight *= left;
  weights[static_cast<size_t>(what_)] += 1 - left;
  return weights;
}

void BottleneckWatch::note(Instant now, Bottleneck what) {
  if (what == what_) return;  // in most turns
  waited_ = weights(now);
  what_ = what;
  since_ = std::max(since_, now);
}

// What one waits for now and then is no bottleneck: it takes a fifth of the time at least.
Bottleneck BottleneckWatch::lately(Instant now) const {
  constexpr double least = 0.2;
  const Weights waited = weights(now);
  Bottleneck longest = Bottleneck::none;
  double weight = least;
  for (size_t i = 1; i < bottlenecks; ++i) {
    if (waited[i] < weight) continue;
    weight = waited[i];
    longest = static_cast<Bottleneck>(i);
  }
  return longest;
}

}  // namespace ccixfer::session
