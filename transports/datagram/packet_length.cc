#include "transports/datagram/packet_length.h"

#include <algorithm>

namespace ccixfer::datagram {
namespace {

bool is_probe(const reliability::SentPacket& packet) {
  return packet.carried.size() == 1 && static_cast<Carries>(packet.carried[0].kind) == Carries::path_probe;
}

}  // namespace

void begin_packet_length(Connection& c, bool is_path_known) {
  c.packet_bytes = c.datagram_bytes;
  c.path.reset();
  if (is_path_known) return;
  c.path = std::make_unique<reliability::PathMtu>(packet_bytes_base, c.datagram_bytes);
  c.packet_bytes = static_cast<uint16_t>(c.path->packet_bytes());
}

void apply_packet_length(Connection& c) {
  const bool is_sealed = c.secured != nullptr;
  if (c.congestion != nullptr) c.congestion->datagram_length(c.packet_bytes);
  c.pacer.bound(burst_datagrams_least * c.packet_bytes, burst_datagrams_most * c.packet_bytes);
  c.messages.fit(message_bytes_max(c.packet_bytes, is_sealed));
  c.rma.fit(chunk_bytes_of(c.packet_bytes, is_sealed));
  c.served.fit(chunk_bytes_of(c.packet_bytes, is_sealed));
}

void learn_path(Connection& c, std::span<const reliability::SentPacket> acked, std::vector<reliability::SentPacket>& lost,
                bool in_silence) {
  if (c.path == nullptr) return;
  for (const reliability::SentPacket& packet : acked) {
    if (is_probe(packet)) {
      c.path->probe_acked(packet.bytes);
    } else {
      c.path->acked(packet.number, packet.bytes);
    }
  }
  for (const reliability::SentPacket& packet : lost) {
    if (is_probe(packet) && in_silence) {
      c.path->probe_forgotten();
    } else if (is_probe(packet)) {
      c.path->probe_lost(packet.bytes);
    } else if (!in_silence) {
      c.path->lost(packet.number, packet.bytes);
    }
  }
  std::erase_if(lost, is_probe);
  if (c.path->packet_bytes() == c.packet_bytes) return;
  c.packet_bytes = static_cast<uint16_t>(c.path->packet_bytes());
  apply_packet_length(c);
}

}  // namespace ccixfer::datagram
