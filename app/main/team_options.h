// `--stripe` and `--part`: this process is one of several that share a transfer.
// In: what the command line gave, and the environment in which Slurm starts the tasks of a job step. Out: what the peer is told
// (session::TeamWish). The name of the team follows from the job step, or without Slurm from what is sent and where to.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/session/open.h"
#include "core/base/result.h"
#include "core/ports/entropy.h"

namespace ccixfer::program {

struct TeamOptions {
  bool stripe = false;
  std::string part;  // "i/k"; "": as Slurm says
};

// Reads the environment; "": not set.
using Environment = std::function<std::string(const char* name)>;

// What all processes of a team have in common.
struct TeamWork {
  std::string sources;      // those that are sent, absolute, with a NUL between them
  std::string destination;  // as given
  std::string seen;         // what stands there: see identities_of
  const session::Open* open = nullptr;
  std::vector<std::string> more = {};  // further options that must agree
};

// none: it is no team. usage: neither Slurm nor --part says which one it is, or what they say makes no sense.
[[nodiscard]] Result<std::optional<session::TeamWish>> team_of(const TeamOptions& options, const Environment& environment,
                                                               const TeamWork& work, std::string_view version,
                                                               ports::Entropy& entropy);

}  // namespace ccixfer::program
