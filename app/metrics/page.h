// The metrics of a process as text: OpenMetrics 1.0, or the older text format of Prometheus for who does not ask for it. Names
// follow Prometheus' conventions: the program first, base units, _total behind counters. Labels have values of a fixed list, or
// name a device of the configuration.
// Any thread. Source: OpenMetrics 1.0 (openmetrics.io); man/ccixfer-metrics.7.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/metrics/activity.h"
#include "app/metrics/refusals.h"
#include "core/base/counters.h"
#include "core/host/disk_times.h"

namespace ccixfer::metrics {

enum class Format : uint8_t { openmetrics, prometheus };

// Of a router, by device.
struct DeviceTraffic {
  std::string device;  // its name in the configuration: so many there are
  uint64_t received_bytes = 0, sent_bytes = 0;
};
struct RouterTraffic {
  std::vector<DeviceTraffic> devices;
  std::vector<uint64_t> fragment_bytes;                             // by how many routers they had crossed
  std::vector<std::pair<std::string_view, uint64_t>> refused = {};  // by reason, of a fixed list
};

struct Subject {
  std::string_view version;
  std::string_view role;  // "receiver", "server" or "router"
  double started_s = 0;   // since 1970
  const Counters* counters = nullptr;
  const Activity* activity = nullptr;                // of a router: nullptr
  std::function<RouterTraffic()> traffic = nullptr;  // of a router only
  const Refusals* refusals = nullptr;                // may be
  const host::DiskTimes* disk = nullptr;             // of a receiver or server
};

// By what a client says that it takes (RFC 9110, 12.5.1; weights are not looked at).
[[nodiscard]] Format format_of(std::string_view accept);
[[nodiscard]] std::string_view content_type(Format format);
// `cpu_s`: what the process has used, in both modes. `memory_max_bytes`: the most that was resident.
[[nodiscard]] std::string page(const Subject& subject, Format format, double cpu_s, uint64_t memory_max_bytes);

}  // namespace ccixfer::metrics
