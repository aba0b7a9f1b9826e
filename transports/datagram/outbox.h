// The datagram that is being put together, and its way to the network. Private to this room; single-threaded.
#pragma once
#include <utility>
#include <vector>

#include "core/base/counters.h"
#include "transports/datagram/datagram_net.h"
#include "transports/datagram/packets.h"

namespace ccixfer::datagram {

class Outbox {
 public:
  Outbox(DatagramNet& net, Counters& counters) : net_(net), counters_(counters) {}

  // The beginning of a packet; its frames follow, and end_packet.
  [[nodiscard]] wire::Writer begin(const PacketHeader& header) {
    bytes_.clear();
    wire::Writer out(bytes_);
    begin_packet(out, header);
    return out;
  }
  void put(const Address& to) {
    counters_.add(Counter::bytes_out, bytes_.size());
    if (!net_.send(to, bytes_)) blocked_ = true;  // as if it were lost on the way
  }
  void put_empty(const Address& to, const PacketHeader& header) {
    wire::Writer out = begin(header);
    end_packet(out);
    put(to);
  }
  [[nodiscard]] bool blocked() const { return blocked_; }  // the network took no more
  [[nodiscard]] bool unblock() { return std::exchange(blocked_, false); }

 private:
  DatagramNet& net_;
  Counters& counters_;
  std::vector<std::byte> bytes_;
  bool blocked_ = false;
};

}  // namespace ccixfer::datagram
