// The team of a session: several source processes that share its work (--stripe). The first of them leads: it lists everything and
// is answered, as the source of any session. The others help: they send files and pieces that the team gives them. Everything that
// comes goes into the files of this session, so there is one ledger, one commit and one summary, whoever sent the bytes.
// A file, or a piece of a shared one, is with one member at a time. When a member is lost, what it had is given to others; what it
// had sent and is durable stays.
// In: decisions on entries, what comes and ends, helpers that come and go. Out: what each member is told.
// Protocol thread. The helpers are the program's as well; they are let go when the session ends.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/recv/entries.h"
#include "app/recv/file_handler.h"
#include "app/recv/helper.h"
#include "app/recv/outbox.h"
#include "app/recv/session_handler.h"
#include "app/recv/session_root.h"
#include "app/recv/shares.h"
#include "app/recv/team_work.h"
#include "app/recv/untold.h"
#include "app/session/tally.h"

namespace ccixfer::recv {

// Files in a row that a helper could not read although the leader had listed them: then it has another source before it.
inline constexpr uint32_t refused_in_a_row_max = 100;
// Of a helper that has work and a way to send it: after so long without a segment it hangs, or is too slow to wait for.
inline constexpr Duration helper_patience = std::chrono::seconds(30);

// What a helper's segments and ends of files are to the session that leads.
class TeamHandler {
 public:
  virtual ~TeamHandler() = default;
  virtual void receive_from(Helper& helper, ReceivedSegment arrival) = 0;
  virtual void helpers_have_news() = 0;                                 // a turn is due
  virtual void on_file_end_of_helper(const session::FileEnd& end) = 0;  // of a file that is with that helper alone
  virtual void on_holes_of_helper(const session::Holes& holes) = 0;     // the same
};

// What is wrong with a helper's segments is the session's concern; that a put is wanted again, the helper's.
class HelperVoice final : public SessionHandler {
 public:
  HelperVoice(SessionHandler& session, Helper& helper) : session_(session), helper_(helper) {}
  bool has_failed() const override { return session_.has_failed(); }
  void fail(Error reason) override { session_.fail(std::move(reason)); }
  void refuse(Error reason) override { session_.refuse(std::move(reason)); }
  void reject(std::string_view why) override { session_.reject(why); }
  void opened(bool is_intact) override { session_.opened(is_intact); }
  void ask_for_put(uint64_t lane_session, uint64_t n) override;
  void ask_for_piece(uint64_t index, uint64_t piece) override { session_.ask_for_piece(index, piece); }
  void made_progress() override { session_.made_progress(); }
  void warn(const std::string& line) override { session_.warn(line); }
  void tell_failure(const std::string& line) override { session_.tell_failure(line); }
  void put_damaged() override { session_.put_damaged(); }

 private:
  SessionHandler& session_;
  Helper& helper_;
};

// What a team hears of its transfer, which has come to its summary.
[[nodiscard]] session::TeamEnded team_ended_of(const session::Tally& tally);

// Of the session that leads. `leader`: what is said to its own source.
struct TeamParts {
  SessionJobs& jobs;
  SessionRoot& root;
  FileHandler& files;
  Outbox& leader;
  SessionHandler& session;
  TeamHandler& handler;
  ports::Entropy& entropy;
};

class Team final : public HelperHandler {
 public:
  Team(const TeamLimits& limits, const TeamParts& parts);
  ~Team() override;  // CHECKs that no helper is left: release()
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Before the verdict is said: a file that others may send gets another one. `base`: the session's path below the root, of which
  // the paths of entries are relative.
  void choose(Decision& decision);
  void set_base(std::string base) { base_ = std::move(base); }

  // The helper has its intake. It stays until it is gone, or released.
  void add(std::shared_ptr<Helper> helper);
  [[nodiscard]] SessionHandler& voice_of(Helper& helper);  // as long as the helper is with the team
  [[nodiscard]] bool has_helpers() const { return !helpers_.empty(); }
  [[nodiscard]] bool holds_buffers() const;  // of helpers that are gone too

  // Gives the session what helpers have sent, as long as `may_receive`.
  void receive(const std::function<bool()>& may_receive);
  void written(uint64_t index) { written_.insert(index); }  // something of it
  void holes_made(const session::Holes& holes);             // in a file that may be shared
  void ended(const session::FileResult& result);
  void set_aside(uint64_t index);  // the next session brings it
  void turn(Instant now, uint64_t steps);
  void let_go_those_gone();  // in each turn, whatever has become of the session
  // Something that came damaged is to be sent again: whoever had sent it hears it. False: the leader is to be asked.
  [[nodiscard]] bool ask_again(const session::Resend& resend);
  // The session has its summary, or has failed: all helpers hear it. After that they are nobody's.
  void end(const session::TeamEnded& how);
  void fail(const Error& error);
  void release();

  void on_segment() override { handler_.helpers_have_news(); }
  void on_file_end(Helper& helper, const session::FileEnd& end) override;
  void on_holes(Helper& helper, const session::Holes& holes) override;
  void on_ask_place(Helper& helper, const session::AskPlace& ask) override;
  void on_placed(Helper& helper, const session::Placed& placed) override;
  void on_helper_gone(Helper& helper) override;

 private:
  struct Place {
    std::shared_ptr<Helper> helper;
    bool takes_part = false;  // in the work
    uint32_t refused = 0;     // files in a row that it could not send and the leader could
    uint32_t unsettled = 0;   // files that it gave back and that have not ended
  };
  [[nodiscard]] std::optional<TeamMember> member_of(const Helper& helper) const;
  [[nodiscard]] Outbox& outbox_of(TeamMember member);
  void let_go(Helper& helper);
  void hand_out(Instant now);
  [[nodiscard]] bool may_take(TeamMember member);
  [[nodiscard]] bool is_kept_idle(TeamMember member);
  void let_go_those_that_hang(Instant now);
  void take_from_work(const session::FileResult& result);
  void judge(const std::set<TeamMember>& gave_back, bool leader_has_sent_it);
  void give_files(TeamMember member, const std::vector<uint64_t>& files);
  void give_pieces(TeamMember member, const TeamWork::Portion::Pieces& pieces);
  [[nodiscard]] session::ToRead::File order_for(const FileInWork& file, bool is_shared) const;
  [[nodiscard]] std::string entry_path(const std::string& path) const;
  void tell_pieces(uint64_t index);
  void tell_the_untold();
  void tell_all(TeamMember member, uint64_t index);
  void release_from(uint64_t index);

  const TeamLimits limits_;
  FileHandler& files_;
  Outbox& leader_;
  SessionHandler& session_;
  TeamHandler& handler_;
  Shares shares_;
  std::map<Helper*, std::unique_ptr<HelperVoice>> voices_;
  std::string base_;
  TeamWork work_;
  std::map<TeamMember, Place> helpers_;
  std::vector<std::shared_ptr<Helper>> gone_;  // until their buffers are back
  // Of each shared file: the members that were told of it, and whether each hears of its pieces. One that is released does not.
  std::map<uint64_t, std::map<TeamMember, bool>> told_;
  Untold untold_;                                        // of those that hear of them
  std::map<uint64_t, std::set<TeamMember>> given_back_;  // of each file that has not ended: who could not send it
  std::set<uint64_t> written_;                           // files of which something was written since the last turn
  std::set<uint64_t> moved_;                             // shared files of which something came, or was given, in this turn
  TeamMember next_member_ = 1;
};

}  // namespace ccixfer::recv
