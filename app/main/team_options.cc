#include "app/main/team_options.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "core/base/hash.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

std::optional<uint16_t> number_of(std::string_view text) {
  uint16_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<void> take_part(const std::string& text, session::TeamWish& team) {
  const size_t slash = text.find('/');
  const std::string_view all = text;
  const auto part = number_of(all.substr(0, slash));
  const auto parts = slash == std::string::npos ? std::nullopt : number_of(all.substr(slash + 1));
  if (!part || !parts || *part < 1 || *part > *parts || *parts > session::team_parts_max) {
    return fail(
        ErrorKind::usage,
        fmt::format("bad value: --part: {}: give the number of this process and how many there are, as 1/4 to 4/4, at most {}",
                    printable(text), session::team_parts_max));
  }
  team.part = *part;
  team.parts = *parts;
  return {};
}

// Each task of a job step gets its rank and their number.
Result<void> take_slurm(const Environment& environment, session::TeamWish& team) {
  const auto rank = number_of(environment("SLURM_PROCID"));
  const auto tasks =
      number_of(environment("SLURM_STEP_NUM_TASKS").empty() ? environment("SLURM_NTASKS") : environment("SLURM_STEP_NUM_TASKS"));
  if (!rank || !tasks || *rank >= *tasks || *tasks > session::team_parts_max) {
    return fail(ErrorKind::usage,
                "bad use: --stripe: this is no task of a Slurm job step: start it with srun, or say with --part i/k "
                "which process this is and of how many");
  }
  team.part = static_cast<uint16_t>(*rank + 1);
  team.parts = *tasks;
  return {};
}

Hash128 hash_of(const std::string& text) { return xxh3_128(as_bytes(text)); }

}  // namespace

Result<std::optional<session::TeamWish>> team_of(const TeamOptions& options, const Environment& environment, const TeamWork& work,
                                                 std::string_view version, ports::Entropy& entropy) {
  if (!options.stripe && options.part.empty()) return std::optional<session::TeamWish>();
  session::TeamWish team;
  auto taken = options.part.empty() ? take_slurm(environment, team) : take_part(options.part, team);
  if (!taken) return tl::unexpected<Error>(taken.error());
  // A step of a job has a name of its own. A job that Slurm starts again is the same transfer, and resumes it.
  // However they name the receiver: two teams would get into each other's way there.
  std::string name = fmt::format("part of {}{}{}", work.sources, '\0', work.open->path);
  if (options.part.empty()) {
    name = fmt::format("slurm {}{}{}{}{}", environment("SLURM_CLUSTER_NAME"), '\0', environment("SLURM_JOB_ID"), '\0',
                       environment("SLURM_STEP_ID"));
  }
  const Hash128 hash = hash_of(name);
  std::memcpy(team.name.data(), &hash.low, sizeof hash.low);
  std::memcpy(team.name.data() + sizeof hash.low, &hash.high, sizeof hash.high);
  std::string agreed = fmt::format("{}{}{}{}{}", work.sources, '\0', work.destination, '\0', team.parts);
  for (const std::string& more : work.more) agreed += '\0' + more;
  for (const session::Message& part : session::cut(*work.open)) {
    agreed += '\0' + std::get<session::OpenPart>(part).bytes;  // all that the acceptor is asked for
  }
  team.agreement = session::agreement_of(hash_of(agreed).low, hash_of(work.seen).low);
  team.version = std::string(version.substr(0, session::team_version_bytes_max));
  while (team.member == 0) team.member = entropy.next_u64();
  return team;
}

}  // namespace ccixfer::program
