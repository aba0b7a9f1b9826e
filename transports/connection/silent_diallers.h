// Connections whose dialler has yet to say what it wants, or who it is, by the time at which they came or last went on. When no
// more are let in, for whatever reason, so many silent ones would keep everybody out until the handshake's time is over; those that
// have been silent for silence_when_crowded_max make room then. Pure; single-threaded.
#pragma once
#include <cstdint>
#include <optional>

#include "core/base/counters.h"
#include "core/base/deadline_heap.h"
#include "core/base/time.h"
#include "transports/connection/limits.h"

namespace ccixfer::connection {

class SilentDiallers {
 public:
  void add(uint32_t index, Instant since) { due_.set(index, after(since, silence_when_crowded_max)); }
  void remove(uint32_t index) { due_.set(index, never); }  // whether it is there or not
  // When the first of them has to go, if others are kept out.
  [[nodiscard]] Instant deadline() const { return due_.earliest(); }
  [[nodiscard]] std::optional<uint32_t> first_due(Instant now) const {
    return deadline() <= now ? std::optional(due_.earliest_slot()) : std::nullopt;
  }

  // At the end of a turn of `engine`. `starves`: the network lets nobody in, for want of something else than the engine's places.
  template <typename Engine>
  void make_room(Engine& engine, bool starves = false) const {
    if (!engine.takes_no_more() && !starves) return;
    while (const std::optional<uint32_t> index = first_due(engine.now())) {
      engine.counters().add(Counter::hello_rejected);
      engine.release(*engine.at(*index));  // the driver removes it here
    }
  }

 private:
  DeadlineHeap due_;  // by index
};

}  // namespace ccixfer::connection
