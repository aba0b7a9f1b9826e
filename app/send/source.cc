#include "app/send/source.h"

#include <algorithm>
#include <atomic>

#include "app/send/announcer.h"
#include "app/send/answers.h"
#include "app/send/changed_files.h"
#include "app/send/lister.h"
#include "app/send/orders.h"
#include "app/send/read_stage.h"
#include "app/send/receipt_digests.h"
#include "app/send/reports.h"
#include "app/send/segment_sender.h"
#include "app/send/session_course.h"
#include "app/session/for_later.h"
#include "app/session/liveness.h"
#include "app/session/receiver_words.h"
#include "app/session/session_keys.h"
#include "core/base/check.h"

namespace ccixfer::send {
namespace {

constexpr Duration level_interval = std::chrono::milliseconds(250);
constexpr size_t same_ranges_max = 32;                                // in one message
constexpr size_t control_room_min = 64;                               // of the control queue, left for others
constexpr Duration pool_retry_pause = std::chrono::milliseconds(10);  // a shared pool tells nobody that a buffer came back

// Of this process: a session that starts after another one took bytes would send the rest as if it
// were the whole.
std::atomic<bool> input_was_read{false};

WalkOptions walk_options(const SourceOptions& options) {
  WalkOptions walk;
  walk.sources = options.sources;
  walk.served_root = options.served_root;
  walk.may_be_served = options.may_be_served;
  walk.links = (options.options & session::option_links) != 0;
  const auto has = [&options](session::Option bit) { return (options.options & bit) != 0; };
  walk.specials = has(session::option_specials);
  walk.details.hard_links = has(session::option_hard_links);
  walk.details.names_recur = !walk.links || options.sources.size() > 1;
  walk.details.owner_names = has(session::option_owner) && !has(session::option_numeric_ids);
  walk.details.extended = options.options & (session::option_acls | session::option_xattrs);
  walk.details.is_root = options.is_root;
  walk.directory = (options.options & session::option_directory) != 0;
  walk.spool_directory = options.spool_directory;
  walk.list = options.list;
  walk.one_file_system = (options.options & session::option_one_file_system) != 0;
  walk.tells_listed = options.tells_listed;
  walk.rules = options.rules;
  walk.working_directory = options.working_directory;
  if ((options.options & session::option_checksum) != 0) walk.batch_entries_max = digest_batch_entries;
  return walk;
}

std::vector<std::string> names_of_sources(const Walk& walk, size_t count) {
  std::vector<std::string> names;
  for (uint32_t source = 0; source < count; ++source) names.push_back(walk.given(source));
  return names;
}

}  // namespace

// The stages of a source, in the order in which a file comes through them, and what they say to
// each other.
struct Source::Impl final : ListerHandler, AnnouncerHandler, ReadHandler, SecondPathUser {
  Impl(const SourceOptions& options, session::Link& to, const std::shared_ptr<Jobs>& shared_jobs, memory::Pool& pool,
       ports::Handle pool_region, SourceObserver& observer, Counters& counters);

  ~Impl() override {
    if (second) second->attach(static_cast<SecondPathUser*>(nullptr));
  }

  void turn(Instant now);
  void list();
  void watch_progress();
  void choose_level();
  void post_end_of_listing();
  void post_same();
  void post_file_ends();
  void leave_changed_files();
  void on_session_message(const session::Message& message);
  [[nodiscard]] bool on_helper_message(const session::Message& message);
  void on_resend(const session::Resend& resend);
  [[nodiscard]] Result<void> resend_put(const SentPut& put);
  void on_summary(const session::Summary& summary);
  [[nodiscard]] uint64_t bytes_there_at_most() const {
    return sender.content_sent() + reads.same_bytes() + hole_bytes + answers.bytes_shared();
  }
  [[nodiscard]] bool keep_one() const;  // buffer for entries
  [[nodiscard]] ReadPace pace() const;
  [[nodiscard]] session::SourceState state() const;
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] session::Tally tally() const;
  [[nodiscard]] bool option(session::Option bit) const { return (options & bit) != 0; }

  void on_selection_failed(const Error& error) override { course.fail(error); }
  void on_listed(uint64_t bytes) override { reports.listed(bytes); }
  void on_not_listed(WalkRecord::Kind kind, std::string_view path, std::string_view reason) override;
  void on_refused(const Entry& entry) override;
  void on_holes(session::Holes holes, uint64_t bytes) override {
    hole_bytes += bytes;
    for (session::Message& part : session::cut(holes)) of_files.push_back(std::move(part));
  }
  void on_file_end(const session::FileEnd& end) override { of_files.push_back(end); }
  void on_same(const Entry& entry, uint64_t piece) override;
  void on_grown(Entry& entry, uint64_t bytes) override { reports.grown(entry, bytes); }
  void on_second_path_news() override { jobs->wake().set(); }
  void tell_first_receiver(const session::Message& message) override {
    if (course.is_open()) link.post(message);
  }
  void on_not_placed(uint64_t index, const std::set<uint64_t>& pieces) override;

  [[nodiscard]] bool is_helper() const { return seat == SourceOptions::Seat::helper; }
  [[nodiscard]] uint64_t entries_known() const { return is_helper() ? ~uint64_t{0} : announcer.entries(); }

  const uint32_t options;
  const SourceOptions::Seat seat;
  const std::shared_ptr<SecondPath> second;  // of a helper; may be none
  session::Link& link;
  const std::shared_ptr<Jobs> jobs;
  const std::shared_ptr<WalkHold> walk;
  const std::shared_ptr<session::DataSealer> sealer;      // none: --insecure
  const std::shared_ptr<session::Compressor> compressor;  // none: nothing is compressed
  Instant next_level{};                                   // when its level is looked at again
  BufferShare buffers;
  EntryTable entries;
  SegmentSender sender;
  Reports reports;
  Lister lister;
  Announcer announcer;
  ReadStage reads;
  Orders orders;
  ReceiptDigests receipts;
  Answers answers;
  SessionCourse course;
  session::Liveness liveness;
  session::BottleneckWatch waits;
  ChangedFiles changed;
  RingBuffer<session::Message> of_files;  // to be posted: ends, at most one for each entry that has not ended; holes of open files
  uint64_t hole_bytes = 0;                // that the destination has without a segment
  RingBuffer<session::Same> same;         // to be posted; at most compared_pieces_max pieces
  bool lists_ahead = false;               // since before the session was open
  bool is_summed_up = false;              // the summary is here
  std::optional<session::TeamEnded> team_ended;
  Instant now{};
};

Source::Impl::Impl(const SourceOptions& given, session::Link& to, const std::shared_ptr<Jobs>& shared_jobs, memory::Pool& pool,
                   ports::Handle pool_region, SourceObserver& observer, Counters& counters)
    : options(given.options),
      seat(given.seat),
      second(given.seat == SourceOptions::Seat::helper ? given.second : nullptr),
      link(to),
      jobs(shared_jobs),
      walk(std::make_shared<WalkHold>(jobs, walk_options(given))),
      sealer(link.keys() != nullptr ? std::make_shared<session::DataSealer>(link.keys()->data(trust::SealKey::Use::seal))
                                    : nullptr),
      compressor(given.compress ? std::make_shared<session::Compressor>(*given.compress) : nullptr),
      buffers(pool, given.turns),
      sender(link, pool_region, given.rate ? given.rate : std::make_shared<RateCap>(given.rate_bytes_per_s)),
      reports(observer, given.record, names_of_sources(**walk, given.sources.size()), given.options),
      lister(jobs, walk, option(session::option_checksum), *this),
      announcer(**walk, entries, sender, *this, sealer, option(session::option_itemize), given.tweaks),
      reads(jobs, walk, entries, sender, *this, input_was_read, {sealer, compressor}),
      orders(jobs, walk, entries, reads, reports, *this),
      receipts(jobs, walk, entries, given.receipt),
      answers(entries, reads, reports, option(session::option_dry_run), &receipts),
      course(link, counters),
      liveness(given.disk_patience),
      changed(given.tries_changed_again) {
  CHECK(!given.sources.empty());
  if (seat == SourceOptions::Seat::leader) answers.set_leads();
  if (is_helper()) answers.set_helps();
  if (!second) return;
  reads.set_routes(second.get());
  second->attach(static_cast<SecondPathUser*>(this));
}

void Source::Impl::turn(Instant instant) {
  now = instant;
  jobs->wake().clear();
  if (lists_ahead && !course.is_started()) {
    lister.advance_walk();
    return jobs->flush();
  }
  buffers.begin_turn();
  watch_progress();
  sender.close_lost_lanes();
  if (!is_helper()) lister.release_roots(entries);
  if (course.is_open()) {
    sender.retry_puts(now);
    if (!is_helper()) list();
    sender.send_ready_segments(now);
    const bool may_read = is_helper() ? orders.may_read() : !option(session::option_dry_run);
    if (may_read) reads.start_reads(pace(), buffers);
    if (!is_helper()) post_end_of_listing();
    post_same();
    post_file_ends();
    leave_changed_files();
  }
  if (course.error() == nullptr) receipts.start();
  // The peer keeps the session until it hears the end, so nobody takes its lanes away while files are read for a receipt.
  if (is_summed_up && course.is_open() && receipts.idle()) course.summary_came();
  jobs->flush();
  waits.note(now, waits_for(state()));
  choose_level();
}

void Source::Impl::list() {
  lister.advance_walk();
  lister.start_digests(buffers, keep_one());
  announcer.announce(lister.listings(), buffers, sender.entries_segments());
}

void Source::Impl::choose_level() {
  if (!compressor || now < next_level) return;
  compressor->adapt(waits.lately(now));
  next_level = now + level_interval;
}

session::SourceState Source::Impl::state() const {
  session::SourceState state;
  const bool lists = !is_helper() && !course.listing_is_over();
  state.has_more = course.is_open() && (lists || entries.count() > 0);
  state.reads = jobs->running() > 0;
  state.segment_ready = sender.data_ready() > 0;
  state.put_in_air = sender.lanes().anything_in_air();
  state.credit = sender.lanes().has_credit();
  state.waits_for_rate = sender.waits_for_rate(now);
  return state;
}

// While jobs are in the disk nothing else may tell the destination that we live.
void Source::Impl::watch_progress() {
  if (sender.waits_for_rate(now)) liveness.hold_back();
  liveness.look(now, jobs->running(), jobs->steps().load(std::memory_order_relaxed));
  if (!course.is_open()) return;
  const std::optional<session::Alive> alive = liveness.take_alive(now);
  if (alive && link.messages_delivered()) link.post(*alive);
}

// While there may be more entries: they bring the next files.
bool Source::Impl::keep_one() const { return !is_helper() && !lister.over() && sender.entries_segments() == 0; }

ReadPace Source::Impl::pace() const {
  ReadPace pace;
  pace.segments_ready = sender.data_ready();
  pace.segments_ahead = segments_ahead_max + 2 * sender.lanes().live();
  pace.lane_is_idle = sender.lanes().has_idle_credit();
  if (second) {
    const SecondPathLoad there = second->load();
    pace.segments_ahead += there.segments_ahead();
    // One where nothing moves keeps no more waiting than its own part.
    pace.segments_ready += there.is_stuck ? std::min(there.segments_ready, there.segments_ahead()) : there.segments_ready;
    pace.lane_is_idle = pace.lane_is_idle || there.lane_is_idle;
  }
  // A helper does not know what else will come, and where buffers are scarce it gets none before something is ready: what it has
  // must not wait for more.
  pace.all_is_wanted = is_helper() || (course.listing_is_over() && answers.answered() == announcer.entries());
  pace.keep_one = keep_one();
  return pace;
}

void Source::Impl::post_end_of_listing() {
  if (!lister.over()) return;
  reports.listing_over();
  course.listing_over(session::End{announcer.entries(), reports.unlisted_failed(), reports.unlisted_vanished()});
}

void Source::Impl::on_same(const Entry& entry, uint64_t piece) {
  if (same.empty() || same.back().index != entry.index || same.back().ranges.size() == same_ranges_max) {
    same.push_back({entry.index, {}});
  }
  std::vector<session::Want::Range>& ranges = same.back().ranges;
  if (!ranges.empty() && ranges.back().first + ranges.back().count == piece) {
    ++ranges.back().count;
  } else {
    ranges.push_back({piece, 1});
  }
}

void Source::Impl::post_same() {
  while (!same.empty() && link.control_queue_room() > control_room_min) {
    link.post(same.front());
    same.drop_front();
  }
}

// Behind what they count on: the pieces that are the same.
void Source::Impl::post_file_ends() {
  while (same.empty() && !of_files.empty() && link.control_queue_room() > control_room_min) {
    link.post(of_files.front());
    of_files.drop_front();
  }
}

// Whoever pulls has no other way to learn the names.
void Source::Impl::on_not_listed(WalkRecord::Kind kind, std::string_view path, std::string_view reason) {
  if (!reports.not_listed(kind, path, reason)) return;
  const bool vanished = kind == WalkRecord::Kind::vanished;
  link.post(session::Unlisted{vanished, std::string(path), vanished ? "vanished" : std::string(reason)});
}

void Source::Impl::leave_changed_files() {
  const bool is_idle = jobs->running() == 0 && sender.data_ready() == 0 && of_files.empty() && same.empty();
  if (!course.listing_is_over() || !is_idle) return;
  if (const uint64_t waiting = changed.left(entries); waiting > 0) course.end_for_another(session::changed_files(waiting));
}

void Source::Impl::on_refused(const Entry& entry) {
  if (changed.take(entry)) {
    if (seat == SourceOptions::Seat::leader) of_files.push_back(session::end_for_later(entry.index));
    return;
  }
  session::FileEnd end;
  end.index = entry.index;
  end.outcome = entry.outcome.outcome;
  of_files.push_back(end);
}

void Source::Impl::on_session_message(const session::Message& message) {
  if (const auto* alive = std::get_if<session::Alive>(&message)) return liveness.heard(*alive);
  liveness.answered();
  liveness.made_progress();
  const uint64_t sent = entries_known();
  if (is_helper() && on_helper_message(message)) return;
  if (const auto* answer = std::get_if<session::Answer>(&message)) {
    course.judge(answers.on_answer(*answer, sent));
    return announcer.answered_before(answers.answered());
  }
  if (const auto* itemized = std::get_if<session::Itemized>(&message); itemized != nullptr && option(session::option_itemize)) {
    return course.judge(answers.on_itemized(*itemized, sent));
  }
  if (const auto* want = std::get_if<session::Want>(&message)) return course.judge(answers.on_want(*want, sent));
  if (const auto* compare = std::get_if<session::Compare>(&message)) return course.judge(answers.on_compare(*compare, sent));
  if (const auto* give = std::get_if<session::Give>(&message)) return course.judge(answers.on_give(*give, sent));
  if (const auto* elsewhere = std::get_if<session::Elsewhere>(&message)) {
    return course.judge(answers.on_elsewhere(*elsewhere, sent));
  }
  if (const auto* resend = std::get_if<session::Resend>(&message)) return on_resend(*resend);
  if (const auto* results = std::get_if<session::FileResults>(&message)) return course.judge(answers.on_results(*results, sent));
  if (const auto* durable = std::get_if<session::Durable>(&message)) {
    return course.judge(answers.on_durable(durable->bytes, bytes_there_at_most()));
  }
  if (const auto* summary = std::get_if<session::Summary>(&message)) return on_summary(*summary);
  if (const auto* deletions = std::get_if<session::Deletions>(&message)) return reports.deleted(*deletions);
  if (const auto* abort = std::get_if<session::Abort>(&message)) {
    return course.ended_by_peer(session::error_of(*abort, "the receiver"));
  }
  course.judge(nonsense("a message of the other direction"));
}

// What only a helper is told. False: the same as every source.
bool Source::Impl::on_helper_message(const session::Message& message) {
  if (const auto* order = std::get_if<session::ToRead>(&message)) {
    course.judge(orders.on_order(*order));
    return true;
  }
  if (const auto* place = std::get_if<session::SharedPlace>(&message); place != nullptr && second) {
    second->on_place(*place);
    return true;
  }
  if (const auto* ended = std::get_if<session::TeamEnded>(&message)) {
    team_ended = *ended;
    is_summed_up = true;
    return true;
  }
  const bool of_who_lists = std::holds_alternative<session::Answer>(message) || std::holds_alternative<session::Want>(message) ||
                            std::holds_alternative<session::Give>(message) || std::holds_alternative<session::Summary>(message);
  if (of_who_lists) course.judge(nonsense("what only the leader of a team is told"));
  return of_who_lists;
}

// They are wanted as if the receiver had said that they came damaged: now it is this one that gets them.
void Source::Impl::on_not_placed(uint64_t index, const std::set<uint64_t>& pieces) {
  if (!course.is_open()) return;
  for (const uint64_t piece : pieces) course.judge(answers.want_again(index, piece, 1));
  jobs->wake().set();
}

void Source::Impl::on_resend(const session::Resend& resend) {
  if (resend.index != session::Resend::by_segment) return course.judge(answers.on_resend(resend, entries_known()));
  const SentPut* put = sender.find_sent(resend.lane_session, resend.n);
  if (put != nullptr) course.judge(resend_put(*put));
}

// The destination can only say which put came damaged.
Result<void> Source::Impl::resend_put(const SentPut& put) {
  if (put.header.kind == session::SegmentKind::piece) return answers.want_again(put.header.index, put.header.sequence, 1);
  if (put.header.kind == session::SegmentKind::entries) announcer.want_again(put.header.sequence);
  for (const uint64_t index : put.files) {
    if (Result<void> judged = answers.want_whole_again(index); !judged) return judged;
  }
  return {};
}

void Source::Impl::on_summary(const session::Summary& summary) {
  if (!course.listing_is_over() || is_summed_up) return course.judge(nonsense("a summary before the end"));
  const Result<void> judged = answers.on_summary(summary, announcer.entries(), bytes_there_at_most());
  course.judge(judged);
  is_summed_up = judged.has_value();
}

Instant Source::Impl::next_deadline() const {
  if (jobs->wake().is_set() || sender.has_lanes_to_close()) return now;
  if (!course.is_started()) return never;
  if (course.error() != nullptr || course.has_summary()) return never;
  Instant at = std::min(liveness.next_deadline(), sender.next_deadline(now));
  // A buffer of our own wakes us when it comes back. The one that waits for standard input may take
  // for ever.
  const uint32_t coming_back = buffers.held() - (reads.waits_for_input() ? 1 : 0);
  if (buffers.starved() && coming_back == 0) at = std::min(at, after(now, pool_retry_pause));
  return at;
}

session::Tally Source::Impl::tally() const {
  session::Tally tally = reports.tally();
  tally.bytes_sent = sender.bytes_sent();
  tally.segments_resent = sender.segments_resent();
  return tally;
}

Source::Source(const SourceOptions& options, session::Link& link, ports::WorkPool& work, memory::Pool& pool,
               ports::Handle pool_region, SourceObserver& observer, Counters& counters)
    : impl_(std::make_unique<Impl>(options, link, std::make_shared<Jobs>(work), pool, pool_region, observer, counters)) {}

Source::~Source() {
  const std::shared_ptr<Jobs> jobs = impl_->jobs;
  jobs->source_ends();
  impl_.reset();
  jobs->flush();
}

void Source::start(Instant now) {
  impl_->course.open();
  impl_->jobs->wake().set();
  impl_->now = now;
  impl_->liveness.start(now);
  if (impl_->is_helper()) return impl_->orders.open_sources();
  if (!impl_->lists_ahead) impl_->lister.select();
}

void Source::list_ahead() {
  CHECK(!impl_->is_helper());
  impl_->lists_ahead = true;
  impl_->lister.select();
}
bool Source::has_listed_ahead() const {
  return error() != nullptr || impl_->lister.over() || impl_->lister.listings().front() != nullptr;
}
session::FirstEntries Source::first_entries(size_t bytes_max) {
  return impl_->announcer.first_entries(impl_->lister.listings(), bytes_max);
}

void Source::turn(Instant now) { impl_->turn(now); }
Instant Source::next_deadline() const { return impl_->next_deadline(); }
bool Source::said_all() const { return impl_->course.said_all(); }
bool Source::finished() const { return impl_->course.finished(impl_->sender.lanes().live() > 0); }
bool Source::idle() const { return !impl_->sender.lanes().anything_in_air(); }
const Error* Source::error() const { return impl_->course.error(); }
session::Tally Source::tally() const { return impl_->tally(); }
Instant Source::last_progress() const { return impl_->liveness.last_progress(); }
std::string Source::stuck_disk() const { return impl_->liveness.stuck_disk("the receiver's"); }
const std::optional<session::TeamEnded>& Source::team_ended() const { return impl_->team_ended; }
bool Source::input_is_spent() const { return input_was_read.load(); }
session::Bottleneck Source::bottleneck(Instant now) const { return impl_->waits.lately(now); }
void Source::abort(const Error& error) { impl_->course.fail(error); }

void Source::on_lane_up(session::LaneIndex lane) {
  if (lane >= session::lanes_max) return;
  impl_->sender.lane_up(lane);
  impl_->jobs->wake().set();
}

void Source::on_lane_down(session::LaneIndex lane) {
  impl_->jobs->wake().set();
  impl_->sender.lane_gone(lane);
}

void Source::on_lane_message(session::LaneIndex lane, const session::Message& message) {
  if (impl_->course.error() != nullptr) return;
  impl_->jobs->wake().set();
  bool sense = false;
  if (const auto* where = std::get_if<session::LaneOpen>(&message)) sense = impl_->sender.lane_opened(lane, *where);
  if (const auto* credit = std::get_if<session::Credit>(&message)) sense = impl_->sender.credit(lane, *credit);
  if (!sense) impl_->course.judge(nonsense("a lane message that makes no sense"));
}

void Source::on_message(const session::Message& message) {
  if (impl_->course.error() != nullptr) return;
  impl_->jobs->wake().set();
  impl_->on_session_message(message);
}

void Source::on_put(session::LaneIndex lane, uint64_t context, Status status) {
  impl_->jobs->wake().set();
  const std::optional<session::SegmentHeader> placed = impl_->sender.put_ended(lane, context, status);
  if (!placed) return;
  impl_->liveness.made_progress();
  if (placed->kind == session::SegmentKind::piece) impl_->reads.piece_placed(placed->index);
}

void Source::on_link_lost(const Error& error) {
  impl_->jobs->wake().set();
  impl_->course.link_lost(error);
}

}  // namespace ccixfer::send
