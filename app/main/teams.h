// The teams that come to a listening side: several processes that share one transfer (--stripe). Which of them leads, and what
// becomes of one that comes late or does not fit.
// A team is known by its name and the identity of its processes. Whoever comes first leads; if the one that leads is lost, the next
// one to come does. A process that comes when the transfer has ended, and had no part in it, hears how it ended and does nothing:
// it was late. One that had a part begins the transfer anew: it is the next run.
// Bounds: teams_remembered_max teams, of which those that are led are never forgotten; team_parts_max parts each.
// Pure.
#pragma once
#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <string>

#include "app/session/messages.h"
#include "app/session/open.h"
#include "core/base/result.h"

namespace ccixfer::program {

inline constexpr size_t teams_remembered_max = 64;

class Teams {
 public:
  enum class Seat : uint8_t { leads, helps, late };
  struct Place {
    Seat seat = Seat::leads;
    session::TeamEnded how;        // late: how the transfer ended
    session::TransferId record{};  // what the counts of this run of the team are kept under
  };
  // `key`: what names the team here. `is_led`: a session leads it now. `part_is_here`: another process is here that says that it is
  // the same part. Errors: usage, in words for the peer.
  [[nodiscard]] Result<Place> admit(const session::TransferId& key, const session::TeamWish& wish, bool is_led, bool part_is_here);
  // Its transfer has come to its summary.
  void ended(const session::TransferId& key, const session::TeamEnded& how);

 private:
  struct Team {
    session::TransferId key{};
    uint64_t run = 0;
    uint64_t agreement = 0;
    uint16_t parts = 0;
    uint16_t first_part = 0;  // of this run
    std::string version;
    std::set<uint16_t> seen;  // parts that took part in this run
    std::optional<session::TeamEnded> how;
  };
  Team& find(const session::TransferId& key);
  [[nodiscard]] static std::optional<std::string> misfit(const Team& team, const session::TeamWish& wish);

  std::list<Team> teams_;  // the last one that came is in front
};

}  // namespace ccixfer::program
