// What goes out: answers first, then messages, then operations. As much as is there shares a packet, and a packet goes out only
// with a credit of the peer's. Work is bounded by packets_per_turn_max for each connection and turn. Private to this room;
// single-threaded.
#pragma once
#include <vector>

#include "core/wire/cursor.h"
#include "transports/rdma/engine.h"
#include "transports/rdma/packets.h"
#include "transports/rdma/registered_memory.h"

namespace ccixfer::rdma {

class PacketWriter {
 public:
  PacketWriter(Engine& engine, RdmaNet& net, const RegisteredMemory& memory);

  void transmit(Connection& c);
  void send_at_once(Connection& c);  // a message was pushed
  [[nodiscard]] static bool hold_acknowledgement(Connection& c);
  // There is something that could go out now.
  [[nodiscard]] static bool can_go_on(const Connection& c);
  [[nodiscard]] static uint32_t max_send_bytes(const RdmaNet& net);

 private:
  [[nodiscard]] static bool wants_to_send(const Connection& c);
  [[nodiscard]] static bool operations_to_send(const Connection& c);
  [[nodiscard]] static bool acknowledges_alone(const Connection& c);
  [[nodiscard]] bool has_room(const wire::Writer& out, size_t bytes) const {
    return packet_.size() - packet_tag_bytes - out.position() >= bytes;
  }
  [[nodiscard]] size_t build(Connection& c);  // bytes of the packet, without the tag of its seal
  [[nodiscard]] Bytes finish(Connection& c, size_t size, bool sealed);
  void add_answers(Connection& c, wire::Writer& out);
  void add_ends(Connection& c, wire::Writer& out);
  void add_inline_reads(Connection& c, wire::Writer& out);
  void add_messages(Connection& c, wire::Writer& out);
  void add_operations(Connection& c, wire::Writer& out);
  void add_write(Connection& c, wire::Writer& out, uint32_t slot);
  void announce(Connection& c, wire::Writer& out, uint32_t slot);
  [[nodiscard]] bool post(Connection& c, Bytes packet);

  Engine& engine_;
  RdmaNet& net_;
  const RegisteredMemory& memory_;
  std::vector<std::byte> packet_;  // as long as one may be
};

}  // namespace ccixfer::rdma
