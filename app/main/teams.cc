#include "app/main/teams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/hash.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

session::TransferId record_of(const session::TransferId& key, uint64_t run) {
  std::array<std::byte, sizeof(session::TransferId) + sizeof run> text;
  std::memcpy(text.data(), key.data(), key.size());
  std::memcpy(text.data() + key.size(), &run, sizeof run);
  const Hash128 hash = xxh3_128(text);
  session::TransferId record{};
  std::memcpy(record.data(), &hash.low, sizeof hash.low);
  std::memcpy(record.data() + sizeof hash.low, &hash.high, sizeof hash.high);
  return record;
}

}  // namespace

Teams::Team& Teams::find(const session::TransferId& key, const IsLed& is_led) {
  const auto known = std::find_if(teams_.begin(), teams_.end(), [&key](const Team& team) { return team.key == key; });
  if (known != teams_.end()) {
    teams_.splice(teams_.begin(), teams_, known);
    return teams_.front();
  }
  if (teams_.size() >= teams_remembered_max) {
    const auto oldest = std::find_if(teams_.rbegin(), teams_.rend(), [&](const Team& team) { return !is_led(team.key); });
    if (oldest != teams_.rend()) teams_.erase(std::next(oldest).base());
  }
  teams_.emplace_front().key = key;
  return teams_.front();
}

// The same is asked for, and there is another file or directory: one of the two is no source of the user's.
bool Teams::sees_another(const Team& team, const session::TeamWish& wish) {
  return wish.version == team.version && wish.parts == team.parts && wish.agreement != team.agreement &&
         session::asks_for_the_same(wish.agreement, team.agreement);
}

// What keeps a process out of a team that runs.
std::optional<std::string> Teams::misfit(const Team& team, const session::TeamWish& wish) {
  const std::string other = fmt::format("part {}/{}", team.first_part, team.parts);
  if (wish.version != team.version) {
    return fmt::format("part {}/{} is version {} of ccixfer, and {} is version {}: run the same version on every node", wish.part,
                       wish.parts, printable(wish.version), other, printable(team.version));
  }
  if (sees_another(team, wish)) {
    return fmt::format(
        "part {}/{} sees another source than {}: what has the name of SRC there is another file or directory: check what "
        "is mounted on each node",
        wish.part, wish.parts, other);
  }
  if (wish.parts != team.parts || wish.agreement != team.agreement) {
    return fmt::format("part {}/{} asks for something else than {}: give every part the same sources, destination and options",
                       wish.part, wish.parts, other);
  }
  return std::nullopt;
}

Result<Teams::Place> Teams::admit(const session::TransferId& key, const session::TeamWish& wish, const IsLed& is_led,
                                  bool part_is_here, Instant now) {
  Team& team = find(key, is_led);
  if (is_led(key)) {
    if (const auto why = misfit(team, wish)) return fail(ErrorKind::usage, *why);
    if (part_is_here) {
      return fail(ErrorKind::usage,
                  fmt::format("part {}/{} is here already: give each process a part of its own", wish.part, wish.parts));
    }
    team.seen[wish.part] = wish.member;
    team.here_at = now;
    return Place{Seat::helps, {}, record_of(key, team.run)};
  }
  const std::optional<std::string> why = team.parts == 0 ? "" : misfit(team, wish);
  const bool fits = !why;
  // It would send another source to where the first one is, and delete what that has brought.
  if (team.how && now < after(team.ended_at, late_max) && sees_another(team, wish) && !team.seen.contains(wish.part))
    return fail(ErrorKind::usage, *why);
  if (team.how && fits && now < after(team.ended_at, late_max)) {
    const auto [seen, is_first] = team.seen.try_emplace(wish.part, wish.member);
    const bool is_same = seen->second == wish.member && wish.member != team.leader;  // who led has a result of its own to hear
    if (is_first || is_same) return Place{Seat::late, *team.how, record_of(key, team.run)};
  }
  const auto before = team.seen.find(wish.part);
  const bool had_part = before != team.seen.end() && before->second == wish.member;
  const bool is_over = !had_part && now >= after(team.here_at, late_max);  // and not by a summary
  if (team.how || !fits || is_over) {
    ++team.run;
    team.seen.clear();
  }
  team.here_at = now;
  team.how.reset();
  team.agreement = wish.agreement;
  team.parts = wish.parts;
  team.version = wish.version;
  team.first_part = wish.part;
  team.seen[wish.part] = team.leader = wish.member;
  return Place{Seat::leads, {}, record_of(key, team.run)};
}

void Teams::is_here(const session::TransferId& key, Instant now) {
  const auto team = std::find_if(teams_.begin(), teams_.end(), [&key](const Team& one) { return one.key == key; });
  if (team != teams_.end()) team->here_at = now;
}

void Teams::ended(const session::TransferId& key, const session::TeamEnded& how, Instant now) {
  const auto team = std::find_if(teams_.begin(), teams_.end(), [&key](const Team& one) { return one.key == key; });
  if (team == teams_.end() || team->how) return;
  team->how = how;
  team->ended_at = now;
}

bool Teams::has_ended(const session::TransferId& key) const {
  return std::any_of(teams_.begin(), teams_.end(), [&key](const Team& one) { return one.key == key && one.how; });
}

bool Teams::awaits_parts(const session::TransferId& key) const {
  const auto team = std::find_if(teams_.begin(), teams_.end(), [&key](const Team& one) { return one.key == key; });
  return team != teams_.end() && team->how && team->seen.size() < team->parts;
}

}  // namespace ccixfer::program
