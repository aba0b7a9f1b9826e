// What a router tells its owner of whom it admits and refuses, and of each routed connection that ended: for an audit log. It knows
// nothing of what passes through it but how much that was.
// Source: routing/router/README.md 'Who is told of'.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "core/base/status.h"
#include "core/base/time.h"
#include "core/ports/peer_identity.h"

namespace ccixfer::routing {

struct Admission {
  enum class Step : uint8_t { admitted, refused, ended };
  enum class As : uint8_t { unknown, connection, router, administrator };
  Step step = Step::refused;
  As as = As::unknown;
  ports::PeerIdentity peer = {};    // the hop that came: a client, or the router before us
  std::string to = {};              // of a connection: the address that it asks for; of a router: what it calls itself
  uint64_t bytes = 0;               // that were forwarded, both ways
  Status status = Status::success;  // of one that ended: success when an end said that all is done
  std::string reason = {};          // why it was refused or has ended, as its ends hear it
  Duration lasted{0};
};

// Called within a turn of the router, which it must not call back; may be empty.
using AdmissionObserver = std::function<void(const Admission&)>;

}  // namespace ccixfer::routing
