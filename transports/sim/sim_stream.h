// Inside of sim_net: one stream, its two ends and directions. Not for other rooms.
#pragma once
#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "transports/sim/sim_net.h"

namespace ccixfer::sim {

// Bytes that the simulated kernel has by reference are those that the memory holds when the peer gets them, not those that it held
// when they were sent: a kernel may send them late, or again.
struct Packet {
  struct Lent {
    size_t at = 0;  // in `bytes`
    Bytes memory;
  };
  struct Flip {
    size_t at = 0;
    std::byte bits{};
  };
  std::vector<std::byte> bytes;
  bool fin = false;
  std::vector<Lent> lent = {};
  std::vector<Flip> flips = {};  // damage on the way

  void depart() {  // nothing of it refers to memory afterwards
    for (const Lent& part : lent)
      std::copy(part.memory.begin(), part.memory.end(), bytes.begin() + static_cast<ptrdiff_t>(part.at));
    lent.clear();
    for (const Flip& flip : flips) bytes[flip.at] ^= flip.bits;
    flips.clear();
  }
};

// One direction: bytes wait in `on_the_way` until their arrival, then in `arrived` until the peer reads them.
struct Direction {
  std::deque<Packet> on_the_way;
  std::deque<std::vector<std::byte>> arrived;
  size_t arrived_at = 0;     // already read of arrived.front()
  size_t arrived_bytes = 0;  // unread
  size_t window_used = 0;    // on the way and unread
  size_t on_the_way_bytes = 0;
  uint32_t held_up = 0;   // packets on the way that wait until the peer reads what it has
  bool has_lent = false;  // some of what was sent went by reference
  bool fin_arrived = false;
  bool sender_waits = false;  // send said `again`
  Instant last_arrival{};

  void drop_on_the_way() {
    on_the_way.clear();
    on_the_way_bytes = 0;
  }
  void depart() {
    for (Packet& packet : on_the_way) packet.depart();
  }
  // The first one with lent bytes was not sent yet, nor were those behind it.
  void drop_lent() {
    const auto first = std::ranges::find_if(on_the_way, [](const Packet& packet) { return !packet.lent.empty(); });
    for (auto packet = first; packet != on_the_way.end(); ++packet) on_the_way_bytes -= packet->bytes.size();
    on_the_way.erase(first, on_the_way.end());
  }
};

struct End {
  SimNet::Impl* owner = nullptr;  // nullptr: closed, or its process is gone
  stream::StreamId id = 0;
  NodeId node = 0;
  uint64_t incarnation = 0;
  std::string address;
  std::string identity;    // that its process proves
  bool announced = false;  // its user knows the id: events may be told
  bool connected = false;
  bool broken = false;  // a reset arrived
  bool silent = false;  // its node crashed and tells nobody
  bool loose = false;   // on its way from one SimNet to another
  bool lends = false;   // its user knows the peer to be elsewhere: lent memory goes by reference
};

struct Stream {
  std::string network;
  std::array<End, 2> ends;              // 0: the dialler
  std::array<Direction, 2> directions;  // [i]: from ends[i] to the other
};
using StreamPtr = std::shared_ptr<Stream>;

}  // namespace ccixfer::sim
