#include "app/recv/team.h"

#include <algorithm>
#include <utility>

#include "app/session/message_wire.h"
#include "core/base/check.h"
#include "core/base/log.h"

namespace ccixfer::recv {
namespace {

using session::Verdict;

// Adds to the last range where it follows it.
void append(std::vector<session::Want::Range>& ranges, uint64_t piece) {
  if (!ranges.empty() && ranges.back().first + ranges.back().count == piece) {
    ++ranges.back().count;
  } else {
    ranges.push_back({piece, 1});
  }
}

bool is_here(const FilePieces* pieces, uint64_t piece) {
  if (pieces == nullptr) return false;
  const PieceState state = pieces->table().state(piece);
  return state == PieceState::written || state == PieceState::durable;
}

}  // namespace

void HelperVoice::ask_for_put(uint64_t lane_session, uint64_t n) {
  session_.put_damaged();
  if (!session_.has_failed()) helper_.outbox().ask_for_put(lane_session, n);
}

session::TeamEnded team_ended_of(const session::Tally& tally) {
  session::TeamEnded how;
  how.kind = tally.failed() > 0         ? ErrorKind::partial
             : tally.delete_skipped > 0 ? ErrorKind::max_delete
             : tally.vanished() > 0     ? ErrorKind::vanished
                                        : ErrorKind::ok;
  how.files_ok = tally.files;
  how.files_unchanged = tally.files_unchanged;
  how.files_failed = tally.failed() + tally.vanished();
  how.bytes = tally.bytes;
  return how;
}

Team::Team(const TeamLimits& limits, const TeamParts& parts)
    : limits_(limits),
      files_(parts.files),
      leader_(parts.leader),
      session_(parts.session),
      handler_(parts.handler),
      shares_(
          parts.jobs,
          [&root = parts.root](StagedFile& staged, const session::SharedPlace& place) { return root.share(staged, place); },
          parts.root.files(), parts.files, parts.entropy),
      work_(limits) {}

Team::~Team() { CHECK(helpers_.empty() && gone_.empty()); }

void Team::choose(Decision& decision) {
  if (!decision.task || decision.task->size_bytes == size_unknown || decision.task->in_place) return;
  const FileTask& task = *decision.task;
  const bool in_part = decision.verdict == Verdict::pieces && !decision.wants.empty();
  if (decision.verdict != Verdict::send && !in_part) return;
  const bool can_be_told = entry_path(task.path).size() <= session::to_read_path_bytes_max;
  if (task.size_bytes >= limits_.shared_file_bytes && can_be_told) {
    decision.verdict = Verdict::shared;
    const std::vector<session::Want::Range> all = {{0, piece_count(task.size_bytes)}};
    work_.add_shared(task.index, task.size_bytes, in_part ? decision.wants : all);
    told_[task.index].emplace(team_leader, true);
  } else if (!in_part) {
    decision.verdict = Verdict::elsewhere;
    work_.add(task.index, task.size_bytes, can_be_told);
  }
}

std::string Team::entry_path(const std::string& path) const {
  if (path == base_) return {};
  return base_.empty() ? path : path.substr(base_.size() + 1);
}

void Team::add(std::shared_ptr<Helper> helper) {
  helper->set_team(this);
  helpers_[next_member_++].helper = std::move(helper);
}

SessionHandler& Team::voice_of(Helper& helper) {
  std::unique_ptr<HelperVoice>& voice = voices_[&helper];
  if (!voice) voice = std::make_unique<HelperVoice>(session_, helper);
  return *voice;
}

// Nothing of it is in work any more.
void Team::let_go(Helper& helper) {
  helper.set_team(nullptr);
  helper.set_intake(nullptr);
  voices_.erase(&helper);
}

bool Team::holds_buffers() const {
  const auto holds = [](const std::shared_ptr<Helper>& helper) { return helper->inbox().held() > 0; };
  return std::any_of(gone_.begin(), gone_.end(), holds) ||
         std::any_of(helpers_.begin(), helpers_.end(), [&](const auto& one) { return holds(one.second.helper); });
}

std::optional<TeamMember> Team::member_of(const Helper& helper) const {
  for (const auto& [member, place] : helpers_) {
    if (place.helper.get() == &helper) return member;
  }
  return std::nullopt;
}

Outbox& Team::outbox_of(TeamMember member) { return member == team_leader ? leader_ : helpers_.at(member).helper->outbox(); }

void Team::turn(Instant now, uint64_t steps) {
  for (auto& [member, place] : helpers_) {
    place.helper->set_steps(steps);
    if (place.takes_part || !place.helper->is_here()) continue;
    place.takes_part = true;
    work_.join(member);
  }
  for (const uint64_t index : std::exchange(written_, {})) tell_pieces(index);
  hand_out(now);
  for (const uint64_t index : std::exchange(moved_, {})) release_from(index);
  tell_the_untold();
  let_go_those_that_hang(now);
}

// Of a helper that gave back many files it is seen first what becomes of them.
bool Team::may_take(TeamMember member) {
  const bool is_trusted = member == team_leader || helpers_.at(member).unsettled < refused_in_a_row_max;
  return is_trusted && !outbox_of(member).is_full();
}

// What waits, when all was handed out that could be, is nothing for it: the leader gets pieces of the first few files only.
bool Team::is_kept_idle(TeamMember member) {
  return may_take(member) && !work_.has_any(member, [](uint64_t) { return true; });
}

// At the end all wait for the last ones, and before it whoever gets nothing because of them. Of a process that hangs, as in a file
// system that does not answer, others do the work. What it has sent may be with the disk of this end for as long as that takes.
void Team::let_go_those_that_hang(Instant now) {
  if (work_.has_waiting() && !is_kept_idle(team_leader)) return;
  const auto is_awaited = [this](uint64_t index) {
    const FileInWork* file = files_.find(index);
    return file != nullptr && file->awaits_source();
  };
  const auto helpers = helpers_;  // who fails leaves
  for (const auto& [member, place] : helpers) {
    if (!place.helper->has_brought_nothing_for(helper_patience, now)) continue;
    if (!work_.has_any(member, is_awaited)) {
      place.helper->begin_patience();
      continue;
    }
    place.helper->fail({ErrorKind::network, "this process has sent nothing for a while: others do what was left to it"});
  }
}

void Team::let_go_those_gone() {
  std::erase_if(gone_, [this](const std::shared_ptr<Helper>& helper) {
    if (helper->inbox().held() > 0) return false;
    let_go(*helper);
    return true;
  });
}

void Team::receive(const std::function<bool()>& may_receive) {
  bool any = true;
  while (any) {
    any = false;
    const auto helpers = helpers_;  // one that sends nonsense leaves
    for (const auto& [member, place] : helpers) {
      Inbox& inbox = place.helper->inbox();
      if (inbox.empty() || !helpers_.contains(member) || !may_receive()) continue;
      handler_.receive_from(*place.helper, inbox.take());
      any = true;
    }
  }
}

void Team::hand_out(Instant now) {
  while (true) {
    const std::vector<TeamWork::Portion> portions = work_.hand_out(now, [this](TeamMember member) { return may_take(member); });
    if (portions.empty()) return;
    for (const TeamWork::Portion& portion : portions) {
      if (portion.member != team_leader) helpers_.at(portion.member).helper->begin_patience();
      if (!portion.files.empty()) give_files(portion.member, portion.files);
      for (const TeamWork::Portion::Pieces& pieces : portion.pieces) give_pieces(portion.member, pieces);
    }
  }
}

session::ToRead::File Team::order_for(const FileInWork& file, bool is_shared) const {
  const FileTask& task = file.task();
  session::ToRead::File order;
  order.index = task.index;
  order.size_bytes = task.size_bytes;
  order.version = task.version;
  order.mtime_s = task.attributes.mtime.seconds;
  order.mtime_ns = task.attributes.mtime.nanoseconds;
  order.is_shared = is_shared;
  order.path = entry_path(task.path);
  return order;
}

void Team::give_files(TeamMember member, const std::vector<uint64_t>& files) {
  session::Give given;
  session::ToRead order;
  for (const uint64_t index : files) {
    const FileInWork* file = files_.find(index);
    if (file == nullptr) continue;
    if (member != team_leader) {
      order.files.push_back(order_for(*file, false));
    } else if (!given.runs.empty() && given.runs.back().first + given.runs.back().count == index) {
      ++given.runs.back().count;
    } else {
      given.runs.push_back({index, 1});
    }
  }
  Outbox& to = outbox_of(member);
  for (const session::Message& message : session::cut(given)) to.post(message);
  for (const session::Message& message : session::cut(order)) to.post(message);
}

// Before its first piece a helper hears of the file, and which pieces of it are here. One that was released from it knows all its
// pieces as elsewhere, so it is asked as for a piece that is wanted once more.
void Team::give_pieces(TeamMember member, const TeamWork::Portion::Pieces& pieces) {
  const FileInWork* file = files_.find(pieces.index);
  if (file == nullptr) return;
  Outbox& to = outbox_of(member);
  moved_.insert(pieces.index);
  tell_all(member, pieces.index);
  const auto [told, is_first] = told_[pieces.index].try_emplace(member, true);
  if (!told->second) {
    for (uint64_t i = 0; i < pieces.range.count; ++i) to.post(session::Resend{pieces.index, pieces.range.first + i});
    return;
  }
  if (is_first) {
    for (const session::Message& message : session::cut(session::ToRead{{order_for(*file, true)}})) to.post(message);
    session::Elsewhere here{pieces.index, {}};
    for (uint64_t piece = 0; piece < piece_count(file->task().size_bytes); ++piece) {
      if (is_here(file->pieces(), piece)) append(here.ranges, piece);
    }
    for (const session::Message& message : session::cut(here)) to.post(message);
  }
  to.post(session::Compare{pieces.index, pieces.range.first, pieces.range.count, {}});
}

// What has come of a shared file is told to those who did not send it: they may close it when there is no more.
void Team::tell_pieces(uint64_t index) {
  const FileInWork* file = files_.find(index);
  if (file == nullptr || !work_.is_shared(index)) return;
  moved_.insert(index);
  const auto tell = [&](uint64_t piece, std::optional<TeamMember> owner) {
    for (const auto& [member, hears] : told_[index]) {
      if (member != owner && hears) untold_.add(member, index, {piece, 1});
    }
  };
  for (const uint64_t piece : work_.pieces_out(index)) {
    if (!is_here(file->pieces(), piece)) continue;
    const std::optional<TeamMember> owner = work_.owner(index, piece);
    work_.piece_came(index, piece);
    tell(piece, owner);
  }
  for (const uint64_t piece : work_.pieces_returned(index)) {
    if (is_here(file->pieces(), piece) && !work_.drop(index, piece, 1).empty()) tell(piece, std::nullopt);
  }
}

// What was said to a member while it waited would overflow the queue to it: see Outbox.
void Team::tell_the_untold() {
  for (const TeamMember member : untold_.members()) {
    Outbox& to = outbox_of(member);
    while (!to.is_full()) {
      const std::optional<session::Elsewhere> pieces = untold_.take(member);
      if (!pieces) break;
      to.post(*pieces);
    }
  }
}

// Before anything that it is asked for of this file: that may be one of these pieces, wanted once more.
void Team::tell_all(TeamMember member, uint64_t index) {
  for (const session::Message& message : session::cut(untold_.take_all(member, index))) outbox_of(member).post(message);
}

// It may close the file: what it does not have to send is with others, and if one of those is lost it may be asked once more.
void Team::release_from(uint64_t index) {
  const std::vector<TeamMember> released = work_.take_released(index);
  if (released.empty()) return;
  for (const TeamMember member : released) {
    const auto told = told_[index].find(member);
    if (told == told_[index].end() || !std::exchange(told->second, false)) continue;  // it has been released before
    for (const uint64_t piece : work_.pieces_out(index)) untold_.add(member, index, {piece, 1});
  }
}

// Nobody need send them, but for who has begun to: the leader knows, who has told of them.
void Team::holes_made(const session::Holes& holes) {
  if (!work_.is_shared(holes.index)) return;
  for (const session::Want::Range& range : holes.ranges) {
    for (const session::Want::Range& dropped : work_.drop(holes.index, range.first, range.count)) {
      for (const auto& [member, hears] : told_[holes.index]) {
        if (member != team_leader && hears) untold_.add(member, holes.index, dropped);
      }
    }
  }
  written_.insert(holes.index);
}

void Team::on_holes(Helper& helper, const session::Holes& holes) {
  const std::optional<TeamMember> member = member_of(helper);
  if (member && !work_.is_shared(holes.index) && work_.owner(holes.index) == member) handler_.on_holes_of_helper(holes);
}

void Team::ended(const session::FileResult& result) {
  const std::optional<TeamMember> owner = work_.owner(result.index);
  if (owner && *owner != team_leader) {
    helpers_.at(*owner).helper->outbox().add_result(result);
    if (result.kind == ErrorKind::ok) helpers_.at(*owner).refused = 0;
  }
  take_from_work(result);
  shares_.ended(result.index);
}

// It has no result here. Nobody gets anything of it, those who got pieces have done their part, and it takes no room of the
// leader's. A second receiver may still write into it.
void Team::set_aside(uint64_t index) { take_from_work({index, ErrorKind::vanished, 0}); }

void Team::take_from_work(const session::FileResult& result) {
  if (const auto given_back = given_back_.extract(result.index)) judge(given_back.mapped(), result.kind == ErrorKind::ok);
  if (const auto told = told_.find(result.index); told != told_.end()) {
    for (const auto& [member, hears] : told->second) {
      if (member != team_leader) outbox_of(member).add_result(result);
    }
    told_.erase(told);
  }
  untold_.ended(result.index);
  work_.ended(result.index);
}

// What the leader can send and a helper cannot shows that the helper sees another source. What neither can is nobody's fault.
void Team::judge(const std::set<TeamMember>& gave_back, bool leader_has_sent_it) {
  for (const TeamMember member : gave_back) {
    const auto place = helpers_.find(member);
    if (place == helpers_.end()) continue;
    --place->second.unsettled;
    place->second.refused = leader_has_sent_it ? place->second.refused + 1 : 0;
    if (place->second.refused < refused_in_a_row_max) continue;
    const std::shared_ptr<Helper> helper = place->second.helper;  // it leaves
    helper->fail(
        {ErrorKind::source_selection,
         "many files that the first process of this transfer has listed are not there, or differ: every process must see the "
         "same source: check what is mounted there"});
  }
}

bool Team::ask_again(const session::Resend& resend) {
  if (resend.index == session::Resend::by_segment) return false;
  const bool is_whole = resend.piece == session::Resend::whole;
  if (is_whole ? work_.waits(resend.index) : work_.waits(resend.index, resend.piece)) return true;  // whoever gets it sends it
  const std::optional<TeamMember> owner = is_whole ? work_.owner(resend.index) : work_.owner(resend.index, resend.piece);
  tell_all(owner.value_or(team_leader), resend.index);
  if (!owner || *owner == team_leader) return false;
  helpers_.at(*owner).helper->begin_patience();
  outbox_of(*owner).post(resend);
  return true;
}

// The leader judges what is wrong with a file: a helper that cannot send it proves nothing.
void Team::on_file_end(Helper& helper, const session::FileEnd& end) {
  const std::optional<TeamMember> member = member_of(helper);
  if (!member) return;
  const bool is_ok = end.outcome == session::SourceOutcome::ok;
  if (work_.is_shared(end.index)) {
    if (is_ok) return;
    work_.exclude(end.index, *member);
  } else if (work_.owner(end.index) != member) {
    return;
  } else if (is_ok) {
    return handler_.on_file_end_of_helper(end);
  } else if (work_.give_back(end.index)) {
    helper.outbox().add_result({end.index, ErrorKind::file_io, 0});
  }
  if (given_back_[end.index].insert(*member).second) ++helpers_.at(*member).unsettled;
}

// A file that has just ended has no place: the helper hears its result.
void Team::on_ask_place(Helper& helper, const session::AskPlace& ask) {
  const std::optional<TeamMember> member = member_of(helper);
  FileInWork* const file = files_.find(ask.index);
  if (!member || file == nullptr || !work_.is_shared(ask.index) || !file->takes_content()) return;
  if (file->task().sparse || helper.outbox().is_full()) return;  // only this receiver makes holes
  shares_.ask(*file, *member, [this, member = *member](const session::SharedPlace& place) {
    if (helpers_.contains(member)) outbox_of(member).post(place);
  });
}

// As if they had come here and been written.
void Team::on_placed(Helper&, const session::Placed& placed) {
  for (uint64_t i = 0; i < placed.hashes.size(); ++i) {
    FileInWork* const file = files_.find(placed.index);
    if (file == nullptr) return;  // it has ended
    const uint64_t piece = placed.first + i;
    if (!shares_.is_made(placed.index) || piece >= piece_count(file->task().size_bytes))
      return session_.reject("pieces that are placed where there is no place for them");
    if (!file->takes_content()) return;
    switch (files_.pieces_of(*file).arrive(piece, placed.hashes[i])) {
      case FilePieces::Arrived::here:
        continue;
      case FilePieces::Arrived::changed:
        return files_.on_failed(*file, changed_at_source());
      case FilePieces::Arrived::wanted:
        break;
    }
    FilePieces& pieces = *file->pieces();
    if (pieces.written(piece, pieces.losses())) files_.on_written(*file, piece_length(file->task().size_bytes, piece));
    files_.on_job_ended(placed.index);
  }
}

void Team::on_helper_gone(Helper& helper) {
  const std::optional<TeamMember> member = member_of(helper);
  if (!member) return;
  work_.leave(*member);
  for (auto& [index, told] : told_) told.erase(*member);
  untold_.leave(*member);
  gone_.push_back(std::move(helpers_.at(*member).helper));
  helpers_.erase(*member);
}

void Team::end(const session::TeamEnded& how) {
  for (const auto& [member, place] : helpers_) place.helper->end(how);
}

void Team::fail(const Error& error) {
  const auto helpers = helpers_;  // each leaves while it hears it
  for (const auto& [member, place] : helpers) place.helper->fail(error);
}

void Team::release() {
  for (const auto& [member, place] : helpers_) gone_.push_back(place.helper);
  helpers_.clear();
  for (const std::shared_ptr<Helper>& helper : gone_) {
    CHECK(helper->inbox().held() == 0);
    let_go(*helper);
  }
  gone_.clear();
}

}  // namespace ccixfer::recv
