// `ccixfer sim SCENARIO.toml`: runs a scenario once or for many seeds and says what happened. Out: the end of the command: ok, or
// the worst end of a transfer. With --json: `fault`, `transfer`, `world` and `trace` events, whose `t` is virtual time.
#pragma once
#include "app/main/commands.h"

namespace ccixfer::simulate {

[[nodiscard]] program::CommandEnd run_sim(const program::Process& process, const program::SimCommand& command);

}  // namespace ccixfer::simulate
