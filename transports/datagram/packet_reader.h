// What comes in a connection's packets. A packet is looked at whole before any of it takes effect: one that cannot be taken now is
// not acknowledged, and comes again. Neither is one that had messages for which there was no room: the rest of it has taken effect.
// Private to this room; single-threaded.
#pragma once
#include "transports/datagram/engine.h"
#include "transports/datagram/handshake.h"
#include "transports/datagram/moves.h"
#include "transports/datagram/outbox.h"
#include "transports/datagram/packet_outcomes.h"

namespace ccixfer::datagram {

class PacketReader {
 public:
  PacketReader(Engine& engine, Outbox& outbox, Handshake& handshake, PacketOutcomes& outcomes, Moves& moves)
      : engine_(engine), outbox_(outbox), handshake_(handshake), outcomes_(outcomes), moves_(moves) {}

  // Data, and sealed. What a short packet leaves out is filled in.
  void on_data(const Address& from, Packet& packet, size_t datagram_size);
  void on_gone(const Address& from, const Packet& packet);

 private:
  // The frames of a sealed packet, valid until the next one; nullopt: it does not open, or not yet.
  [[nodiscard]] std::optional<Bytes> open(Connection& c, const Packet& packet);
  // What a packet says.
  struct Says {
    bool asks_for_ack = false;
    bool only_of_path = true;  // questions and answers of where the peer is, and nothing else
  };
  [[nodiscard]] bool may_take(Connection& c, Bytes body, Says& says);  // looks at all frames before any takes effect
  void on_plain_from_elsewhere(Connection& c, const Address& from, const Packet& packet, size_t datagram_size);
  void on_frame(Connection& c, const Address& from, const PacketHeader& header, const Frame& frame);
  [[nodiscard]] bool deliver(Connection& c, Bytes message);
  void on_message(Connection& c, const MessageFrame& frame);
  void on_message_part(Connection& c, const MessagePartFrame& frame);

  Engine& engine_;
  Outbox& outbox_;
  Handshake& handshake_;
  PacketOutcomes& outcomes_;
  Moves& moves_;
  std::vector<std::byte> opened_;    // the packet that is being read
  std::vector<uint64_t> described_;  // the writes that it describes, so far
  bool all_had_room_ = true;         // its messages
};

}  // namespace ccixfer::datagram
