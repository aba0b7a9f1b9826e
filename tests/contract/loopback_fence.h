// Waits until the kernel has delivered what was sent over loopback. On a busy machine it does that in a thread of its own, in the
// order of sending, so a datagram to ourselves comes after all that was sent before it: no waiting time has to be guessed.
#pragma once
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace ccixfer::contract {

class LoopbackFence {
 public:
  LoopbackFence() : socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in self{};
    self.sin_family = AF_INET;
    self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof self;
    REQUIRE(bind(socket_, reinterpret_cast<sockaddr*>(&self), size) == 0);
    REQUIRE(getsockname(socket_, reinterpret_cast<sockaddr*>(&self), &size) == 0);
    REQUIRE(connect(socket_, reinterpret_cast<sockaddr*>(&self), size) == 0);
  }
  LoopbackFence(const LoopbackFence&) = delete;
  LoopbackFence& operator=(const LoopbackFence&) = delete;
  ~LoopbackFence() { close(socket_); }

  void pass() {
    char byte = 0;
    REQUIRE(::send(socket_, &byte, 1, 0) == 1);
    pollfd readable{socket_, POLLIN, 0};
    REQUIRE(poll(&readable, 1, 10'000) == 1);
    REQUIRE(recv(socket_, &byte, 1, 0) == 1);
  }

 private:
  int socket_;
};

}  // namespace ccixfer::contract
