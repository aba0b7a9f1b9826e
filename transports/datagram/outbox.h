// The datagrams of a turn on their way to the network. They are put together one after the other
// and leave in batches: when a batch is full, and at the end of the turn. If the network has no
// room (`again`), those that it did not take are kept and leave first when it has. What comes
// beyond a full batch meanwhile is dropped, as if it were lost on the way. So is one that the
// network refuses: those are counted (datagrams_refused). Private to this room; single-threaded.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "core/base/counters.h"
#include "transports/datagram/datagram_net.h"
#include "transports/datagram/limits.h"
#include "transports/datagram/packets.h"

namespace ccixfer::datagram {

class Outbox {
 public:
  Outbox(DatagramNet& net, Counters& counters) : net_(net), counters_(counters) {}

  // Whether a packet that is begun now will leave. It may call the network.
  [[nodiscard]] bool has_room() {
    if (is_full()) flush();
    return !blocked_;
  }
  // The beginning of a packet; its frames follow, and end_packet, and put. There is room for datagram_bytes_max.
  [[nodiscard]] wire::Writer begin(const PacketHeader& header);
  // What stands of it so far, to be changed in its place.
  [[nodiscard]] MutableBytes begun(const wire::Writer& packet) const { return place(end_).first(packet.position()); }
  void put(const Address& to, const wire::Writer& packet);
  void put_empty(const Address& to, const PacketHeader& header);
  void flush();
  void flush_last();  // of a transport that is being destroyed
  [[nodiscard]] bool is_full() const { return end_ == batch_datagrams_max; }
  [[nodiscard]] bool blocked() const { return blocked_; }  // the network has no room
  [[nodiscard]] bool unblock() { return std::exchange(blocked_, false); }
  // That the network refused what was to go there last, and why, in words. "": it took it, or another one was refused since.
  [[nodiscard]] std::string refusal(const Address& to) const;

 private:
  static constexpr size_t places = batch_datagrams_max + 1;  // the last is of what is dropped
  [[nodiscard]] MutableBytes place(size_t index) const { return {memory_.get() + index * datagram_bytes_max, datagram_bytes_max}; }
  [[nodiscard]] std::span<const Datagram> batch() const { return std::span(datagrams_).subspan(first_, end_ - first_); }

  DatagramNet& net_;
  Counters& counters_;
  // Of each datagram. Pages that none has reached take no memory, and nothing is cleared that will be written.
  const std::unique_ptr<std::byte[]> memory_ = std::make_unique_for_overwrite<std::byte[]>(places * datagram_bytes_max);
  std::array<Datagram, batch_datagrams_max> datagrams_{};
  size_t first_ = 0;  // that the network has not taken
  size_t end_ = 0;    // behind the last that is complete
  bool blocked_ = false;
  Address refused_;  // if refused_error_ is not 0
  int refused_error_ = 0;
};

}  // namespace ccixfer::datagram
