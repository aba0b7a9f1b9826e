// Names to addresses, off the protocol thread. The first name that is not an address starts a thread, and whichever finds no idle
// one another, so that fewer than threads_max names whose servers do not answer hold up no other.
// Out: take() gives what was resolved, in any order; each result also wakes the caller's loop.
// Bounds: lookups_max waiting, threads_max at once. Destroying it does not wait for a lookup that hangs: its thread ends by itself.
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
  static constexpr size_t threads_max = 4;
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
  void forget(uint64_t id);  // nobody wants the answer any more: it does not come, or only if it is being looked up now
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
