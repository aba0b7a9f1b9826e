// Pieces of shared files that have come from others, or need not be sent, of which the members of a team have not been told yet:
// they wait while much is under way to a member. However long that takes, each is told in few ranges.
// Pure; memory: a constant for each range.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "app/recv/team_work.h"
#include "app/session/messages.h"

namespace ccixfer::recv {

class Untold {
 public:
  void add(TeamMember member, uint64_t index, const session::Want::Range& range);
  // The next message for a member. none: it has been told of everything.
  [[nodiscard]] std::optional<session::Elsewhere> take(TeamMember member);
  // All that it has not been told of this file.
  [[nodiscard]] session::Elsewhere take_all(TeamMember member, uint64_t index);
  void leave(TeamMember member) { of_members_.erase(member); }
  void ended(uint64_t index);  // nobody need hear of it any more
  [[nodiscard]] std::vector<TeamMember> members() const;

 private:
  using Ranges = std::map<uint64_t, uint64_t>;  // the first piece, and the one behind the last
  std::map<TeamMember, std::map<uint64_t, Ranges>> of_members_;
};

}  // namespace ccixfer::recv
