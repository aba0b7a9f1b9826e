// The states of a posted buffer. Only the head of a mailbox is ever written, and only while it is filling or closing.
//
//   state     | become_head | threshold | revoke  | unused    | cancel
//   queued    | filling     | our bug   | our bug | our bug   | cancelled
//   filling   | our bug     | closing   | revoked | our bug   | our bug
//   closing   | our bug     | our bug   | revoked | published | our bug
//   revoked   | our bug     | our bug   | our bug | published | cancelled
//   published, cancelled: the owner has it; nothing happens to it any more
//
//   threshold: reached, or nothing more fits (managed): nothing new binds, the bound operations are waited for
//   revoke: increment_epoch, rewind or close: nothing is placed any more, only those in the middle of a fragment are waited for
//   unused: no operation is bound (closing), nobody is placing (revoked)
// `threshold` leaves filling and leads nowhere back to it: whoever crosses a threshold is the only one. A table belongs to one
// thread, so that is all there is to 'exactly one thread crosses'.
#pragma once
#include <cstdint>
#include <optional>

namespace ccixfer::rvma {

enum class BufferState : uint8_t { queued, filling, closing, revoked, published, cancelled };
enum class BufferEvent : uint8_t { become_head, threshold, revoke, unused, cancel };

[[nodiscard]] constexpr std::optional<BufferState> next_state(BufferState state, BufferEvent event) {
  switch (state) {
    case BufferState::queued:
      if (event == BufferEvent::become_head) return BufferState::filling;
      if (event == BufferEvent::cancel) return BufferState::cancelled;
      break;
    case BufferState::filling:
      if (event == BufferEvent::threshold) return BufferState::closing;
      if (event == BufferEvent::revoke) return BufferState::revoked;
      break;
    case BufferState::closing:
      if (event == BufferEvent::revoke) return BufferState::revoked;
      if (event == BufferEvent::unused) return BufferState::published;
      break;
    case BufferState::revoked:
      if (event == BufferEvent::unused) return BufferState::published;
      if (event == BufferEvent::cancel) return BufferState::cancelled;
      break;
    case BufferState::published:
    case BufferState::cancelled:
      break;
  }
  return std::nullopt;
}

}  // namespace ccixfer::rvma
