// Names to addresses, off the protocol thread: one thread, started with the first name that is not an address.
// Out: take() gives what was resolved; each result also wakes the caller's loop.
// Bounds: lookups_max waiting. Destroying it does not wait for a lookup that hangs: the thread ends by itself.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/host/waker.h"

namespace ccixfer::tcp {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// A numeric IPv4 or IPv6 address; false: it is a name.
[[nodiscard]] bool numeric_address(const std::string& host, uint16_t port, Address& address);
[[nodiscard]] std::string host_of(const Address& address);
[[nodiscard]] uint16_t port_of(const Address& address);

class Resolver {
 public:
  static constexpr size_t lookups_max = 1024;
  struct Answer {
    uint64_t id = 0;
    std::vector<Address> addresses;  // empty: not found
    std::string reason;
    bool unknown = false;  // the name service says that there is no such name; else it said nothing, and may later
  };

  explicit Resolver(host::WakeHandle loop);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  [[nodiscard]] bool resolve(uint64_t id, std::string host, uint16_t port);  // false: too many are waiting
  [[nodiscard]] std::vector<Answer> take();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

// Blocks: for start-up only.
[[nodiscard]] Resolver::Answer resolve_now(const std::string& host, uint16_t port);

}  // namespace ccixfer::tcp
