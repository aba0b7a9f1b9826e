// What many workers, or many senders, do together, in simulated time: so the figures do not depend on the machine that runs this.
// The model, with its numbers and where they come from, is in app/simulate/README.md, 'What many do together'.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ccixfer::testing {

// Pairs of `ccixfer bench` through one router with so many workers, all at once: what they measured, added up.
struct WorkersResult {
  double messages_per_s = 0;
  double bytes_per_s = 0;
  std::vector<size_t> connections;  // of each worker
  // Of each worker's processor, while messages and while RMA writes were measured.
  std::vector<double> busy_with_messages, busy_with_writes;
};
WorkersResult run_workers(uint64_t seed, size_t workers, size_t pairs);

enum class TeamTask : uint8_t { one_file, files };

struct ScaledTeamResult {
  bool is_whole = false;
  double seconds = 0;  // from the first start to the last end
  double bytes_per_s = 0;
  double receiver_busy = 0;          // of its protocol thread
  std::vector<uint64_t> sent_bytes;  // of each member
};
// So many senders to one receiver; one is no team. The work is as much for each, so that all take the same time if nothing is lost.
ScaledTeamResult run_team(uint64_t seed, uint16_t members, TeamTask task);

}  // namespace ccixfer::testing
