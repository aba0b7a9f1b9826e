// What the datagram transport knows of one connection, beside what every transport does: what it keeps while nothing is under way
// stands here, and the rest in work.h. Thousands of connections are idle, so each member counts.
#pragma once
#include <memory>
#include <vector>

#include "core/reliability/rtt.h"
#include "transports/connection/connection.h"
#include "transports/datagram/cookie_jar.h"
#include "transports/datagram/datagram_net.h"
#include "transports/datagram/secured.h"
#include "transports/datagram/work.h"

namespace ccixfer::datagram {

using connection::State;

// What all connections of a transport have in common.
struct Terms {
  reliability::Congestion congestion = reliability::Congestion::new_reno;
  std::shared_ptr<reliability::PathMemory> paths;  // none: each connection begins from nothing
  const DatagramNet* net = nullptr;
  const CookieJar* secrets = nullptr;
  size_t held_bytes = 0;  // of messages that came before their turn, of all connections
  Instant now{};          // of this turn
};

struct Connection final : connection::Connection {
  using Message = Work::Message;

  // The two ends.
  Address address;  // of the peer; it may change
  uint64_t local_key = 0;
  uint64_t remote_key = 0;
  uint32_t remote_index = 0;
  uint32_t attempt = 0;  // dialler: hellos sent; acceptor: the one that it answers

  std::unique_ptr<Secured> secured;  // its ends prove who they are

  // On what both ends agreed.
  uint32_t rmas_max = 0;
  uint16_t sends_max = 0;
  uint16_t datagram_bytes = 0;  // the longest

  // The path.
  uint16_t packet_bytes = 0;  // the longest that content may have now; 0: nobody has told what both ends take
  reliability::RttEstimator rtt;

  Terms* terms = nullptr;

  // It is made if there is none, and then goes on where it was.
  [[nodiscard]] Work& work() {
    if (work_ == nullptr) wake();
    return *work_;
  }
  [[nodiscard]] bool has_work() const { return work_ != nullptr; }
  [[nodiscard]] const Work* work_if_any() const { return work_.get(); }
  // Nothing is under way, and nothing is about to end.
  [[nodiscard]] bool may_rest() const;
  void rest();  // may_rest() only

  // The machines for messages and RMA, once both ends have agreed.
  void open_machines();
  // Congestion control and pace, of a path of which nothing is known but the round trip and what earlier connections found.
  void begin_sending();

  // What goes out is sealed, and what comes must be.
  [[nodiscard]] bool is_sealed() const { return secured != nullptr && secured->has_keys(); }
  // The peer has named its end, and understands what frames say.
  [[nodiscard]] bool can_be_told() const { return remote_key != 0 && (secured == nullptr || secured->has_keys()); }

 private:
  void wake();

  Resting resting_;
  std::unique_ptr<Work> work_;
};

}  // namespace ccixfer::datagram
