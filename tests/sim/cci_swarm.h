// CCI alone in the simulated world: endpoints over the stream face exchange messages and RMA while connections are reset, cut and
// refused, and everything that the semantics promise is checked as it happens, as the cases of tests/contract do one by one.
#pragma once
#include <cstdint>
#include <string>

#include "transports/sim/sim_net.h"

namespace ccixfer::testing {

struct CciSwarmOptions {
  sim::LinkOptions link;
  unsigned nodes = 3;                        // every one dials every one before it
  unsigned operations = 200;                 // of each pair of nodes: messages and RMA together, both ways
  uint32_t receive_buffers = 16;             // of each endpoint; held by the application for a while
  size_t slot_bytes = 64u << 10;             // what one RMA is at most
  unsigned resets = 0, cuts = 0, stops = 0;  // stops: a process stands still for a while, as by SIGSTOP
  Duration faults_within = std::chrono::milliseconds(200);
  Duration cut_max = std::chrono::seconds(5), stop_max = std::chrono::seconds(12);
  double leave_chance = 0;  // at a turn, that an application disconnects
};

struct CciSwarmResult {
  std::string violation;  // the first; empty: none
  uint64_t trace_hash = 0, events = 0;
  uint64_t messages = 0, writes = 0, reads = 0, looks = 0, waits = 0, refused = 0, failed = 0;  // operations by their end
  uint64_t connections = 0;
  size_t heap_bytes = 0;  // the most that the endpoints and the network had at one time
};

[[nodiscard]] CciSwarmResult run_cci_swarm(uint64_t seed, const CciSwarmOptions& options);

}  // namespace ccixfer::testing
