// The teams that come to a listening side: several processes that share one transfer (--stripe). Which of them leads, and what
// becomes of one that comes late or does not fit.
// A team is known by its name and the identity of its processes. Whoever comes first leads; if the one that leads is lost, the next
// one to come does. A process that comes when the transfer has ended, and had no part in it, hears how it ended and does nothing:
// it was late. So does one that helped and lost its connection before it heard the end. One that sees another source than the
// others is refused, also when it is late. One that had a part begins the transfer anew: it is the next run, as is whoever comes
// when the last one ended longer ago than late_max. A run that ended without a summary goes on with its own processes, whenever
// they come again, and with a new one in the place of one that was killed. If nobody leads and none of its processes has come, or
// was here, for late_max, a process that had no part in it begins the next run.
// Bounds: teams_remembered_max teams, and those that are led, which are never forgotten; team_parts_max parts each. Pure.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "app/session/messages.h"
#include "app/session/open.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace ccixfer::program {

inline constexpr size_t teams_remembered_max = 64;
// The parts of a run are started together; one that was held up for longer than that is of another run.
inline constexpr Duration late_max = std::chrono::minutes(10);

class Teams {
 public:
  enum class Seat : uint8_t { leads, helps, late };
  struct Place {
    Seat seat = Seat::leads;
    session::TeamEnded how;        // late: how the transfer ended
    session::TransferId record{};  // what the counts of this run of the team are kept under
  };
  using IsLed = std::function<bool(const session::TransferId& key)>;
  // `key`: what names the team here. `is_led`: a session leads it now. `part_is_here`: another process is here that says that it is
  // the same part. Errors: usage, in words for the peer.
  [[nodiscard]] Result<Place> admit(const session::TransferId& key, const session::TeamWish& wish, const IsLed& is_led,
                                    bool part_is_here, Instant now);
  // A process of the team is here, or was until now.
  void is_here(const session::TransferId& key, Instant now);
  // Its transfer has come to its summary; told once for each run.
  void ended(const session::TransferId& key, const session::TeamEnded& how, Instant now);
  // The run of the team has ended, and not all of its parts have come.
  [[nodiscard]] bool has_ended(const session::TransferId& key) const;
  [[nodiscard]] bool awaits_parts(const session::TransferId& key) const;

 private:
  struct Team {
    session::TransferId key{};
    uint64_t run = 0;
    uint64_t agreement = 0;
    uint16_t parts = 0;
    uint16_t first_part = 0;  // of this run
    std::string version;
    std::map<uint16_t, uint64_t> seen;  // parts that took part in this run: which process each one was
    uint64_t leader = 0;                // the process that led it last
    std::optional<session::TeamEnded> how;
    Instant ended_at{};
    Instant here_at{};  // any process of it, the last time that we know of
  };
  Team& find(const session::TransferId& key, const IsLed& is_led);
  [[nodiscard]] static bool sees_another(const Team& team, const session::TeamWish& wish);
  [[nodiscard]] static std::optional<std::string> misfit(const Team& team, const session::TeamWish& wish);

  std::list<Team> teams_;  // the last one that came is in front
};

}  // namespace ccixfer::program
