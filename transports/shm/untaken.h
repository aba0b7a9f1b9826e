// Segments that a listener has passed and that their diallers have not taken out of their sockets. The kernel charges each to the
// listener's account as a descriptor "in flight", also after the listener has closed its end, and lets the account pass none any
// more once there are RLIMIT_NOFILE of them. So a stranger that only dials could keep everybody else out.
// Guarantees: each is counted until it was taken or the dialler's end is closed; the listener's end stays open for that long, and
// may be kept here when its stream is over. One user has at most of_user_max of them, and strangers together of_all_max; both are
// less where RLIMIT_NOFILE is small. Our own user is not bounded by what strangers do.
// Source: unix(7), ETOOMANYREFS; SIOCOUTQ, which is 0 once the peer has read everything or is gone.
#pragma once
#include <sys/types.h>

#include <functional>
#include <vector>

#include "core/host/descriptor.h"

namespace ccixfer::shm {

class Untaken {
 public:
  static constexpr size_t of_user_max = 256;  // and 1/16 of RLIMIT_NOFILE
  static constexpr size_t of_all_max = 1024;  // and 1/4
  using Close = std::function<void(host::Descriptor)>;

  explicit Untaken(Close close) : close_(std::move(close)) {}  // of a socket whose segment was taken, and whose stream is over

  // Whether one more may be passed to a process of `user`.
  [[nodiscard]] bool has_room(uid_t user);
  void add(uid_t user, int socket);
  // The stream of this socket is over. False: it was taken, or never added, and is forgotten. True: keep() the socket.
  [[nodiscard]] bool stands_in(int socket);
  void keep(host::Descriptor socket);
  // Looks which were taken.
  void look();
  [[nodiscard]] bool keeps_any() const { return kept_ > 0; }

 private:
  struct One {
    uid_t user = 0;
    int socket = -1;
    host::Descriptor kept;  // the same; empty: its stream has it
  };
  [[nodiscard]] bool counts_allow(uid_t user) const;

  Close close_;
  std::vector<One> all_;
  size_t kept_ = 0;
};

}  // namespace ccixfer::shm
