// Sends one message over a connection of one of the router's devices: what the parts of a router
// need of its endpoints to tell peers something. Success is silent: no event follows. no_buffers or
// again: there is no room now, and nothing was sent.
#pragma once
#include <cstdint>

#include "core/base/bytes.h"
#include "core/base/status.h"
#include "core/ports/transport.h"

namespace ccixfer::routing {

class MessageSender {
 public:
  [[nodiscard]] virtual Status send(uint32_t device, ports::ConnectionId connection, Bytes message, uint64_t context) = 0;

 protected:
  ~MessageSender() = default;
};

}  // namespace ccixfer::routing
