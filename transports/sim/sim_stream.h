// Inside of sim_net: one stream, its two ends and directions. Not for other rooms.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "transports/sim/sim_net.h"

namespace ccixfer::sim {

struct Packet {
  std::vector<std::byte> bytes;
  bool fin = false;
};

// One direction: bytes wait in `on_the_way` until their arrival, then in `arrived` until the peer reads them.
struct Direction {
  std::deque<Packet> on_the_way;
  std::deque<std::vector<std::byte>> arrived;
  size_t arrived_at = 0;     // already read of arrived.front()
  size_t arrived_bytes = 0;  // unread
  size_t window_used = 0;    // on the way and unread
  bool fin_arrived = false;
  bool sender_waits = false;  // send said `again`
  Instant last_arrival{};
};

struct End {
  SimNet::Impl* owner = nullptr;  // nullptr: closed, or its process is gone
  stream::StreamId id = 0;
  NodeId node = 0;
  uint64_t incarnation = 0;
  std::string address;
  bool announced = false;  // its user knows the id: events may be told
  bool connected = false;
  bool broken = false;  // a reset arrived
  bool silent = false;  // its node crashed and tells nobody
};

struct Stream {
  std::string network;
  std::array<End, 2> ends;              // 0: the dialler
  std::array<Direction, 2> directions;  // [i]: from ends[i] to the other
};
using StreamPtr = std::shared_ptr<Stream>;

}  // namespace ccixfer::sim
