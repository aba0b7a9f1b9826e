// The configuration file. In: TOML. Out: plain structs, checked whole; warnings for what is tolerated.
// Errors: ErrorKind::usage with one line `FILE:LINE: KEY: what is wrong: what to do`. An unknown key inside a device is a warning,
// any other unknown table or key an error; as, subnet and router only in part: no routing for that device, with a warning. Source:
// ccixfer.toml(5); CCI §IV.A (devices, their keys, unknown ones tolerated).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/config/metrics.h"
#include "app/config/peers.h"
#include "core/base/result.h"
#include "routing/map/address.h"

namespace ccixfer::program {

inline constexpr uint8_t capability_zero_copy = 1;
inline constexpr uint8_t capability_os_bypass = 2;
inline constexpr size_t workers_max = 64;
inline constexpr uint64_t config_bytes_max = 4u << 20;

struct DeviceConfig {
  std::string name;
  std::string transport = "tcp";
  std::string interface;  // or ip; both empty: every interface
  std::string ip;
  uint16_t port = 0;                        // 0: any
  std::string shm_name;                     // of shm: NAME of shm://NAME; "": any
  std::optional<routing::SubnetId> subnet;  // set only when as, subnet and router all are: the device routes
  std::vector<std::string> routers;         // native URIs
  std::optional<uint64_t> rate_bits_per_s;
  std::optional<uint8_t> capabilities;
  uint32_t priority = 50;
  bool is_default = false;
  bool transit = true;
  bool wan = false;
  std::vector<uint32_t> wan_to;
};

struct StaticRoute {
  uint32_t from = 0;
  std::optional<uint32_t> to_as;  // none: this AS
  uint32_t to_subnet = 0;
  std::vector<uint32_t> via;
};

struct RouterConfig {
  std::vector<std::string> metric = {"bandwidth", "hops"};
  std::optional<uint64_t> fragment_bytes;
  std::optional<uint64_t> memory_bytes;
  size_t workers = 1;
  std::vector<StaticRoute> static_routes;
};

struct Config {
  std::string file;                   // "": there is none
  std::vector<DeviceConfig> devices;  // in the order of their names
  RouterConfig router;
  std::optional<IdentityConfig> identity;  // none: the account's key
  std::vector<PeerConfig> peers;           // in the order of their names
  MetricsConfig metrics;
  std::vector<std::string> warnings;
};

// `file` is for messages and for the directory that names of files in it count from.
[[nodiscard]] Result<Config> parse_config(const std::string& file, const std::string& text);
[[nodiscard]] Result<Config> load_config(const std::string& file);
// Which file counts: -c, $CCI_CONFIG, $XDG_CONFIG_HOME/ccixfer/ccixfer.toml (~/.config when unset), /etc/ccixfer/ccixfer.toml; "":
// none. The first two must exist, the others may not. `environment` is getenv, or a test's.
[[nodiscard]] std::string find_config(const std::optional<std::string>& option, const char* (*environment)(const char*),
                                      bool (*exists)(const std::string&));
// The configuration of this process: found, loaded; without any file an empty one.
[[nodiscard]] Result<Config> config_of_process(const std::optional<std::string>& option);

}  // namespace ccixfer::program
