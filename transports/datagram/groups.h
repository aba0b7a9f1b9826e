// The connections of groups (CCI's multicast): one that sends to a group, or one that receives what anybody sends to it. They have
// no peer, and so nothing of what connections have: no handshake, no acknowledgement, no keepalive. Therefore they stand apart from
// the engine's table, and what comes to a group meets nothing but this class: it is delivered, or counted and dropped, and never
// answered. Their ids have group_index_bit, which the engine's never reach. Guarantees: unreliable, unordered; a message at most
// once while its sender is remembered (group_senders.h); each operation ends once; reports come only from within a turn. Errors:
// dial: usage (not a group's name, an identity is configured, connect data), network (the host cannot join). Bounds: groups_max,
// sends_in_flight_max. Private to this room; single-threaded. Source: CCI §III.B (UU_MC_TX, UU_MC_RX).
#pragma once
#include <string>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"
#include "core/ports/entropy.h"
#include "core/ports/transport.h"
#include "transports/datagram/engine.h"
#include "transports/datagram/group_senders.h"
#include "transports/datagram/outbox.h"

namespace ccixfer::datagram {

inline constexpr uint32_t group_index_bit = 1u << 31;

class Groups {
 public:
  // `has_keys`: connections prove who their peers are.
  Groups(Engine& engine, Outbox& outbox, DatagramNet& net, ports::Entropy& entropy, bool has_keys)
      : engine_(engine), outbox_(outbox), net_(net), entropy_(entropy), has_keys_(has_keys) {}
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  [[nodiscard]] static bool serves(ports::Attribute attribute) {
    return attribute == ports::Attribute::multicast_send || attribute == ports::Attribute::multicast_receive;
  }
  [[nodiscard]] static bool owns(ports::ConnectionId id) { return (id.index & group_index_bit) != 0; }

  // What ports::Transport asks.
  [[nodiscard]] Result<ports::ConnectionId> dial(const ports::DialRequest& request);
  [[nodiscard]] Status send(ports::ConnectionId id, std::span<const Bytes> parts, uint64_t token);
  [[nodiscard]] Status rma(ports::ConnectionId id) const;
  void disconnect(ports::ConnectionId id);
  [[nodiscard]] std::vector<ports::HopInfo> hops(ports::ConnectionId id) const;
  [[nodiscard]] ports::PeerIdentity peer(ports::ConnectionId id) const;

  // A turn begins, and ends.
  void begin_turn();
  void end_turn();
  [[nodiscard]] bool is_due() const;  // the next turn has something to do
  // What the network tells of a group that was joined.
  void received(uint32_t member, std::span<const Datagram> batch);

 private:
  struct Waiting {
    uint64_t token = 0;
    std::vector<std::byte> bytes;
  };
  struct Member {
    ports::ConnectionId id;
    ports::Attribute attribute = ports::Attribute::multicast_send;
    std::string uri;
    Address group;
    uint32_t max_send_bytes = 0;
    bool told = false;  // on_connected
    bool left = false;  // disconnect(): what waits goes out, and then it is over
    uint64_t key = 0;
    uint64_t number = 0;        // of the next message
    RingBuffer<Waiting> queue;  // of one that sends
    GroupSenders senders;       // of one that receives
    [[nodiscard]] bool receives() const { return attribute == ports::Attribute::multicast_receive; }
  };
  [[nodiscard]] Member* find(ports::ConnectionId id) const;  // nullptr: stale, or our application has left it
  void wake();
  void received_one(Member& member, const Datagram& datagram);
  void transmit(Member& member);
  void send_first(Member& member);

  Engine& engine_;
  Outbox& outbox_;
  DatagramNet& net_;
  ports::Entropy& entropy_;
  const bool has_keys_;
  SlotTable<Member> members_;
};

}  // namespace ccixfer::datagram
