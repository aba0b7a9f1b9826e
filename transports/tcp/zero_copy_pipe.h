// Bulk memory into a socket without copying it: a pipe takes references to its pages (vmsplice), and the socket takes them over
// (splice). What the peer reads is therefore what the memory holds when the network takes it, not when it was given: only for RMA,
// whose memory stays as it is until the peer has it. A pipe may hold bytes that the socket had no room for: they go before
// anything else, and nothing else fills it meanwhile. Hosts that refuse pipes or splicing get plain copies. Private to this room.
#pragma once
#include <cstddef>

#include "core/base/bytes.h"
#include "transports/tcp/socket.h"

namespace ccixfer::tcp {

// Below this a copy is cheaper than the references.
inline constexpr size_t zero_copy_bytes_min = 64u << 10;

class ZeroCopyPipe {
 public:
  [[nodiscard]] bool used() const { return static_cast<bool>(in_); }
  [[nodiscard]] bool empty() const { return held_bytes_ == 0; }
  [[nodiscard]] size_t held_bytes() const { return held_bytes_; }
  // Takes a prefix of `memory`; bytes taken. 0: not here, copy it instead. Only when empty.
  [[nodiscard]] size_t fill(Bytes memory);
  // True: empty now. False: errno says why (EAGAIN: the socket is full). `more`: further bytes follow at once.
  [[nodiscard]] bool flush(int socket, bool more);

 private:
  [[nodiscard]] bool open();

  Descriptor in_, out_;
  size_t held_bytes_ = 0;
  bool refused_ = false;  // by the host: not tried again
};

}  // namespace ccixfer::tcp
