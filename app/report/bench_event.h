// The NDJSON events of `ccixfer bench --json`, as events.h has them for the other commands: `path` once the session is open, then a
// `bench` event a row. Durations in seconds. A member that a row has not is left out.
#pragma once
#include <cstdint>
#include <string>

#include "app/report/events.h"

namespace ccixfer::report {

struct BenchPath {
  std::string uri;
  std::string wait, peer_wait;  // poll, spin
  std::vector<Hop> path;
};

struct BenchRow {
  std::string test;
  std::string latency_of;   // half_round_trip_s, connect_s, turn_s; "": none
  uint64_t size_bytes = 0;  // 0: none
  uint32_t depth = 1;
  uint64_t connections = 1;
  uint64_t count = 0, again = 0;
  double seconds = 0;
  double min_s = 0, p50_s = 0, p90_s = 0, p99_s = 0, p99_9_s = 0;
  double reduction = -1, reduction_paper = 0;  // < 0, 0: none
};

[[nodiscard]] std::string bench_path_event(double t, const BenchPath& path);
[[nodiscard]] std::string bench_event(double t, const BenchRow& row);

}  // namespace ccixfer::report
