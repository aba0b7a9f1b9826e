#include "app/send/source.h"

#include <algorithm>
#include <atomic>

#include "app/send/source_machine.h"
#include "app/session/limits.h"
#include "core/base/check.h"
#include "core/base/units.h"

namespace ccixfer::send {
namespace {

constexpr size_t abort_message_bytes_max = 512;

// Of this process: a session that starts after another one took bytes would send the rest as if it were the whole.
std::atomic<bool> input_was_read{false};

WalkOptions walk_options(const SourceOptions& options) {
  WalkOptions walk;
  walk.sources = options.sources;
  walk.served_root = options.served_root;
  walk.links = (options.options & session::option_links) != 0;
  walk.directory = (options.options & session::option_directory) != 0;
  walk.spool_directory = options.spool_directory;
  if ((options.options & session::option_checksum) != 0) walk.batch_entries_max = digest_batch_entries;
  return walk;
}

}  // namespace

Source::Impl::Impl(const SourceOptions& options, session::Link& link, ports::WorkPool& work, memory::Pool& pool,
                   ports::Handle pool_region, SourceObserver& observer, Counters& counters)
    : options_(options),
      link_(link),
      buffers_(pool, options.turns),
      observer_(observer),
      counters_(counters),
      jobs_(std::make_shared<Jobs>(work)),
      walk_(std::make_shared<WalkHold>(jobs_, walk_options(options))),
      record_(options.record ? options.record : std::make_shared<session::TransferRecord>()),
      sender_(link, pool_region, options.rate ? options.rate : std::make_shared<RateCap>(options.rate_bytes_per_s)),
      lister_(jobs_, walk_, option(session::option_checksum), *this),
      announcer_(**walk_, entries_, sender_, *this),
      reads_(jobs_, walk_, entries_, sender_, *this, input_was_read) {
  CHECK(!options.sources.empty());
}

void Source::Impl::start(Instant now) {
  CHECK(!started_);
  started_ = true;
  jobs_->wake();
  now_ = last_progress_ = now;
  lister_.select();
}

void Source::Impl::turn(Instant now) {
  now_ = now;
  jobs_->begin_turn();
  buffers_.begin_turn();
  look_at_disk();
  sender_.close_lost_lanes();
  lister_.release_roots(entries_);
  if (started_ && !error_ && !summary_) {
    sender_.retry_puts(now_);
    lister_.advance_walk();
    lister_.start_digests(buffers_, keep_one());
    announcer_.announce(lister_.listings(), buffers_, sender_.entries_segments());
    sender_.send_ready_segments(now_);
    if (!option(session::option_dry_run)) reads_.start_reads(pace(), buffers_);
    end_of_listing();
    while (!file_ends_.empty() && link_.control_queue_room() > control_room_min) {
      link_.post(file_ends_.front());
      file_ends_.drop_front();
    }
  }
  jobs_->flush();
}

// While jobs are in the disk nothing else may tell the destination that we live.
void Source::Impl::look_at_disk() {
  if (sender_.waits_for_rate(now_)) disk_.hold_back();
  disk_.look(now_, jobs_->running(), jobs_->steps().load(std::memory_order_relaxed));
  if (progressed_ || disk_.moved()) last_progress_ = now_;
  progressed_ = false;
  const Duration silent = disk_.silent(now_);
  if (disk_.waiting()) last_progress_ = std::max(last_progress_, after(now_ - silent, std::min(silent, options_.disk_patience)));
  if (!started_ || error_ || summary_ || !disk_.alive_due(now_)) return;
  disk_.alive_said(now_);
  if (link_.control_drained()) link_.post(session::Alive{disk_.steps(), session::milliseconds_of(silent)});
}

Instant Source::Impl::next_deadline() const {
  if (jobs_->woken() || sender_.has_lanes_to_close()) return now_;
  if (error_ || summary_) return never;
  Instant at = std::min(disk_.next_deadline(), sender_.next_deadline(now_));
  // A buffer of our own wakes us when it comes back. The one that waits for standard input may take for ever.
  const uint32_t coming_back = buffers_.held() - (reads_.waits_for_input() ? 1 : 0);
  if (buffers_.starved() && coming_back == 0) at = std::min(at, after(now_, pool_retry_pause));
  return at;
}

// While there may be more entries: they bring the next files.
bool Source::Impl::keep_one() const { return !lister_.over() && sender_.entries_segments() == 0; }

ReadPace Source::Impl::pace() const {
  ReadPace pace;
  pace.segments_ready = sender_.data_ready();
  pace.segments_ahead = segments_ahead_max + 2 * sender_.lanes().live();
  pace.lane_is_idle = sender_.lanes().has_idle_credit();
  pace.all_is_wanted = end_posted_ && answered_ == announcer_.entries();
  pace.keep_one = keep_one();
  return pace;
}

void Source::Impl::on_not_listed(WalkRecord::Kind kind, std::string_view path, std::string_view reason) {
  observer_.on_warning(printable(path) + ": " + std::string(reason));
  if (kind == WalkRecord::Kind::warning) return observer_.on_file(path, 0, "skipped", reason);
  const bool vanished = kind == WalkRecord::Kind::vanished;
  if (vanished) reason = "vanished";
  ++(vanished ? totals_.files_vanished : totals_.files_failed);
  ++(vanished ? unlisted_vanished_ : unlisted_failed_);
  if (record_->say(session::TransferRecord::name(path, 0), session::TransferRecord::Said::failed))
    observer_.on_file(path, 0, "failed", reason);
  // Whoever pulls has no other way to learn the names.
  if (unlisted_vanished_ + unlisted_failed_ > session::unlisted_named_max) return;
  link_.post(session::Unlisted{vanished, std::string(path), std::string(reason)});
}

void Source::Impl::end_of_listing() {
  if (!lister_.over() || end_posted_) return;
  totals_.walk_done = true;
  end_posted_ = true;
  link_.post(session::End{announcer_.entries(), unlisted_failed_, unlisted_vanished_});
}

void Source::Impl::fail_session(ErrorKind kind, std::string message) {
  if (error_) return;
  link_.post(session::Abort{kind, message.substr(0, abort_message_bytes_max)});
  error_ = Error{kind, std::move(message)};
}

void Source::Impl::reject(const char* what) {
  counters_.add(Counter::session_rejected);
  fail_session(ErrorKind::protocol, std::string("the receiver sent ") + what);
}

Source::Source(const SourceOptions& options, session::Link& link, ports::WorkPool& work, memory::Pool& pool,
               ports::Handle pool_region, SourceObserver& observer, Counters& counters)
    : impl_(std::make_unique<Impl>(options, link, work, pool, pool_region, observer, counters)) {}

Source::~Source() {
  const std::shared_ptr<Jobs> jobs = impl_->jobs_;
  jobs->source_ends();
  impl_.reset();
  jobs->flush();
}

void Source::start(Instant now) { impl_->start(now); }
void Source::turn(Instant now) { impl_->turn(now); }
Instant Source::next_deadline() const { return impl_->next_deadline(); }
// Once the summary is there everything is durable: a goodbye that nobody hears any more is no reason to begin anew.
bool Source::finished() const {
  const bool nobody_hears = impl_->link_lost_ || impl_->sender_.lanes().live() == 0;
  return impl_->error_.has_value() || (impl_->summary_ && (nobody_hears || impl_->link_.control_drained()));
}
bool Source::idle() const { return !impl_->sender_.lanes().anything_in_air(); }
bool Source::input_is_spent() const { return input_was_read.load(); }
const Error* Source::error() const { return impl_->error_ ? &*impl_->error_ : nullptr; }
Totals Source::totals() const {
  Totals totals = impl_->totals_;
  totals.bytes_sent = impl_->sender_.bytes_sent();
  totals.segments_resent = impl_->sender_.segments_resent();
  return totals;
}
Instant Source::last_progress() const { return impl_->last_progress_; }
std::string Source::stuck_disk() const {
  return session::stuck_disk(impl_->disk_.silent(impl_->now_), impl_->peers_disk_.silent(), impl_->options_.disk_patience,
                             "the receiver's");
}
void Source::abort(const Error& error) { impl_->fail_session(error.kind, error.message); }

void Source::on_lane_up(session::LaneIndex lane) {
  if (lane >= session::lanes_max) return;
  impl_->sender_.lane_up(lane);
  impl_->jobs_->wake();
}

void Source::on_lane_down(session::LaneIndex lane) {
  impl_->jobs_->wake();
  impl_->sender_.lane_gone(lane);
}

void Source::on_lane_message(session::LaneIndex lane, const session::Message& message) {
  if (impl_->error_) return;
  impl_->jobs_->wake();
  bool sense = false;
  if (const auto* where = std::get_if<session::LaneOpen>(&message)) sense = impl_->sender_.lane_opened(lane, *where);
  if (const auto* credit = std::get_if<session::Credit>(&message)) sense = impl_->sender_.credit(lane, *credit);
  if (!sense) impl_->reject("a lane message that makes no sense");
}

void Source::on_message(const session::Message& message) {
  Impl& source = *impl_;
  if (source.error_) return;
  source.jobs_->wake();
  if (const auto* alive = std::get_if<session::Alive>(&message)) {
    if (source.peers_disk_.heard(*alive, source.options_.disk_patience)) source.confirmed();
    return;
  }
  source.peers_disk_.answered();
  source.confirmed();
  if (const auto* answer = std::get_if<session::Answer>(&message)) return source.on_answer(*answer);
  if (const auto* want = std::get_if<session::Want>(&message)) return source.on_want(*want);
  if (const auto* resend = std::get_if<session::Resend>(&message)) return source.on_resend(*resend);
  if (const auto* results = std::get_if<session::FileResults>(&message)) {
    for (const session::FileResult& result : results->results) {
      if (!source.error_) source.on_result(result);
    }
    return;
  }
  if (const auto* durable = std::get_if<session::Durable>(&message)) {
    return source.on_durable(durable->bytes);
  }
  if (const auto* summary = std::get_if<session::Summary>(&message)) return source.on_summary(*summary);
  if (const auto* abort = std::get_if<session::Abort>(&message)) {
    source.error_ = session::error_of(*abort, "the receiver");
    return;
  }
  source.reject("a message of the other direction");
}

void Source::on_put(session::LaneIndex lane, uint64_t context, Status status) {
  impl_->jobs_->wake();
  const std::optional<session::SegmentHeader> placed = impl_->sender_.put_ended(lane, context, status);
  if (!placed) return;
  impl_->confirmed();
  if (placed->kind == session::SegmentKind::piece) impl_->reads_.piece_placed(placed->index);
}

void Source::on_link_lost(const Error& error) {
  impl_->link_lost_ = true;
  impl_->jobs_->wake();
  if (!impl_->summary_ && !impl_->error_) impl_->error_ = error;
}

}  // namespace ccixfer::send
