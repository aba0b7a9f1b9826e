#include "transports/datagram/packet_length.h"

#include <algorithm>

namespace ccixfer::datagram {
namespace {

bool is_probe(const reliability::SentPacket& packet) {
  return packet.carried.size() == 1 && static_cast<Carries>(packet.carried[0].kind) == Carries::path_probe;
}

}  // namespace

void begin_packet_length(Connection& c, bool is_path_known) {
  c.work().path = std::make_unique<reliability::PathMtu>(packet_bytes_base, c.datagram_bytes);
  if (is_path_known) c.work().path->go_on(c.datagram_bytes, never);
  c.packet_bytes = static_cast<uint16_t>(c.work().path->packet_bytes());
}

void apply_packet_length(Connection& c) {
  const bool is_sealed = c.secured != nullptr;
  if (c.work().congestion != nullptr) c.work().congestion->datagram_length(c.packet_bytes);
  c.work().pacer.bound(burst_datagrams_least * c.packet_bytes, burst_datagrams_most * c.packet_bytes);
  c.work().messages.fit(message_bytes_max(c.packet_bytes, is_sealed));
  c.work().rma.fit(chunk_bytes_of(c.packet_bytes, is_sealed));
  c.work().served.fit(chunk_bytes_of(c.packet_bytes, is_sealed));
}

void learn_path(Connection& c, std::span<const reliability::SentPacket> acked, std::vector<reliability::SentPacket>& lost,
                bool in_silence) {
  if (c.work().path == nullptr) return;
  for (const reliability::SentPacket& packet : acked) {
    if (is_probe(packet)) {
      c.work().path->probe_acked(packet.bytes);
    } else {
      c.work().path->acked(packet.number, packet.bytes);
    }
  }
  for (const reliability::SentPacket& packet : lost) {
    if (is_probe(packet) && in_silence) {
      c.work().path->probe_forgotten();
    } else if (is_probe(packet)) {
      c.work().path->probe_lost(packet.bytes);
    } else if (!in_silence) {
      c.work().path->lost(packet.number, packet.bytes);
    }
  }
  std::erase_if(lost, is_probe);
  if (c.work().path->packet_bytes() == c.packet_bytes) return;
  c.packet_bytes = static_cast<uint16_t>(c.work().path->packet_bytes());
  apply_packet_length(c);
}

}  // namespace ccixfer::datagram
