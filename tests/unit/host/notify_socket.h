// The socket of a service manager that hears what a service tells it.
#pragma once
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "core/host/descriptor.h"

namespace ccixfer::testing {

class NotifySocket {
 public:
  // A path, or with @ in front an abstract name.
  explicit NotifySocket(std::string name) : name_(std::move(name)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    REQUIRE(name_.size() < sizeof at.sun_path);
    std::memcpy(at.sun_path, name_.data(), name_.size());
    if (name_[0] == '@') at.sun_path[0] = '\0';
    fd_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    REQUIRE(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&at), size) == 0);
  }
  [[nodiscard]] const std::string& name() const { return name_; }
  // The next datagram; "": there is none.
  [[nodiscard]] std::string next() {
    std::array<char, 4096> buffer{};
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    return got < 0 ? std::string() : std::string(buffer.data(), static_cast<size_t>(got));
  }
  [[nodiscard]] std::vector<std::string> all() {
    std::vector<std::string> datagrams;
    for (std::string one = next(); !one.empty(); one = next()) datagrams.push_back(one);
    return datagrams;
  }

 private:
  const std::string name_;
  host::Descriptor fd_;
};

}  // namespace ccixfer::testing
