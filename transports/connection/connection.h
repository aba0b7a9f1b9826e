// What the engine knows of one connection on any transport. A driver derives its own from it, with the machines for messages and
// RMA. Only the engine writes what stands here; a driver fills in what is marked so.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/ports/transport.h"
#include "transports/connection/keepalive.h"
#include "transports/connection/state.h"
#include "transports/connection/step_limit.h"

namespace ccixfer::connection {

struct Connection {
  ports::ConnectionId id;
  uint32_t max_send_bytes = 0;
  State state = State::gone;
  ports::Role role = ports::Role::application;                      // the driver's, of one that was accepted
  ports::Attribute attribute = ports::Attribute::reliable_ordered;  // the driver's, of one that was accepted
  bool dialler = false;
  bool dead = false;        // the core was told of its end, or told us: its id means nothing any more
  bool cancelled = false;   // disconnect() before there was a connection, or abort()
  bool left = false;        // disconnect() of an established one, not yet acted upon
  bool queued = false;      // in the ready list
  bool asks_later = false;  // dialled ahead, and Engine::ask() has not come yet: the driver says nothing for the application
  StepLimit step;           // how long it may stay in this state
  Keepalive keepalive;
  Duration round_trip{0};  // the driver's: of the handshake, at the dialler
  Duration send_timeout = forever;
  std::string uri;                                       // dialled; of an accepted one the driver's
  std::unique_ptr<std::vector<std::byte>> connect_data;  // of the dialler, until it is sent, if there is any

  [[nodiscard]] bool is_unreliable() const { return attribute == ports::Attribute::unreliable; }
};

}  // namespace ccixfer::connection
