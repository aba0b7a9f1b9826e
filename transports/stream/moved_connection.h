// A connection on its way from one transport to another of the same process, each of which has a
// thread of its own: the acceptor's end, whose dialler has said what it wants and has not been
// answered. Nothing else of a connection has begun by then, so that it is little: the stream, who
// the peer is, the keys, and the hello as it came. The other transport answers it.
// Ownership: whoever has the object has the stream; to destroy it ends the connection.
// Source: README.md 'Connections that move to another thread'.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/ports/transport.h"

namespace ccixfer::stream {

class Secured;

// A stream that no net has. Each network has a type of its own.
class LooseStream {
 public:
  virtual ~LooseStream() = default;
};

struct MovedConnection {
  MovedConnection();
  ~MovedConnection();
  MovedConnection(MovedConnection&&) noexcept;
  MovedConnection& operator=(MovedConnection&&) noexcept;

  std::unique_ptr<LooseStream> stream;
  std::string uri;                   // of the peer, for people
  std::unique_ptr<Secured> secured;  // nullptr: the process runs without proofs
  std::vector<std::byte> hello;      // the header of the frame
};

// Decides which accepted connections live elsewhere. Called by the thread of the transport that
// accepted them, within its turn.
class Placement {
 public:
  virtual ~Placement() = default;
  [[nodiscard]] virtual bool goes_elsewhere(ports::Role role) = 0;
  virtual void move(MovedConnection connection) = 0;  // of a true answer; others may have been asked about since
};

}  // namespace ccixfer::stream
