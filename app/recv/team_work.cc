#include "app/recv/team_work.h"

#include <algorithm>

#include "app/session/limits.h"
#include "core/base/check.h"

namespace ccixfer::recv {

void TeamWork::join(TeamMember member) {
  Member& with = members_[member];
  with.window_bytes = limits_.window_bytes_min;
  with.window_files = limits_.window_files_min;
}

void TeamWork::leave(TeamMember member) {
  CHECK(member != team_leader);
  if (members_.erase(member) == 0) return;
  // In the order of their numbers to the front: they are the oldest.
  for (auto at = files_.rbegin(); at != files_.rend(); ++at) {
    if (at->second.member != member) continue;
    at->second.member.reset();
    waiting_.push_front(at->first);
  }
  for (auto& [index, file] : shared_) take_back(file, member);
}

// To the front, so that the oldest pieces come first.
void TeamWork::take_back(Shared& file, TeamMember member) {
  const auto with = members_.find(member);
  for (auto at = file.out.begin(); at != file.out.end();) {
    if (at->second != member) {
      ++at;
      continue;
    }
    if (with != members_.end()) with->second.bytes -= bytes_of(file, at->first);
    file.left.push_front({at->first, 1});
    file.returned.insert(at->first);
    at = file.out.erase(at);
  }
  part_ends(file, member);
}

void TeamWork::part_ends(Shared& file, TeamMember member) {
  const auto with = members_.find(member);
  if (file.parts.erase(member) > 0 && with != members_.end()) --with->second.shared;
}

std::vector<TeamMember> TeamWork::take_released(uint64_t index) {
  std::vector<TeamMember> released;
  const auto at = shared_.find(index);
  if (at == shared_.end() || !at->second.left.empty()) return released;
  for (const auto& [member, pieces] : at->second.parts) {
    if (pieces == 0) released.push_back(member);
  }
  for (const TeamMember member : released) part_ends(at->second, member);
  return released;
}

void TeamWork::exclude(uint64_t index, TeamMember member) {
  const auto at = shared_.find(index);
  if (at == shared_.end()) return;
  at->second.excluded.insert(member);
  take_back(at->second, member);
}

std::vector<uint64_t> TeamWork::pieces_out(uint64_t index) const {
  std::vector<uint64_t> pieces;
  const auto at = shared_.find(index);
  if (at == shared_.end()) return pieces;
  for (const auto& [piece, member] : at->second.out) pieces.push_back(piece);
  return pieces;
}

std::vector<uint64_t> TeamWork::pieces_returned(uint64_t index) const {
  const auto at = shared_.find(index);
  return at == shared_.end() ? std::vector<uint64_t>()
                             : std::vector<uint64_t>(at->second.returned.begin(), at->second.returned.end());
}

std::vector<session::Want::Range> TeamWork::drop(uint64_t index, uint64_t first_piece, uint64_t count) {
  std::vector<session::Want::Range> dropped;
  const auto at = shared_.find(index);
  if (at == shared_.end()) return dropped;
  const uint64_t end = first_piece + count;
  std::deque<session::Want::Range> left;
  for (const session::Want::Range& range : at->second.left) {
    const uint64_t range_end = range.first + range.count;
    const uint64_t from = std::clamp(first_piece, range.first, range_end), to = std::clamp(end, range.first, range_end);
    if (from > range.first) left.push_back({range.first, from - range.first});
    if (from < to) dropped.push_back({from, to - from});
    if (to < range_end) left.push_back({to, range_end - to});
  }
  at->second.left = std::move(left);
  at->second.returned.erase(at->second.returned.lower_bound(first_piece), at->second.returned.lower_bound(end));
  return dropped;
}

bool TeamWork::waits(uint64_t index) const {
  const auto at = files_.find(index);
  return at != files_.end() && !at->second.member;
}

bool TeamWork::waits(uint64_t index, uint64_t piece) const {
  const auto at = shared_.find(index);
  if (at == shared_.end()) return waits(index);
  return std::any_of(at->second.left.begin(), at->second.left.end(), [piece](const session::Want::Range& range) {
    return piece >= range.first && piece - range.first < range.count;
  });
}

bool TeamWork::has_any(TeamMember member, const std::function<bool(uint64_t index)>& is_so) const {
  const auto has_file = [&](const auto& one) { return one.second.member == member && is_so(one.first); };
  const auto has_piece = [&](const auto& one) {
    return std::any_of(one.second.out.begin(), one.second.out.end(), [&](const auto& piece) { return piece.second == member; });
  };
  return std::any_of(files_.begin(), files_.end(), has_file) || std::any_of(shared_.begin(), shared_.end(), has_piece);
}

bool TeamWork::has_waiting() const {
  const auto waits_here = [](const auto& one) { return !one.second.left.empty(); };
  return !waiting_.empty() || !waiting_for_leader_.empty() || std::any_of(shared_.begin(), shared_.end(), waits_here);
}

void TeamWork::add(uint64_t index, uint64_t size_bytes, bool for_helpers) {
  files_[index] = {size_bytes, std::nullopt, !for_helpers};
  (for_helpers ? waiting_ : waiting_for_leader_).push_back(index);
}

void TeamWork::add_shared(uint64_t index, uint64_t size_bytes, const std::vector<session::Want::Range>& missing) {
  Shared& file = shared_[index];
  file.size_bytes = size_bytes;
  file.left.assign(missing.begin(), missing.end());
}

bool TeamWork::give_back(uint64_t index) {
  const auto at = files_.find(index);
  if (at == files_.end() || at->second.leader_only || !at->second.member || *at->second.member == team_leader) return false;
  const auto member = members_.find(*at->second.member);
  if (member != members_.end()) {
    member->second.bytes -= at->second.size_bytes;
    --member->second.files;
  }
  at->second.member.reset();
  at->second.leader_only = true;
  waiting_for_leader_.push_front(index);
  return true;
}

uint64_t TeamWork::bytes_of(const Shared& file, uint64_t piece) {
  return std::min<uint64_t>(session::piece_bytes, file.size_bytes - piece * session::piece_bytes);
}

void TeamWork::piece_came(uint64_t index, uint64_t piece) {
  const auto file = shared_.find(index);
  if (file == shared_.end()) return;
  const auto out = file->second.out.find(piece);
  if (out == file->second.out.end()) return;
  finished(out->second, bytes_of(file->second, piece), 0);
  if (const auto part = file->second.parts.find(out->second); part != file->second.parts.end()) --part->second;
  file->second.out.erase(out);
}

void TeamWork::ended(uint64_t index) {
  if (const auto at = files_.find(index); at != files_.end()) {
    if (at->second.member) finished(*at->second.member, at->second.size_bytes, 1);
    files_.erase(at);
  }
  if (const auto at = shared_.find(index); at != shared_.end()) {
    for (const auto& [piece, member] : at->second.out) finished(member, bytes_of(at->second, piece), 0);
    while (!at->second.parts.empty()) part_ends(at->second, at->second.parts.begin()->first);
    shared_.erase(at);
  }
}

void TeamWork::finished(TeamMember member, uint64_t bytes, uint64_t files) {
  const auto at = members_.find(member);
  if (at == members_.end()) return;
  at->second.bytes -= bytes;
  at->second.files -= files;
  at->second.bytes_done += bytes;
  at->second.files_done += files;
}

std::optional<TeamMember> TeamWork::owner(uint64_t index) const {
  const auto at = files_.find(index);
  return at == files_.end() ? std::nullopt : at->second.member;
}

std::optional<TeamMember> TeamWork::owner(uint64_t index, uint64_t piece) const {
  const auto at = shared_.find(index);
  if (at == shared_.end()) return owner(index);
  const auto out = at->second.out.find(piece);
  return out == at->second.out.end() ? std::nullopt : std::optional(out->second);
}

// Twice what it got done in a second may be with it: less would leave it idle until the next word reaches it over a long path.
void TeamWork::judge(Member& member, Instant now) const {
  if (!member.since) member.since = now;
  if (now - *member.since < team_rate_interval) return;
  // A slow one has little at once: at the end the others would wait for it. One that had nothing to do is not forgotten at once.
  member.window_bytes = std::max({limits_.window_bytes_min / 8, 2 * member.bytes_done, member.window_bytes / 2});
  member.window_files = std::clamp(2 * member.files_done, limits_.window_files_min, team_window_files_max);
  member.bytes_done = member.files_done = 0;
  member.since = now;
}

std::vector<TeamWork::Portion> TeamWork::hand_out(Instant now, const std::function<bool(TeamMember)>& may_take) {
  std::vector<Portion> portions;
  auto at = members_.lower_bound(first_);
  for (size_t i = 0; i < members_.size(); ++i, ++at) {
    if (at == members_.end()) at = members_.begin();
    judge(at->second, now);
    if (!has_room(at->second) || !may_take(at->first)) continue;
    Portion portion;
    portion.member = at->first;
    if (at->first == team_leader) take_files(at->first, waiting_for_leader_, portion);
    if (portion.empty()) take_files(at->first, waiting_, portion);
    take_pieces(at->first, portion);
    if (!portion.empty()) portions.push_back(std::move(portion));
  }
  first_ = first_ + 1 > members_.rbegin()->first ? team_leader : first_ + 1;
  return portions;
}

// When little is left each member gets less at once, so that all of them end together.
void TeamWork::take_files(TeamMember member, std::deque<uint64_t>& queue, Portion& portion) {
  const Member& with = members_.at(member);
  const uint64_t portion_bytes = std::min(limits_.portion_bytes, std::max<uint64_t>(with.window_bytes / 2, 1));
  const size_t fair = std::clamp<size_t>(queue.size() / (2 * members_.size()), 1, portion_files_max);
  const size_t files_max = std::min<size_t>(fair, with.window_files - with.files);
  uint64_t bytes = 0;
  while (!queue.empty() && portion.files.size() < files_max && bytes < portion_bytes) {
    const uint64_t index = queue.front();
    const auto file = files_.find(index);
    const bool is_stale = file == files_.end() || file->second.member || (file->second.leader_only && member != team_leader);
    if (!is_stale) {
      if (!portion.files.empty() && bytes + file->second.size_bytes > portion_bytes) return;
      bytes += file->second.size_bytes;
      take(member, index, portion);
    }
    queue.pop_front();
  }
}

void TeamWork::take(TeamMember member, uint64_t index, Portion& portion) {
  File& file = files_.at(index);
  file.member = member;
  Member& with = members_.at(member);
  with.bytes += file.size_bytes;
  ++with.files;
  portion.files.push_back(index);
}

void TeamWork::take_pieces(TeamMember member, Portion& portion) {
  Member& with = members_.at(member);
  size_t unfinished = 0;
  for (auto& [index, file] : shared_) {
    // The leader opens all of them, in their order, and keeps each until all of it is here: it is the one who says whether the file
    // has changed.
    if (member == team_leader && !(file.left.empty() && file.out.empty()) && ++unfinished > shared_files_max) return;
    if (file.left.empty() || file.excluded.contains(member)) continue;
    const bool is_more = member != team_leader && !file.parts.contains(member);
    if (is_more && with.shared >= shared_files_max) continue;
    session::Want::Range& left = file.left.front();
    const uint64_t pieces_max = std::clamp<uint64_t>(with.window_bytes / (2 * session::piece_bytes), 1, limits_.shared_pieces);
    const session::Want::Range taken{left.first, std::min(left.count, pieces_max)};
    for (uint64_t piece = taken.first; piece < taken.first + taken.count; ++piece) {
      file.out[piece] = member;
      file.returned.erase(piece);
      with.bytes += bytes_of(file, piece);
    }
    if (is_more) ++with.shared;
    if (member != team_leader) file.parts[member] += taken.count;
    left.first += taken.count;
    left.count -= taken.count;
    if (left.count == 0) file.left.pop_front();
    portion.pieces.push_back({index, taken});
    return;
  }
}

}  // namespace ccixfer::recv
