// Who of a team sends which file: what is wanted waits here until one of the members has room for it, so the work is shared by what
// is left, and a fast member gets more than a slow one.
// A member is the source of the session that leads (member 0), or a helper. Each has a window: so many bytes and files may be
// with it unfinished. The window begins small and follows what the member got done in the last second, so that nobody holds at the
// end what others could send.
// Large files are shared in pieces: each member that takes part gets some pieces at a time. It gets them of few files at once,
// because a source keeps open what it is to send pieces of. A member that has done its part of a file, of which nothing is left to
// give, is released from it.
// In: files that are wanted, what came and what ended, members that come and go. Out: portions.
// Pure; memory: a constant for each file that has not ended, and for each range of pieces of a shared one.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "app/session/limits.h"
#include "app/session/messages.h"
#include "core/base/time.h"

namespace ccixfer::recv {

using TeamMember = uint32_t;
inline constexpr TeamMember team_leader = 0;
inline constexpr uint64_t team_window_bytes_min = 64u << 20;
inline constexpr uint64_t team_window_files_min = 2048;
inline constexpr uint64_t team_window_files_max = session::entries_outstanding_max / 2;
inline constexpr uint64_t portion_bytes_max = 16u << 20;       // handed out at once, but for one file that is longer
inline constexpr size_t portion_files_max = 1024;              // a full pack
inline constexpr uint64_t shared_file_bytes_min = 256u << 20;  // shorter files have one sender
inline constexpr uint64_t shared_portion_pieces = 8;           // of a shared file, at once
inline constexpr size_t shared_files_max = 8;                  // of which a member has pieces, at once; fewer than it may open
inline constexpr Duration team_rate_interval = std::chrono::seconds(1);

// How the work is cut up: the constants above. A simulated world has less of everything.
struct TeamLimits {
  uint64_t window_bytes_min = team_window_bytes_min;
  uint64_t window_files_min = team_window_files_min;
  uint64_t portion_bytes = portion_bytes_max;
  uint64_t shared_file_bytes = shared_file_bytes_min;
  uint64_t shared_pieces = shared_portion_pieces;
};

class TeamWork {
 public:
  // What a member gets: whole files, or pieces of a shared one.
  struct Portion {
    TeamMember member = team_leader;
    std::vector<uint64_t> files;
    struct Pieces {
      uint64_t index = 0;
      session::Want::Range range;
    };
    std::vector<Pieces> pieces;
    [[nodiscard]] bool empty() const { return files.empty() && pieces.empty(); }
  };

  explicit TeamWork(const TeamLimits& limits = {}) : limits_(limits) { join(team_leader); }

  void join(TeamMember member);
  // What was with it goes to others.
  void leave(TeamMember member);
  [[nodiscard]] size_t members() const { return members_.size(); }  // the leader included

  // A wanted file. `for_helpers`: others than the leader may send it.
  void add(uint64_t index, uint64_t size_bytes, bool for_helpers);
  // A wanted file that all may send pieces of. `missing`: which pieces are wanted.
  void add_shared(uint64_t index, uint64_t size_bytes, const std::vector<session::Want::Range>& missing);
  // A helper cannot send it: the leader is to try, who can say what is wrong with it. False: the leader has it already.
  bool give_back(uint64_t index);
  void piece_came(uint64_t index, uint64_t piece);  // of a shared file: it was written
  // Of a shared file: nobody need send these any more, if nobody has begun to. Gives those that it was so for.
  [[nodiscard]] std::vector<session::Want::Range> drop(uint64_t index, uint64_t first_piece, uint64_t count);
  // No more of the file is wanted: it is delivered or has failed.
  void ended(uint64_t index);

  // Who has the file; of a shared one, the piece. nullopt: nobody, or it is not known here.
  [[nodiscard]] std::optional<TeamMember> owner(uint64_t index) const;
  [[nodiscard]] std::optional<TeamMember> owner(uint64_t index, uint64_t piece) const;
  [[nodiscard]] bool is_shared(uint64_t index) const { return shared_.contains(index); }

  // A member takes no part in a shared file any more: what it had of it goes to others.
  void exclude(uint64_t index, TeamMember member);
  [[nodiscard]] std::vector<uint64_t> pieces_out(uint64_t index) const;  // of a shared file: that are with somebody
  // Of a shared file: what was with a member that is lost and is with nobody now. It may come all the same, if it was on its way.
  [[nodiscard]] std::vector<uint64_t> pieces_returned(uint64_t index) const;
  // Of a shared file: the helpers that have done their part, while others still do theirs. Each is named once, and again when it
  // got more, as it does when another one is lost.
  [[nodiscard]] std::vector<TeamMember> take_released(uint64_t index);
  // It is wanted and with nobody: whoever gets it sends it.
  [[nodiscard]] bool waits(uint64_t index) const;
  [[nodiscard]] bool waits(uint64_t index, uint64_t piece) const;
  // A piece is, or a file of which that is so.
  [[nodiscard]] bool has_any(TeamMember member, const std::function<bool(uint64_t index)>& is_so) const;
  [[nodiscard]] bool has_waiting() const;  // something is with nobody

  // What is due now, at most one portion for each member that `may_take` says can be told. Call it again until it is empty.
  [[nodiscard]] std::vector<Portion> hand_out(Instant now, const std::function<bool(TeamMember)>& may_take);
  [[nodiscard]] bool empty() const { return files_.empty() && shared_.empty(); }

 private:
  struct Member {
    uint64_t bytes = 0;  // with it, unfinished
    uint64_t files = 0;
    uint64_t bytes_done = 0, files_done = 0;  // since `since`
    uint64_t window_bytes = 0, window_files = 0;
    size_t shared = 0;  // of a helper: files in whose `parts` it is
    std::optional<Instant> since;
  };
  struct File {
    uint64_t size_bytes = 0;
    std::optional<TeamMember> member;  // none: it waits
    bool leader_only = false;
  };
  struct Shared {
    uint64_t size_bytes = 0;
    std::deque<session::Want::Range> left;  // with nobody
    std::map<uint64_t, TeamMember> out;     // piece: with whom
    std::set<uint64_t> returned;            // of those left: they were with a member that is lost
    std::set<TeamMember> excluded;
    std::map<TeamMember, uint64_t> parts;  // the helpers that are not released: how many pieces are with each
  };
  void take(TeamMember member, uint64_t index, Portion& portion);
  void take_pieces(TeamMember member, Portion& portion);
  void take_files(TeamMember member, std::deque<uint64_t>& queue, Portion& portion);
  [[nodiscard]] bool has_room(const Member& member) const {
    return member.bytes < member.window_bytes && member.files < member.window_files;
  }
  void take_back(Shared& file, TeamMember member);
  void part_ends(Shared& file, TeamMember member);
  void finished(TeamMember member, uint64_t bytes, uint64_t files);
  void judge(Member& member, Instant now) const;
  [[nodiscard]] static uint64_t bytes_of(const Shared& file, uint64_t piece);

  const TeamLimits limits_;
  std::map<TeamMember, Member> members_;
  std::map<uint64_t, File> files_;
  std::map<uint64_t, Shared> shared_;
  std::deque<uint64_t> waiting_;             // for anybody; an index that has ended, or is with somebody, is passed over
  std::deque<uint64_t> waiting_for_leader_;  // the same
  TeamMember first_ = team_leader;           // whose turn is the first
};

}  // namespace ccixfer::recv
