#include "app/recv/destination.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/recv/arrivals.h"
#include "app/recv/budget.h"
#include "app/recv/commit_queue.h"
#include "app/recv/delete_queue.h"
#include "app/recv/discards.h"
#include "app/recv/entry_queue.h"
#include "app/recv/files_in_work.h"
#include "app/recv/hole_queue.h"
#include "app/recv/inbox.h"
#include "app/recv/intake.h"
#include "app/recv/leave_queue.h"
#include "app/recv/outbox.h"
#include "app/recv/piece_comparer.h"
#include "app/recv/receipt_queue.h"
#include "app/recv/results.h"
#include "app/recv/session_end.h"
#include "app/recv/session_reports.h"
#include "app/recv/session_root.h"
#include "app/recv/syncer.h"
#include "app/recv/team.h"
#include "app/session/for_later.h"
#include "app/session/liveness.h"
#include "app/session/receiver_words.h"
#include "app/session/session_keys.h"
#include "core/base/check.h"
#include "core/base/units.h"

namespace ccixfer::recv {

using session::Message;
using session::SegmentHeader;

namespace {

// Whoever dialled has the user: in a push that is the source.
bool tells_source_of_items(const DestinationOptions& options) {
  return !options.asked && (options.options & session::option_itemize) != 0;
}

}  // namespace

// The objects of a session, and who tells whom what. Each of them has a state and tests of its own; here is only the order in which
// they have their turn. That makes more than twenty fields: one for each object, and what they share.
class Destination::Impl final : public EntriesHandler, public FileSteps, public TeamHandler {
 public:
  Impl(const DestinationOptions& options, Root& root, session::Link& link, cci::Endpoint& endpoint, ports::WorkPool& work,
       memory::Pool& pool, ports::Entropy& entropy, DestinationObserver& observer, Counters& counters);

  void start(Instant now);
  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] bool idle() const;
  void abort(const Error& error) { session_.fail(error); }

  void on_lane_up(session::LaneIndex lane);
  void on_lane_down(session::LaneIndex lane);
  void on_lane_message(session::LaneIndex lane, const Message& message);
  void on_message(const Message& message);
  void on_link_lost(const Error& error);
  void on_completion(const rvma::Completion& completion);
  [[nodiscard]] bool add_helper(std::shared_ptr<Helper> helper);
  [[nodiscard]] const session::TeamEnded* team_ended() const { return team_ended_ ? &*team_ended_ : nullptr; }
  void release_team() {
    if (team_) team_->release();
  }

  [[nodiscard]] const Lanes& lanes() const { return lanes_; }
  [[nodiscard]] const SessionJobs& jobs() const { return jobs_; }
  [[nodiscard]] const SessionEnd& end() const { return end_; }
  [[nodiscard]] const Results& results() const { return results_; }
  [[nodiscard]] const session::Liveness& liveness() const { return liveness_; }
  [[nodiscard]] const session::BottleneckWatch& waits() const { return waits_; }

 private:
  // What the objects of the session tell it.
  void on_decided(uint64_t first_index, std::vector<Decision> decisions) override;
  void commit(CommitItem item) override;
  void sync_soon(uint64_t index, uint64_t bytes) override {
    syncer_.add(index, bytes);
    if (team_) team_->written(index);
  }
  void receive_from(Helper& helper, ReceivedSegment arrival) override;
  void helpers_have_news() override { wake_.set(); }
  void on_file_end_of_helper(const session::FileEnd& end) override { on_file_end(end); }
  void on_holes_of_helper(const session::Holes& holes) override { on_message(holes); }
  void discard(const FileTaskRef& task, const std::shared_ptr<StagedFile>& staged) override;
  void wanted_after_all(const FileTask& task) override;
  void make_holes(const FileTaskRef& task, const std::shared_ptr<StagedFile>& staged, const session::Holes& holes) override;
  void remove_staged(std::string name) override { discards_.add(std::move(name)); }
  void ended(const FileTask& task, const session::FileResult& result) override;
  void note_for_receipt(const Decision& decision, uint64_t index);
  void on_left(const std::vector<LeaveOutcome>& outcomes);
  void on_deleted(const DeleteStep& step);

  // What the source says.
  void on_end(const session::End& end);
  void on_file_end(const session::FileEnd& end);
  void on_unlisted(const session::Unlisted& unlisted);
  void on_bye();
  void on_abort(const session::Abort& abort);
  void on_same(const session::Same& same);

  // Steps of a turn.
  void receive(ReceivedSegment arrival);
  void post(const Message& message);
  void end_team();
  void finish();
  [[nodiscard]] bool delete_the_rest();
  void summarise();
  void look_at_disk(Instant now, bool is_over);

  const DestinationOptions options_;
  const uint32_t buffers_max_;
  session::Link& link_;
  session::Wake wake_;
  const std::unique_ptr<session::DataOpener> opener_;  // none: --insecure
  session::Workspaces workspaces_;
  SessionRoot root_;
  SessionJobs jobs_;
  SessionEnd end_;
  session::Liveness liveness_;
  Outbox outbox_;
  Results results_;
  Budget budget_;
  SessionReports session_;
  Lanes lanes_;
  Inbox inbox_;
  EntryQueue entries_;
  FilesInWork files_;
  Intake intake_;
  Arrivals arrivals_;
  PieceComparer compared_;
  Syncer syncer_;
  CommitQueue commits_;
  Discards discards_;
  HoleQueue holes_;
  LeaveQueue leaves_;
  session::BottleneckWatch waits_;
  ReceiptQueue receipts_;
  DeleteQueue deletions_;
  const std::unique_ptr<Team> team_;  // none: one process sends all
  const IntakeParts intake_parts_;
  bool is_team_ended_ = false;
  uint64_t leaders_steps_ = 0;  // of a team: what the leader's disk has done, for helpers that wait for it
  std::optional<session::TeamEnded> team_ended_;
  bool source_is_whole_ = true;  // it could list and read all that it has
  Instant now_{};                // of the last turn
};

Destination::Impl::Impl(const DestinationOptions& options, Root& root, session::Link& link, cci::Endpoint& endpoint,
                        ports::WorkPool& work, memory::Pool& pool, ports::Entropy& entropy, DestinationObserver& observer,
                        Counters& counters)
    : options_(options),
      buffers_max_(options.buffers_max > 0 ? options.buffers_max : pool.count()),
      link_(link),
      opener_(link.keys() != nullptr ? std::make_unique<session::DataOpener>(link.keys()->data(trust::SealKey::Use::open))
                                     : nullptr),
      root_(root, options.options, link.transfer_key(), options.limits, options.peer, options.aside, options.tweaks),
      jobs_(work, wake_),
      liveness_(options.disk_patience),
      outbox_([this](const Message& message) { post(message); }, tells_source_of_items(options)),
      results_(options.record, observer,
               tells_source_of_items(options) ? options.options & ~uint32_t{session::option_itemize} : options.options,
               options.tries_changed_again),
      budget_(options.limits),
      session_(end_, outbox_, results_, liveness_, wake_, observer, counters, [&link] { return link.session(); }),
      lanes_(link, endpoint.mailboxes(), pool, entropy,
             options.turns ? options.turns : std::make_shared<session::PoolTurns>(pool.count(), true),
             options.rate ? options.rate : std::make_shared<RateAllowance>(options.rate_bytes_per_s)),
      entries_(
          jobs_,
          [this](MutableBytes segment, const SegmentHeader& header, uint64_t first_index, bool may_be_sealed) {
            return root_.judge(segment, header, may_be_sealed ? opener_.get() : nullptr, first_index);
          },
          *this, session_),
      files_(session_, *this, results_, root_.linked_names(),
             [this](const FileTask& task, bool resumed) { return root_.make_staged(task, resumed); }),
      intake_({jobs_, root_, workspaces_, files_, counters}, opener_.get(), inbox_, session_),
      arrivals_(session_, end_, results_, budget_, liveness_, entries_),
      compared_(
          jobs_,
          [this](OlderFile& older, const std::shared_ptr<StagedFile>& staged, bool copies, const FileTask& task, uint64_t piece) {
            return root_.take_older(older, copies ? staged.get() : nullptr, task, piece);
          },
          files_, outbox_, session_),
      syncer_(
          jobs_, [this](std::vector<SyncFile>& batch) { return root_.sync(batch); }, files_, session_),
      commits_(
          jobs_, [this](std::vector<CommitItem>& batch) { root_.commit(batch); }, files_),
      discards_(jobs_, [this](const std::vector<std::string>& names) { root_.remove_staged(names); }),
      holes_(jobs_,
             [this](const session::Holes& holes, int error_number) {
               files_.holes_made(holes, error_number);
               if (team_) team_->holes_made(holes);
             }),
      leaves_(
          jobs_, [this](const std::vector<Leave>& due) { return root_.apply(due); },
          [this](const std::vector<LeaveOutcome>& outcomes) { on_left(outcomes); },
          [this](uint64_t first, uint64_t end) { return files_.has_any(first, end) || receipts_.has_any(first, end); }),
      receipts_(
          jobs_, [this](std::vector<ReceiptItem>& items) { root_.describe(items); }, options.receipt,
          [this] { leaves_.file_ended(); }),
      deletions_(
          jobs_, [this](bool only_what_made_room) { return root_.delete_some(only_what_made_room); },
          [this](const DeleteStep& step) { on_deleted(step); }),
      team_(options.team ? std::make_unique<Team>(*options.team, TeamParts{jobs_, root_, files_, outbox_, session_, *this, entropy})
                         : nullptr),
      intake_parts_{jobs_, root_, workspaces_, files_, counters} {}

// --- Life

void Destination::Impl::start(Instant now) {
  now_ = now;
  if (!end_.is_started()) {
    end_.start();
    liveness_.start(now);
    if (!root_.opened()) {
      session_.fail(root_.opened().error());
    } else if (auto begun = root_.begin(options_.path, options_.asked, results_.kept_backups(), options_.is_new); !begun) {
      session_.refuse(begun.error());
    } else if (options_.deletes) {
      root_.begin_deletions(*options_.deletes, results_.deleted_before());
    }
    if (team_) team_->set_base(root_.base());
    entries_.receive_first(options_.first);
  }
  // Lanes that were up before this object: their on_lane_up went to whoever decided to make it.
  for (const session::LaneIndex lane : link_.live_lanes()) {
    if (!lanes_.is_live(lane)) on_lane_up(lane);
  }
}

void Destination::Impl::turn(Instant now) {
  now_ = now;
  wake_.clear();
  if (root_.is_taken_over()) {
    session_.fail({ErrorKind::network, "another transfer took this destination over while our connection was gone"});
  }
  if (end_.is_link_gone() || link_.messages_delivered()) outbox_.delivered();
  // A staged file keeps its descriptor until it is committed: what would stage more of them waits for the commits.
  const auto may_stage = [this] { return commits_.files_waiting() < root_.staged_files_max(); };
  while (!inbox_.empty() && may_stage()) receive(inbox_.take());
  if (team_) team_->receive(may_stage);
  const bool is_over = end_.is_over();
  const bool is_active = end_.is_started() && !is_over;
  if (is_active && !outbox_.is_full() && receipts_.has_room()) entries_.turn();
  session_.has_failed() ? receipts_.cancel() : receipts_.turn();
  if (is_active) leaves_.turn();
  if (is_active && !session_.has_failed()) compared_.turn();
  syncer_.turn(now, end_.is_closing());
  if (!session_.has_failed()) {
    commits_.turn(now);
  } else if (commits_.cancel()) {
    wake_.set();
  }
  discards_.turn();
  if (team_ && is_active && !session_.has_failed()) team_->turn(now, jobs_.ended() + root_.steps() + leaders_steps_);
  end_team();
  if (team_) team_->let_go_those_gone();
  if (!is_over) outbox_.report_durable(results_.durable_so_far());  // first: with a file's failure its bytes are known to be gone
  if (is_over) lanes_.close_all();
  if (is_active) {
    outbox_.flush_requests();
    finish();
    outbox_.flush_results();
    lanes_.turn(now, buffers_max_, inbox_.held());
  }
  look_at_disk(now, is_over);
  session::DestinationState state;
  state.has_more = is_active && !end_.is_summary_posted();
  state.buffer_posted = !lanes_.idle();
  state.writes = jobs_.running() > 0;
  state.waits_for_rate = lanes_.holds_back();
  waits_.note(now, waits_for(state));
}

// All of the team hear how the transfer ended, or that the leader's session did not get there: then they begin anew, and one of
// them leads.
void Destination::Impl::end_team() {
  if (!team_ || is_team_ended_) return;
  if (const Error* error = end_.error(); error != nullptr) {
    is_team_ended_ = true;
    team_->fail(*error);
  } else if (end_.is_summary_posted()) {
    is_team_ended_ = true;
    team_ended_ = team_ended_of(results_.tally());
    team_->end(*team_ended_);
  }
}

bool Destination::Impl::add_helper(std::shared_ptr<Helper> helper) {
  if (!team_ || is_team_ended_) return false;
  helper->set_intake(std::make_unique<Intake>(intake_parts_, helper->opener(), helper->inbox(), team_->voice_of(*helper)));
  team_->add(std::move(helper));
  wake_.set();
  return true;
}

// Everything has ended: one last sync, for directories and links, and then the summary.
void Destination::Impl::finish() {
  const std::optional<uint64_t> entries = end_.entries_before_last_sync();
  if (!entries) return;
  if (entries_.next_index() > *entries) return session_.fail({ErrorKind::protocol, "the source sent more entries than it says"});
  if (entries_.next_index() < *entries || !files_.empty() || entries_.is_running() || !leaves_.empty()) return;
  if (!receipts_.empty()) return;
  outbox_.flush_results();
  if (outbox_.has_results()) return;
  // The source is not told: it keeps its session until the next one takes its place.
  if (const uint64_t changed = results_.to_try_again(); changed > 0)
    return session_.end_with(session::changed_files(changed), false);
  if (!delete_the_rest() || !leaves_.finish() || !receipts_.empty()) return;
  end_.begin_last_sync();
  auto failure = std::make_shared<std::optional<Error>>();
  jobs_.submit([this, failure] { *failure = root_.sync_all(); },
               [this, failure] {
                 end_.end_last_sync();
                 if (session_.has_failed()) return;
                 if (*failure) return session_.fail(std::move(**failure));
                 summarise();
               });
}

// --delete. True: there is nothing more to delete. Nothing goes while the source is away: see Deletions.
bool Destination::Impl::delete_the_rest() {
  if (!root_.deletes()) return true;
  return lanes_.has_live() && !outbox_.is_full() && deletions_.turn(source_is_whole_);
}

void Destination::Impl::on_deleted(const DeleteStep& step) {
  session_.made_progress();
  results_.deleted(step,
                   root_.base());  // also when nobody is left to tell: --max-delete holds for all sessions of a transfer together
  if (session_.has_failed()) return;
  for (const std::string& line : step.failures) session_.tell_failure(line);
  for (const std::string& line : step.warnings) session_.warn(line);
  if (!options_.asked) {
    for (const Message& message : session::cut(news_of(step, results_.tally()))) outbox_.post(message);
  }
  if (step.fatal) session_.fail(*step.fatal);
}

void Destination::Impl::summarise() {
  if (root_.deletes() && !source_is_whole_) session_.warn("the source could not read all that it has: nothing is deleted");
  for (const std::string& line : results_.failures(printable(root_.path()))) session_.tell_failure(line);
  outbox_.post(results_.summary());
  end_.summary_posted();
  results_.over();
}

void Destination::Impl::look_at_disk(Instant now, bool is_over) {
  if (!is_over && lanes_.holds_back()) liveness_.hold_back();
  liveness_.look(now, jobs_.running(), jobs_.ended() + root_.steps());
  if (is_over) return;
  if (const auto alive = liveness_.take_alive(now); alive && link_.messages_delivered()) outbox_.post(*alive);
}

Instant Destination::Impl::next_deadline() const {
  if (wake_.is_set() || !inbox_.empty()) return now_;
  Instant next = std::min({lanes_.next_deadline(), syncer_.next_deadline(), commits_.next_deadline()});
  if (!end_.is_closing() && !end_.is_link_gone()) next = std::min(next, liveness_.next_deadline());
  return next;
}

bool Destination::Impl::idle() const {
  if (!lanes_.idle() || inbox_.held() > 0 || jobs_.running() > 0) return false;
  if (team_ && team_->holds_buffers()) return false;
  // What was written is saved to the ledger before we go.
  return !end_.is_over() || (syncer_.empty() && commits_.empty() && discards_.empty() && !lanes_.has_live());
}

void Destination::Impl::on_completion(const rvma::Completion& completion) {
  wake_.set();
  if (std::optional<ReceivedSegment> arrival = lanes_.take(completion)) inbox_.add(std::move(*arrival));
}

void Destination::Impl::receive(ReceivedSegment arrival) {
  arrivals_.receive(std::move(arrival), {inbox_, intake_, session_, link_.session(), true});
}

void Destination::Impl::receive_from(Helper& helper, ReceivedSegment arrival) {
  wake_.set();
  arrivals_.receive(std::move(arrival), {helper.inbox(), helper.intake(), team_->voice_of(helper), helper.session(), false});
}

// What is asked for again is asked of whoever had sent it.
void Destination::Impl::post(const Message& message) {
  const auto* resend = std::get_if<session::Resend>(&message);
  if (resend != nullptr && team_ && team_->ask_again(*resend)) return;
  link_.post(message);
}

void Destination::Impl::on_decided(uint64_t first_index, std::vector<Decision> decisions) {
  results_.answered(first_index, decisions);
  if (!files_.has_room(decisions.size())) return session_.fail({ErrorKind::protocol, "more entries than may be outstanding"});
  if (const std::optional<Error> beyond = budget_.decided(decisions)) return session_.refuse(*beyond);
  for (Decision& decision : decisions) {
    if (decision.leave) leaves_.add(std::move(*decision.leave));
    if (decision.task) {
      if (team_) team_->choose(decision);
      files_.add(decision);
      if (decision.older) compared_.add(decision);
    } else {
      results_.decided(decision);
      note_for_receipt(decision, first_index + static_cast<uint64_t>(&decision - decisions.data()));
      const bool came_before = results_.came_before(decision);
      decision.stays = decision.stays && !came_before;                           // what stands there is what the source sent
      if (team_ && came_before) decision.verdict = session::Verdict::delivered;  // by whichever process
    }
  }
  outbox_.answer(first_index, decisions);
}

// Directories follow when they have their modes.
void Destination::Impl::note_for_receipt(const Decision& decision, uint64_t index) {
  if (decision.verdict != session::Verdict::done && decision.verdict != session::Verdict::unchanged) return;
  if (decision.type == session::EntryType::file) receipts_.add(receipt::EntryType::file, decision.path, decision.size_bytes, index);
  if (decision.type == session::EntryType::symlink) receipts_.add(receipt::EntryType::link, decision.path, 0, index);
}

void Destination::Impl::on_message(const Message& message) {
  wake_.set();
  if (session_.has_failed()) return;
  if (!std::holds_alternative<session::Alive>(message)) liveness_.answered();
  if (const auto* file_end = std::get_if<session::FileEnd>(&message)) {
    on_file_end(*file_end);
  } else if (const auto* same = std::get_if<session::Same>(&message)) {
    on_same(*same);
  } else if (const auto* holes = std::get_if<session::Holes>(&message)) {
    if (!files_.on_holes(*holes)) session_.reject("holes that are not of their file");
  } else if (const auto* end = std::get_if<session::End>(&message)) {
    on_end(*end);
  } else if (const auto* unlisted = std::get_if<session::Unlisted>(&message)) {
    on_unlisted(*unlisted);
  } else if (std::holds_alternative<session::Bye>(message)) {
    on_bye();
  } else if (const auto* alive = std::get_if<session::Alive>(&message)) {
    liveness_.heard(*alive);
    leaders_steps_ = alive->steps;
  } else if (const auto* abort = std::get_if<session::Abort>(&message)) {
    on_abort(*abort);
  } else {
    session_.reject("a message that only a destination sends");
  }
}

void Destination::Impl::on_file_end(const session::FileEnd& end) {
  if (end.outcome == session::SourceOutcome::unreadable) source_is_whole_ = false;
  if (session::is_for_later(end)) return team_ ? team_->set_aside(end.index) : session_.reject("a file for later");
  if (!files_.on_end(end) && end.index >= entries_.next_index()) session_.reject("the end of a file that has no verdict");
}

void Destination::Impl::on_same(const session::Same& same) {
  session_.made_progress();
  compared_.on_same(same, entries_.next_index());
}

void Destination::Impl::on_end(const session::End& end) {
  const Result<bool> is_first = end_.on_end(end);
  if (!is_first) return session_.fail(is_first.error());
  if (!*is_first) return;
  results_.not_listed(end.unlisted_failed, end.unlisted_vanished);
  if (end.unlisted_failed > 0) source_is_whole_ = false;
  const uint64_t all = end.unlisted_failed + end.unlisted_vanished;
  if (all <= end_.unlisted_named()) return;
  results_.unnamed(all - end_.unlisted_named());
  session_.tell_failure(fmt::format("the source could not list {} more: its own lines name them", all - end_.unlisted_named()));
}

void Destination::Impl::on_unlisted(const session::Unlisted& unlisted) {
  if (!end_.on_unlisted()) return session_.reject("more names than a source may tell");
  results_.unlisted(unlisted.path, "the source could not list it: " + unlisted.reason);
}

void Destination::Impl::on_bye() {
  if (!end_.on_bye()) return session_.reject("bye before the summary");
  if (root_.remembers_deliveries()) jobs_.submit([this] { root_.forget_deliveries(); }, [] {});
}

void Destination::Impl::on_abort(const session::Abort& abort) {
  const Error why = session::error_of(abort, "the source");
  session_.end_with(why.kind == abort.kind ? Error{why.kind, fmt::format("the source ended the transfer: {}", why.message)} : why,
                    false);
}

void Destination::Impl::on_lane_up(session::LaneIndex lane) {
  wake_.set();
  if (end_.is_over()) return;
  lanes_.up(lane);
  if (lanes_.has_live()) root_.set_link_dead(false);
}

void Destination::Impl::on_lane_down(session::LaneIndex lane) {
  wake_.set();
  lanes_.down(lane);
  if (link_.peer_departed()) end_.on_departure();
  if (!lanes_.has_live()) root_.set_link_dead(true);
}

void Destination::Impl::on_lane_message(session::LaneIndex lane, const Message& message) {
  wake_.set();
  const auto* ask = std::get_if<session::Ask>(&message);
  if (ask == nullptr) return session_.reject("a lane message that only a destination sends");
  if (!lanes_.asked(lane, ask->limit)) session_.reject("a question beyond the credit");
}

void Destination::Impl::on_link_lost(const Error& error) {
  wake_.set();
  end_.on_link_lost();
  outbox_.close();
  root_.set_link_dead(true);
  if (!end_.is_summary_posted()) session_.end_with(error, false);
}

// --- What the objects of the session say

void Destination::Impl::commit(CommitItem item) {
  commits_.add(std::move(item));
  wake_.set();
}

void Destination::Impl::discard(const FileTaskRef& task, const std::shared_ptr<StagedFile>& staged) {
  jobs_.submit([this, task, staged] { root_.discard(*task, *staged); }, [this, index = task->index] { files_.discarded(index); });
}

void Destination::Impl::make_holes(const FileTaskRef& task, const std::shared_ptr<StagedFile>& staged,
                                   const session::Holes& holes) {
  if (!holes_.add(task, staged, holes)) session_.refuse({ErrorKind::protocol, "more holes than may wait"});
}

void Destination::Impl::wanted_after_all(const FileTask& task) {
  if (const std::optional<Error> beyond = budget_.wanted(task)) session_.refuse(*beyond);
}

void Destination::Impl::ended(const FileTask& task, const session::FileResult& result) {
  root_.release(task.key);
  if (result.kind == ErrorKind::ok)
    receipts_.add(receipt::EntryType::file, task.path, task.size_bytes == size_unknown ? 0 : task.size_bytes, task.index);
  outbox_.add_result(result);
  if (team_) team_->ended(result);
  leaves_.file_ended();
  session_.made_progress();
  wake_.set();
}

void Destination::Impl::on_left(const std::vector<LeaveOutcome>& outcomes) {
  for (const LeaveOutcome& outcome : outcomes) {
    if (outcome.attributes_refused) results_.attributes_refused();
    receipts_.add_directory(outcome.path, outcome.mode);
    if (outcome.error_number == 0) continue;
    if (is_fatal(outcome.error_number)) return session_.fail(fatal_error(outcome.error_number, outcome.path));
    results_.attributes_failed();
    session_.tell_failure(
        fmt::format("{}: cannot set mode or times: {}", printable(outcome.path), describe_errno(outcome.error_number)));
  }
}

// --- The public face

Destination::Destination(const DestinationOptions& options, Root& root, session::Link& link, cci::Endpoint& endpoint,
                         ports::WorkPool& work, memory::Pool& pool, ports::Entropy& entropy, DestinationObserver& observer,
                         Counters& counters)
    : impl_(std::make_unique<Impl>(options, root, link, endpoint, work, pool, entropy, observer, counters)) {}

Destination::~Destination() {
  CHECK(idle());
  impl_->release_team();
}

bool Destination::add_helper(std::shared_ptr<Helper> helper) { return impl_->add_helper(std::move(helper)); }
const session::TeamEnded* Destination::team_ended() const { return impl_->team_ended(); }

void Destination::start(Instant now) { impl_->start(now); }
void Destination::turn(Instant now) { impl_->turn(now); }
bool Destination::owns_mailbox(uint64_t mailbox) const { return impl_->lanes().owns(mailbox); }
void Destination::on_completion(const rvma::Completion& completion) { impl_->on_completion(completion); }
Instant Destination::next_deadline() const { return impl_->next_deadline(); }
bool Destination::finished() const { return impl_->end().is_over(); }
bool Destination::idle() const { return impl_->idle(); }
bool Destination::in_disk() const { return impl_->jobs().running() > 0; }
const Error* Destination::error() const { return impl_->end().error(); }
const session::Tally& Destination::tally() const { return impl_->results().tally(); }
Instant Destination::last_progress() const { return impl_->liveness().last_progress(); }
session::Bottleneck Destination::bottleneck(Instant now) const { return impl_->waits().lately(now); }
std::string Destination::stuck_disk() const { return impl_->liveness().stuck_disk("the sender's"); }
void Destination::abort(const Error& error) { impl_->abort(error); }
void Destination::on_lane_up(session::LaneIndex lane) { impl_->on_lane_up(lane); }
void Destination::on_lane_down(session::LaneIndex lane) { impl_->on_lane_down(lane); }
void Destination::on_lane_message(session::LaneIndex lane, const Message& message) { impl_->on_lane_message(lane, message); }
void Destination::on_message(const Message& message) { impl_->on_message(message); }
void Destination::on_put(session::LaneIndex, uint64_t, Status) {}  // a destination puts nothing
void Destination::on_link_lost(const Error& error) { impl_->on_link_lost(error); }

}  // namespace ccixfer::recv
