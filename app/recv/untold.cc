#include "app/recv/untold.h"

#include <algorithm>

#include "app/session/message_wire.h"

namespace ccixfer::recv {

void Untold::add(TeamMember member, uint64_t index, const session::Want::Range& range) {
  Ranges& ranges = of_members_[member][index];
  uint64_t first = range.first, end = range.first + range.count;
  auto at = ranges.upper_bound(first);
  if (at != ranges.begin() && std::prev(at)->second >= first) --at;
  while (at != ranges.end() && at->first <= end) {
    first = std::min(first, at->first);
    end = std::max(end, at->second);
    at = ranges.erase(at);
  }
  ranges.emplace(first, end);
}

std::optional<session::Elsewhere> Untold::take(TeamMember member) {
  const auto of = of_members_.find(member);
  if (of == of_members_.end()) return std::nullopt;
  const auto file = of->second.begin();
  session::Elsewhere told{file->first, {}};
  while (!file->second.empty() && told.ranges.size() < session::want_ranges_max) {
    const auto range = file->second.begin();
    told.ranges.push_back({range->first, range->second - range->first});
    file->second.erase(range);
  }
  if (file->second.empty()) of->second.erase(file);
  if (of->second.empty()) of_members_.erase(of);
  return told;
}

session::Elsewhere Untold::take_all(TeamMember member, uint64_t index) {
  session::Elsewhere told{index, {}};
  const auto of = of_members_.find(member);
  if (of == of_members_.end()) return told;
  if (const auto file = of->second.extract(index)) {
    for (const auto& [first, end] : file.mapped()) told.ranges.push_back({first, end - first});
  }
  if (of->second.empty()) of_members_.erase(of);
  return told;
}

void Untold::ended(uint64_t index) {
  for (auto of = of_members_.begin(); of != of_members_.end();) {
    of->second.erase(index);
    of = of->second.empty() ? of_members_.erase(of) : std::next(of);
  }
}

std::vector<TeamMember> Untold::members() const {
  std::vector<TeamMember> members;
  for (const auto& [member, files] : of_members_) members.push_back(member);
  return members;
}

}  // namespace ccixfer::recv
