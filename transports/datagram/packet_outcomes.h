// What became of packets: what an acknowledgement or a silence says of them, and what follows for the frames that they carried.
// Private to this room; single-threaded.
#pragma once
#include "transports/datagram/engine.h"

namespace ccixfer::datagram {

class PacketOutcomes {
 public:
  explicit PacketOutcomes(Engine& engine) : engine_(engine) {}

  void acknowledged(Connection& c, const reliability::Ack& ack);
  void silence(Connection& c);  // the time for an acknowledgement is over
  void moved(Connection& c);    // the peer has another address: what is on its way goes where it was

 private:
  void learn(Connection& c);
  void tell_congestion(Connection& c);
  void carried_acked(Connection& c, const reliability::Carried& carried);
  static void carried_lost(Connection& c, const reliability::Carried& carried);

  Engine& engine_;
  reliability::SendLedger::Outcome outcome_;
};

}  // namespace ccixfer::datagram
