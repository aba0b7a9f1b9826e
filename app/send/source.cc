#include "app/send/source.h"

#include <algorithm>

#include "app/send/source_machine.h"
#include "app/session/limits.h"
#include "core/base/check.h"
#include "core/base/log.h"

namespace ccixfer::send {
namespace {

constexpr size_t abort_message_bytes_max = 512;

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
      pool_(pool),
      pool_region_(pool_region),
      observer_(observer),
      counters_(counters),
      shared_(std::make_shared<Shared>(work)),
      walk_(std::make_shared<WalkHold>(shared_, walk_options(options))),
      entries_of_source_(options.sources.size()),
      root_held_(options.sources.size()),
      rate_(options.rate_bytes_per_s) {
  CHECK(pool.buffer_bytes() >= session::segment_bytes_max);
  CHECK(!options.sources.empty());
  shared_->source = this;
}

Source::Impl::~Impl() {
  shared_->source = nullptr;
  entries_.for_each([](Entry& entry) { entry.large.reset(); });
  walk_.reset();
  shared_->flush();
}

void Source::Impl::start(Instant now) {
  CHECK(!started_);
  started_ = true;
  dirty_ = true;
  now_ = last_progress_ = now;
  auto data = std::make_unique<SelectData>();
  data->walk = walk_;
  submit(
      std::move(data),
      [](ports::FileSystem& files, SelectData& job, Shared&) {
        const Result<void> selected = (*job.walk)->select(files);
        if (!selected) job.error = selected.error();
      },
      &Impl::selected);
}

void Source::Impl::turn(Instant now) {
  now_ = now;
  dirty_ = false;
  starved_ = false;
  if (const uint64_t steps = shared_->steps.load(std::memory_order_relaxed); steps != steps_seen_) {
    steps_seen_ = steps;
    progressed_ = true;
  }
  if (progressed_) last_progress_ = now;
  progressed_ = false;
  std::vector<session::LaneIndex> closing;
  closing.swap(lanes_to_close_);
  for (const session::LaneIndex lane : closing) link_.close_lane(lane);
  if (started_ && !error_ && !summary_) {
    lanes_.unstall();
    retry_puts();
    walk_on();
    digest_on();
    announce();
    put_on();
    read_on();
    end_of_listing();
    while (!file_ends_.empty() && link_.control_queue_room() > control_room_min) {
      link_.post(file_ends_.front());
      file_ends_.pop_front();
    }
  }
  shared_->flush();
}

Instant Source::Impl::next_deadline() const {
  if (dirty_ || !lanes_to_close_.empty()) return now_;
  if (!started_ || error_ || summary_) return never;
  Instant at = never;
  for (const Retry& retry : retries_) at = std::min(at, retry.at);
  if (!rate_.may_send(now_) && (!entries_ready_.empty() || !data_ready_.empty() || !retries_.empty()))
    at = std::min(at, rate_.free_at());
  const bool own_buffers = segments_.size() > free_segments_.size() || reading_jobs_ > 0 || digest_jobs_ > 0;
  if (starved_ && !own_buffers) at = std::min(at, after(now_, pool_retry_pause));
  return at;
}

void Source::Impl::fail_session(ErrorKind kind, std::string message) {
  if (error_) return;
  link_.post(session::Abort{kind, message.substr(0, abort_message_bytes_max)});
  error_ = Error{kind, std::move(message)};
  dirty_ = true;
}

void Source::Impl::reject(const char* what) {
  counters_.add(Counter::session_rejected);
  fail_session(ErrorKind::protocol, std::string("the receiver sent ") + what);
}

Source::Source(const SourceOptions& options, session::Link& link, ports::WorkPool& work, memory::Pool& pool,
               ports::Handle pool_region, SourceObserver& observer, Counters& counters)
    : impl_(std::make_unique<Impl>(options, link, work, pool, pool_region, observer, counters)) {}
Source::~Source() = default;

void Source::start(Instant now) { impl_->start(now); }
void Source::turn(Instant now) { impl_->turn(now); }
Instant Source::next_deadline() const { return impl_->next_deadline(); }
bool Source::finished() const {
  return impl_->error_.has_value() || (impl_->summary_ && (impl_->link_lost_ || impl_->link_.control_drained()));
}
bool Source::idle() const { return !impl_->lanes_.anything_in_air(); }
const Error* Source::error() const { return impl_->error_ ? &*impl_->error_ : nullptr; }
const Totals& Source::totals() const { return impl_->totals_; }
Instant Source::last_progress() const { return impl_->last_progress_; }
void Source::abort(const Error& error) { impl_->fail_session(error.kind, error.message); }

void Source::on_lane_up(session::LaneIndex lane) {
  if (lane >= session::lanes_max) return;
  impl_->lanes_.up(lane);
  impl_->dirty_ = true;
}

void Source::on_lane_down(session::LaneIndex lane) { impl_->lane_gone(lane); }

void Source::on_lane_message(session::LaneIndex lane, const session::Message& message) {
  if (impl_->error_) return;
  impl_->dirty_ = true;
  bool sense = false;
  if (const auto* where = std::get_if<session::LaneOpen>(&message)) sense = impl_->lanes_.opened(lane, *where);
  if (const auto* credit = std::get_if<session::Credit>(&message)) sense = impl_->lanes_.credit(lane, credit->limit);
  if (!sense) impl_->reject("a lane message that makes no sense");
}

void Source::on_message(const session::Message& message) {
  Impl& source = *impl_;
  if (source.error_) return;
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
    source.totals_.bytes = std::max(source.totals_.bytes, durable->bytes);
    return;
  }
  if (const auto* summary = std::get_if<session::Summary>(&message)) return source.on_summary(*summary);
  if (const auto* abort = std::get_if<session::Abort>(&message)) {
    source.error_ = Error{abort->kind, abort->message};
    return;
  }
  if (std::holds_alternative<session::Opened>(message)) return;  // the session's owner has read it
  source.reject("a message of the other direction");
}

void Source::on_put(session::LaneIndex lane, uint64_t context, Status status) { impl_->on_put(lane, context, status); }

void Source::on_link_lost(const Error& error) {
  impl_->link_lost_ = true;
  impl_->dirty_ = true;
  if (!impl_->summary_ && !impl_->error_) impl_->error_ = error;
}

}  // namespace ccixfer::send
