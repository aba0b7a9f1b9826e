// What a Link knows of each of its connections, of each operation under way on them, and what its handler is to be told. Of link.cc
// only.
#pragma once
#include <cstdint>
#include <variant>
#include <vector>

#include "app/session/link.h"
#include "app/session/link_seal.h"
#include "core/base/ring_buffer.h"

namespace ccixfer::session {

enum class LaneState : uint8_t { waiting, up, closing };

struct Lane {
  LaneIndex index = 0;
  cci::Connection connection;
  LaneState state = LaneState::waiting;
  bool announced = false;   // on_lane_up was or will be called
  uint32_t operations = 0;  // our operations on it that have not ended
  uint32_t puts = 0;        // the puts among them
  uint32_t controls = 0;    // the session messages among them
  Instant control_since{};  // when the last sign came that session messages are delivered; before, when the first was sent
  bool silent = false;      // no sign came for long, so other lanes carry session messages
  bool path_going = false;  // a router of its path stops soon
  bool settling = false;    // its puts end before another connection takes its place
  Instant settling_since{};
  Instant closing_since{};
  LaneSealing sealing;
  RingBuffer<std::vector<std::byte>> out;  // lane messages that wait for room in the connection
  bool front_is_sealed = false;            // the first of them is sealed under its number, so it must not be dropped or changed
  bool newest_out_is_credit = false;
  std::vector<Message> in;  // lane messages that came before the lane was announced
};

enum class OperationKind : uint8_t { put, control, lane_message };
struct Operation {
  OperationKind kind = OperationKind::put;
  uint64_t lane = 0;     // its connection, packed
  uint64_t context = 0;  // put: the user's; control: the sequence
};

// The bytes that the connection moved in both directions, those of operations that have not ended included.
[[nodiscard]] inline uint64_t moved_bytes_of(const cci::Endpoint& endpoint, cci::Connection connection) {
  return endpoint.delivered_bytes(connection).value_or(0) + endpoint.received_bytes(connection).value_or(0);
}

inline cci::RmaOptions put_options(uint64_t mailbox, uint64_t key, uint64_t epoch, uint64_t length_bytes) {
  cci::RmaOptions options;
  options.write = true;
  options.remote.handle.kind = ports::HandleKind::mailbox;
  options.remote.handle.number = mailbox;
  options.remote.handle.key = key;
  options.remote.put.epoch = epoch;
  options.remote.put.total_bytes = length_bytes;
  options.length_bytes = length_bytes;
  options.buffer_is_posted = true;  // puts go as credit allows
  return options;
}

// What the handler is to be told, in order.
struct LaneUp {
  LaneIndex lane;
};
struct LaneDown {
  LaneIndex lane;
};
struct LaneMessage {
  LaneIndex lane;
  Message message;
};
struct PutEnded {
  LaneIndex lane;
  uint64_t context;
  Status status;
};
using Notice = std::variant<LaneUp, LaneDown, LaneMessage, Message, PutEnded>;

inline void tell(LinkHandler& handler, const Notice& notice) {
  if (const auto* up = std::get_if<LaneUp>(&notice)) return handler.on_lane_up(up->lane);
  if (const auto* down = std::get_if<LaneDown>(&notice)) return handler.on_lane_down(down->lane);
  if (const auto* message = std::get_if<LaneMessage>(&notice)) return handler.on_lane_message(message->lane, message->message);
  if (const auto* message = std::get_if<Message>(&notice)) return handler.on_message(*message);
  if (const auto* put = std::get_if<PutEnded>(&notice)) return handler.on_put(put->lane, put->context, put->status);
}

}  // namespace ccixfer::session
