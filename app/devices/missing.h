// What keeps a transport from being used on this host, or makes it slower than it could be, and what an administrator does about
// it. Finding the facts changes nothing on the host: a socket or a piece of memory is made and goes at once.
// Guarantees: missing_of is a function of the facts alone. One entry for each thing that is missing, in the order tcp, udp, verbs,
// eth, shm; a transport of which nothing is missing has none. Errors: what cannot be found out counts as not missing.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/devices/devices.h"
#include "transports/verbs/verbs.h"

namespace ccixfer::program {

struct TransportFacts {
  std::vector<Interface> interfaces;
  bool has_verbs = true;  // the program was built with them
  std::vector<verbs::DeviceInfo> cards;
  bool may_use_raw_ethernet = true;
  uint64_t receive_buffer_bytes = UINT64_MAX;  // that a socket of udp was given
  uint64_t send_buffer_bytes = UINT64_MAX;
  std::optional<std::string> no_shared_memory;  // why none could be made
};

struct Missing {
  std::string transport;
  bool usable = false;  // the transport as a whole, in spite of this
  std::string what;
  std::string remedy;
};

[[nodiscard]] TransportFacts transport_facts(std::vector<Interface> interfaces);
[[nodiscard]] std::vector<Missing> missing_of(const TransportFacts& facts);

}  // namespace ccixfer::program
