// A helper of a team, as the destination sees it: a session of its own with a source that lists nothing and sends what it is told
// to (session::ToRead). Its segments go into the files of the session that leads. Here are its link's end: lanes, buffers, what is
// said to it. Who gives it work, and what its work is for, is the Team's.
// Life: the program owns a helper, and so does the team until it has ended or is gone. A helper must not be destroyed before
// idle().
// Errors: what the helper's source says wrong ends the session of the whole team; a link that is lost ends only the helper, and
// what was with it goes to others.
// Protocol thread.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "app/recv/inbox.h"
#include "app/recv/intake.h"
#include "app/recv/lanes.h"
#include "app/recv/outbox.h"
#include "app/recv/session_handler.h"
#include "app/session/link.h"
#include "app/session/liveness.h"

namespace ccixfer::recv {

class Helper;

// What a helper tells its team.
class HelperHandler {
 public:
  virtual ~HelperHandler() = default;
  virtual void on_segment() = 0;  // one is in its inbox
  virtual void on_file_end(Helper& helper, const session::FileEnd& end) = 0;
  virtual void on_holes(Helper& helper, const session::Holes& holes) = 0;
  virtual void on_ask_place(Helper& helper, const session::AskPlace& ask) = 0;
  virtual void on_placed(Helper& helper, const session::Placed& placed) = 0;
  virtual void on_helper_gone(Helper& helper) = 0;  // it is not there, or not any more: no lane is left, or the session ends
};

struct HelperParts {
  session::Link& link;
  rvma::MailboxTable& mailboxes;
  memory::Pool& pool;
  ports::Entropy& entropy;
  std::shared_ptr<session::PoolTurns> turns;
  std::shared_ptr<RateAllowance> rate;
};

class Helper final : public session::LinkHandler {
 public:
  explicit Helper(const HelperParts& parts);
  ~Helper() override;  // CHECKs idle()

  // --- For the program
  void start(Instant now);
  void turn(Instant now);
  [[nodiscard]] bool owns_mailbox(uint64_t mailbox) const { return lanes_.owns(mailbox); }
  void on_completion(const rvma::Completion& completion);
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] bool finished() const { return error_ || is_bye_said_ || (is_end_posted_ && is_link_gone_); }
  [[nodiscard]] bool idle() const {
    return lanes_.idle() && inbox_.held() == 0 && team_ == nullptr && (!finished() || !lanes_.has_live());
  }
  [[nodiscard]] const Error* error() const { return error_ ? &*error_ : nullptr; }
  [[nodiscard]] bool is_end_posted() const { return is_end_posted_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }  // that came from it
  [[nodiscard]] Instant last_progress() const { return last_progress_; }
  void abort(const Error& error);  // tells the peer

  // --- For its team. While there is none it does nothing.
  void set_team(HelperHandler* team) { team_ = team; }
  [[nodiscard]] Inbox& inbox() { return inbox_; }
  [[nodiscard]] const session::DataOpener* opener() const { return opener_.get(); }
  [[nodiscard]] bool is_here() const { return team_ != nullptr && lanes_.has_live() && !finished() && !is_end_posted_; }
  void set_intake(std::unique_ptr<Intake> intake) { intake_ = std::move(intake); }
  [[nodiscard]] Intake& intake() { return *intake_; }
  [[nodiscard]] Outbox& outbox() { return outbox_; }
  [[nodiscard]] uint64_t session() const { return link_.session(); }
  // The time without a segment counts from now on: the helper got something to do, or has nothing to do.
  void begin_patience() { brought_at_ = now_; }
  // Buffers are there for it, nothing of it waits here, and nothing whole has come for so long.
  [[nodiscard]] bool has_brought_nothing_for(Duration patience, Instant now) const;
  // How far the team has come, for a helper that has nothing to do meanwhile.
  void set_steps(uint64_t steps) { steps_ = steps; }
  void end(const session::TeamEnded& how);  // the transfer has ended; the helper is to hear it
  // Its session ends, and its source is to begin another one.
  void fail(const Error& error) { abort(error); }

  void on_lane_up(session::LaneIndex lane) override;
  void on_lane_down(session::LaneIndex lane) override;
  void on_lane_message(session::LaneIndex lane, const session::Message& message) override;
  void on_message(const session::Message& message) override;
  void on_put(session::LaneIndex lane, uint64_t context, Status status) override;
  void on_link_lost(const Error& error) override;

 private:
  void is_gone();
  void reject(std::string_view why);

  session::Link& link_;
  const std::unique_ptr<session::DataOpener> opener_;  // none: --insecure
  const uint32_t buffers_max_;
  Outbox outbox_;
  Lanes lanes_;
  Inbox inbox_;
  std::unique_ptr<Intake> intake_;  // of its team
  HelperHandler* team_ = nullptr;
  session::Liveness liveness_;
  uint64_t steps_ = 0;
  uint64_t bytes_ = 0;
  Instant last_progress_{};
  Instant brought_at_{};  // when it last brought a segment or the end of a file, was held up by this end, or got work
  bool had_lane_ = false;
  Instant now_{};
  bool is_end_posted_ = false;
  bool is_bye_said_ = false;
  bool is_link_gone_ = false;
  std::optional<Error> error_;
};

}  // namespace ccixfer::recv
