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

inline constexpr const char* words_of_no_lookup =
    "the name is not looked up: too many names wait, or this host gives no thread (ulimit -u; TasksMax= of a service)";

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
  // false, with words_of_no_lookup: too many are waiting, or there is no thread to be had.
  [[nodiscard]] bool resolve(uint64_t id, std::string host, uint16_t port);
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
// What it means when getaddrinfo has no address. `problem`: errno behind the call, which was 0 before it.
[[nodiscard]] Resolver::Answer unanswered(bool nobody_has_it, std::string words, int problem);

}  // namespace ccixfer::inet
