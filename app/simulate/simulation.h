// One run of a scenario: the world is built, transfers and faults happen at their virtual times, and at the end the power of every
// host goes and what was said to be delivered is compared with its source. In: a scenario and a seed. Out: what happened. The same
// scenario and seed give the same result, trace and hash.
// A transfer is a `ccixfer send` to the `ccixfer recv --root` that runs on every host that is sent to. A host that crashes and
// comes back runs its commands again, as a supervisor would.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/main/transfer_role.h"
#include "app/simulate/scenario.h"

namespace ccixfer::simulate {

struct TransferOutcome {
  const ScenarioTransfer* transfer = nullptr;
  Error end{ErrorKind::ok, ""};  // as the command's: its exit code is that of the kind
  Duration began{0}, took{0};    // virtual; of the first run, and until the end of the last
  program::Tally tally;          // of all its runs
  unsigned runs = 0;             // of the command: more than one after crashes of its host
  bool verified = false;         // all of the source was there, durable, after the end
};

struct WorldOutcome {
  uint64_t seed = 0;
  std::vector<TransferOutcome> transfers;  // in the order of the scenario
  Error end{ErrorKind::ok, ""};            // the worst of them; bug: one ended well and was not whole
  Duration took{0};                        // virtual
  uint64_t events = 0, faults = 0, resets = 0, corruptions = 0, bytes_delivered = 0, trace_hash = 0;
};

struct WorldNews {  // all called in the order of virtual time
  std::function<void(Duration at, const ScenarioFault& fault, bool over)> on_fault;
  std::function<void(Duration at, const TransferOutcome& outcome)> on_end;  // not yet verified
  std::function<void(std::string_view line)> on_trace;
  std::function<bool()> stop;  // asked now and then: true ends the run where it is
};

// `scenario` outlives the result. `verbose`: as Site's.
[[nodiscard]] WorldOutcome simulate(const Scenario& scenario, uint64_t seed, const WorldNews& news, unsigned verbose = 0);

}  // namespace ccixfer::simulate
