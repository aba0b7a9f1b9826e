// What a router shows of itself to people: values only, which stay true of the moment in which they were taken.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "routing/map/address.h"

namespace ccixfer::routing {

struct DeviceView {
  std::string name;
  SubnetId subnet;
  std::string uri;  // native
  uint64_t rate_bits_per_s = 0;
  uint64_t latency_ns = 0;  // 0: not measured
  bool works = true;        // as this host says
  bool told = true;         // other routers count on it
  bool wan = false;
};

// To a neighbouring router.
struct LinkView {
  uint64_t router = 0;  // 0: it did not say yet
  std::string peer;     // its address
  uint32_t device = 0;
  bool open = false;
};
// A router that the configuration names and to which there is no link.
struct MissingLinkView {
  std::string uri;
  uint32_t device = 0;
};

enum class ConnectionStep : uint8_t { setting_up, open, closing };

struct ConnectionView {
  uint64_t id = 0;  // no other connection of this router ever has it
  ConnectionStep step = ConnectionStep::setting_up;
  std::array<uint32_t, 2> devices{};  // towards the initiator, towards the destination
  uint64_t bytes = 0;                 // forwarded, both ways
  uint32_t fragments = 0;             // here
  uint32_t buffers = 0;               // of the pool that these have
  Duration stands{0};                 // it has a buffer, and nothing moves for so long: on that leg,
  uint8_t stands_leg = 0;
  bool stands_taking = false;  // which takes nothing; else nothing comes from there
};
// Who is at its ends, as far as this router knows; "": not.
struct ConnectionNames {
  std::array<std::string, 2> hops;  // the neighbours: addresses
  std::string destination;          // the address that was asked for
};

struct RouterView {
  uint64_t router = 0;
  bool draining = false;
  std::vector<DeviceView> devices;
  std::vector<LinkView> links;
  std::vector<MissingLinkView> missing_links;
  std::vector<ConnectionView> connections;  // all of them
  uint32_t buffers_used = 0, buffers_count = 0, fragment_bytes = 0;
};

}  // namespace ccixfer::routing
