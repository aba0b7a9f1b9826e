// Names to addresses, off the protocol thread: one thread, started with the first name that is not an address.
// Out: take() gives what was resolved; each result also wakes the caller's loop.
// Bounds: lookups_max waiting. Destroying it does not wait for a lookup that hangs: the thread ends by itself.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/host/waker.h"
#include "transports/inet/address.h"

namespace ccixfer::inet {

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

// Both block: for start-up only.
// Where to listen: an address, a name, or "*", every address of this host, of both families where it has both. usage: not found.
[[nodiscard]] Result<Address> listen_address(const std::string& host, uint16_t port);
[[nodiscard]] Resolver::Answer resolve_now(const std::string& host, uint16_t port);

}  // namespace ccixfer::inet
