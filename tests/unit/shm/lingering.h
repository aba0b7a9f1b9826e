// A TCP socket whose last close waits in the kernel for as long as the test likes: it lingers, and its peer takes nothing. And a
// watch over the test's thread: when it was held up for long, the sockets are let go, so that a failure ends and is told.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "core/host/descriptor.h"

namespace ccixfer::shm {

class LingeringSocket {
 public:
  LingeringSocket() {
    const host::Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* at = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(bind(listener.get(), at, size) == 0);
    REQUIRE(listen(listener.get(), 1) == 0);
    REQUIRE(getsockname(listener.get(), at, &size) == 0);
    own_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(connect(own_.get(), at, size) == 0);
    peer_.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(peer_);
    const linger waits{1, 600};
    REQUIRE(setsockopt(own_.get(), SOL_SOCKET, SO_LINGER, &waits, sizeof waits) == 0);
    const std::array<char, 65536> bytes{};
    while (send(own_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
  }
  [[nodiscard]] int get() const { return own_.get(); }
  host::Descriptor take() { return std::move(own_); }
  // Somebody else has it: who closes it last waits.
  void forget() { own_.reset(); }
  void let_go() { peer_.reset(); }  // with bytes unread: a reset

 private:
  host::Descriptor own_;
  host::Descriptor peer_;
};

class HeldUp {
 public:
  template <typename LetGo>
  explicit HeldUp(LetGo let_go)
      : watch_([this, let_go] {
          std::unique_lock lock(mutex_);
          held_up_ = !changed_.wait_for(lock, std::chrono::seconds(20), [this] { return done_; });
          let_go();
        }) {}
  ~HeldUp() {
    if (watch_.joinable()) static_cast<void>(end());
  }
  HeldUp(const HeldUp&) = delete;
  HeldUp& operator=(const HeldUp&) = delete;
  // The test's thread has come so far. Whether the sockets had to be let go for that; they are from now on.
  bool end() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    watch_.join();
    return held_up_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  bool held_up_ = false;
  std::thread watch_;
};

}  // namespace ccixfer::shm
