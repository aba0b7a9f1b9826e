// A world described in TOML, for `ccixfer sim`. In: the text of a scenario. Out: plain structs, checked whole: every name that is
// used is defined, addresses do not clash, times and sizes are in range.
// Errors: ErrorKind::usage with one line `FILE:LINE: KEY: what is wrong: what to do`, as the configuration's. Nothing is ignored.
// The keys: man/ccixfer-sim.1; examples: conf/sim.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/simulate/tree.h"
#include "core/base/result.h"
#include "routing/map/address.h"
#include "transports/sim/sim_net.h"

namespace ccixfer::simulate {

inline constexpr uint64_t scenario_bytes_max = 1u << 20;
inline constexpr size_t scenario_places_max = 200;  // links, nodes and routers: addresses are 10.0.0.1 to 10.0.0.254
inline constexpr size_t scenario_transfers_max = 1000;
inline constexpr size_t scenario_faults_max = 100'000;
inline constexpr uint64_t scenario_large_bytes_max = 1u << 30;
inline constexpr Duration scenario_time_max = std::chrono::hours(24 * 365);

struct ScenarioLink {
  std::string name;
  sim::LinkOptions options;
  std::optional<routing::SubnetId> subnet;  // none: only direct transfers, or a WAN
  bool wan = false;                         // it joins several AS, and in each of them has the number wan_subnet
  uint32_t wan_subnet = 0;
  std::vector<uint32_t> between;  // AS that a dedicated WAN is for; empty: all
};

struct ScenarioNode {  // a host, or a router
  std::string name;
  std::vector<std::string> links;
  std::string address;                      // on every link; "": chosen
  uint32_t buffers = 8;                     // of a process, 4 MiB each
  uint64_t disk_bytes = uint64_t{1} << 40;  // of a host
  bool is_router = false;
  uint32_t as = 0;                      // of a router
  uint32_t fragment_bytes = 64u << 10;  // of a router
  uint64_t memory_bytes = 8u << 20;     // of a router
  std::vector<std::string> metric = {"bandwidth", "hops"};
};

struct ScenarioTransfer {
  std::string name;
  std::string from, to;  // hosts
  bool routed = false;
  Duration start{0};
  TreeOptions tree;
  bool archive = true;
  uint16_t lanes = 2;
  Duration timeout = std::chrono::seconds(60);
};

enum class FaultKind : uint8_t { crash, reset, partition, stop };
[[nodiscard]] const char* fault_name(FaultKind kind);

struct ScenarioFault {
  Duration at{0};
  FaultKind kind = FaultKind::reset;
  std::string node;               // a host or router; or
  std::string link;               // reset, partition: a whole link; with `node` too: the node on that link
  std::optional<Duration> lasts;  // crash, partition, stop; none: for ever
};

struct Scenario {
  std::string file;
  uint64_t seed = 1;
  Duration time_max = std::chrono::hours(1);
  uint64_t events_max = 20'000'000;
  std::vector<ScenarioLink> links;
  std::vector<ScenarioNode> nodes;          // hosts, then routers, each in the order of their names
  std::vector<ScenarioTransfer> transfers;  // in the order of the file
  std::vector<ScenarioFault> faults;
};

// `file` is for messages only.
[[nodiscard]] Result<Scenario> parse_scenario(const std::string& file, const std::string& text);
[[nodiscard]] Result<Scenario> load_scenario(const std::string& file);

// "50us", "1.5ms", "2s", "3min", "1h".
[[nodiscard]] std::optional<Duration> parse_duration(std::string_view text);

}  // namespace ccixfer::simulate
