#include "app/recv/destination.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/recv/machine.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/units.h"

namespace ccixfer::recv {

using session::Message;

namespace {

constexpr size_t abort_message_bytes_max = 512;
constexpr uint64_t unlisted_max = uint64_t{1} << 48;  // sums of such counts never wrap round to 0

Policy policy_of(const DestinationOptions& options, const Root::Impl& root) {
  return {options.options, root.umask, root.uid, root.gid};
}

}  // namespace

Destination::Impl::Impl(const DestinationOptions& destination_options, Root& shared_root, session::Link& session_link,
                        cci::Endpoint& endpoint, ports::WorkPool& work_pool, memory::Pool& buffer_pool, ports::Entropy& entropy,
                        DestinationObserver& file_observer, Counters& process_counters)
    : options(destination_options),
      root_is_open(shared_root.renew()),
      root_held(shared_root.impl),
      root(*root_held),
      directories(root.files, root.fd, root.staging_identity, root.held_directories),
      link(session_link),
      work(work_pool),
      pool(buffer_pool),
      observer(file_observer),
      counters(process_counters),
      policy(policy_of(destination_options, root)),
      lanes(session_link, endpoint.mailboxes(), buffer_pool, entropy,
            options.turns ? options.turns : std::make_shared<session::PoolTurns>(buffer_pool.count(), true),
            options.rate ? options.rate : std::make_shared<RateAllowance>(options.rate_bytes_per_s)),
      transfer_record(options.record ? options.record : std::make_shared<session::TransferRecord>()) {
  root.sessions.fetch_add(1);
  owner->transfer = session_link.hello().transfer;
}

Destination::Impl::~Impl() {
  if (root.sessions.fetch_sub(1) == 1) root.disk->forget_others();
  root.release_all(owner);
}

void Destination::Impl::start() {
  if (started) return;
  started = true;
  last_progress = now;
  if (!root_is_open) return end_with(root_is_open.error(), true);
  auto base = normalise_path(options.path);
  if (!base) {
    counters.add(Counter::session_rejected);
    end_with(base.error(), true);
    return;
  }
  entries_context = std::make_unique<EntriesContext>(root, directories, policy, std::move(*base), owner);
  if (options.asked) entries_context->asked.emplace(*options.asked);
}

void Destination::Impl::post(const Message& message) {
  if (link_gone) return;
  link.post(message);
  ++messages_unsent;
}

void Destination::Impl::end_with(Error reason, bool tell_peer) {
  if (error || bye) return;
  log(LogLevel::info, "destination: session {:x} ends: {}", link.session(), reason.message);
  if (tell_peer) post(session::Abort{reason.kind, reason.message.substr(0, abort_message_bytes_max)});
  error = std::move(reason);
  wake = true;
}

void Destination::Impl::turn(Instant at) {
  now = at;
  wake = false;
  if (owner->lost.load()) {
    end_with({ErrorKind::network, "another transfer took this destination over while our connection was gone"}, true);
  }
  if (link_gone || link.control_drained()) messages_unsent = 0;
  while (!arrivals.empty()) {
    Arrival arrival = std::move(arrivals.front());
    arrivals.drop_front();
    receive(std::move(arrival));
  }
  const bool over = error.has_value() || bye || (link_gone && summary_posted);
  if (started && !over) {
    pump_entries();
    pump_leaves();
  }
  pump_sync();
  pump_commit();
  pump_cleanup();
  post_durable(over);  // before results and summary: what a failed file takes away is known with them
  if (over) {
    lanes.close_all();
  } else if (started) {
    flush_resends();
    pump_end();
    flush_results();
    lanes.turn(now, options.buffers_max > 0 ? options.buffers_max : pool.count(), buffers_out);
  }
  look_at_disk(over);
  progress = false;
}

// The transfer has ended well: the next run of the command begins anew.
void Destination::Impl::forget_deliveries() {
  if (!root.deliveries || root.deliveries->empty()) return;
  submit([shared_root = &root, transfer = owner->transfer,
          others = entries_context->taken_over] { shared_root->deliveries->forget(transfer, others); },
         [] {});
}

void Destination::Impl::post_durable(bool over) {
  const session::Durable durable{session_bytes, totals.files};
  if (over || (durable.bytes == durable_posted.bytes && durable.files == durable_posted.files)) return;
  post(durable);
  durable_posted = durable;
}

// While jobs are in the disk nothing else may tell the source that we live.
void Destination::Impl::look_at_disk(bool over) {
  if (!over && lanes.holds_back()) disk.hold_back();
  disk.look(now, jobs, jobs_ended + owner->steps.load(std::memory_order_relaxed));
  if (progress || disk.moved()) last_progress = now;
  const Duration silent = disk.silent(now);
  if (disk.waiting()) last_progress = std::max(last_progress, after(now - silent, std::min(silent, options.disk_patience)));
  if (over || !disk.alive_due(now)) return;
  disk.alive_said(now);
  if (link.control_drained()) post(session::Alive{disk.steps(), session::milliseconds_of(silent)});
}

Instant Destination::Impl::next_deadline() const {
  if (wake || !arrivals.empty()) return now;
  Instant next = lanes.next_deadline();
  if (dirty_since != never && !sync_running) next = std::min(next, dirty_since + sync_interval);
  if (!error && !bye && !link_gone) next = std::min(next, disk.next_deadline());
  return next;
}

bool Destination::Impl::idle() const {
  if (!lanes.idle() || buffers_out > 0 || jobs > 0) return false;
  const bool over = error.has_value() || bye || (link_gone && summary_posted);
  // What was written is saved to the ledger before we go.
  return !over || (dirty.empty() && cleanup.empty() && !lanes.has_live());
}

void Destination::Impl::on_message(const Message& message) {
  wake = true;
  if (error) return;
  if (!std::holds_alternative<session::Alive>(message)) peers_disk.answered();
  if (const auto* file_end = std::get_if<session::FileEnd>(&message)) {
    on_file_end(*file_end);
  } else if (const auto* last = std::get_if<session::End>(&message)) {
    if (end && end->entries != last->entries) {
      end_with({ErrorKind::protocol, "the source changed its count of entries"}, true);
      return;
    }
    if (last->unlisted_failed > unlisted_max || last->unlisted_vanished > unlisted_max) {
      end_with({ErrorKind::protocol, "the source tells of more failures than there can be"}, true);
      return;
    }
    if (!end) {
      totals.unlisted_failed = last->unlisted_failed;
      totals.unlisted_vanished = last->unlisted_vanished;
      const uint64_t all = last->unlisted_failed + last->unlisted_vanished;
      if (all > unlisted_named) {
        observer.on_warning(fmt::format("the source could not list {} more: its own lines name them", all - unlisted_named));
      }
    }
    end = *last;
  } else if (const auto* unlisted = std::get_if<session::Unlisted>(&message)) {
    if (unlisted_named >= session::unlisted_named_max) return reject("more names than a source may tell");
    ++unlisted_named;
    observer.on_warning(
        fmt::format("{}: the source could not list it: {}", printable(unlisted->path), printable(unlisted->reason)));
    observer.on_file(unlisted->path, 0, "failed", unlisted->reason);
  } else if (std::get_if<session::Bye>(&message) != nullptr) {
    if (summary_posted) {
      bye = true;
      forget_deliveries();
    } else {
      reject("bye before the summary");
    }
  } else if (const auto* alive = std::get_if<session::Alive>(&message)) {
    progress = peers_disk.heard(*alive, options.disk_patience) || progress;
  } else if (const auto* abort = std::get_if<session::Abort>(&message)) {
    const Error why = session::error_of(*abort, "the source");
    if (why.kind != abort->kind) return end_with(why, false);
    end_with({why.kind, fmt::format("the source ended the transfer: {}", why.message)}, false);
  } else {
    reject("a message that only a destination sends");
  }
}

void Destination::Impl::on_file_end(const session::FileEnd& file_end) {
  FileState* file = find(file_end.index);
  if (file == nullptr) {
    if (file_end.index >= next_index) reject("the end of a file that has no verdict");
    return;
  }
  if (file->doom || file->committing || file->by_pack) return;  // its content was complete: too late to matter
  switch (file_end.outcome) {
    case session::SourceOutcome::ok:
      file->end = file_end;
      if (file->size_bytes() > file_bytes_max) {
        end_with({ErrorKind::protocol, "the end of a file of unknown length without its length"}, true);
        return;
      }
      try_complete(*file);
      return;
    case session::SourceOutcome::changed:
      doom(*file, {ErrorKind::vanished, 0, true, "it changed while it was read"});
      return;
    case session::SourceOutcome::vanished:
      doom(*file, {ErrorKind::vanished, 0, true, "it vanished at the source"});
      return;
    case session::SourceOutcome::unreadable:
      doom(*file, {ErrorKind::partial, 0, false, "it cannot be read at the source"});
      return;
  }
}

Destination::Destination(const DestinationOptions& options, Root& root, session::Link& link, cci::Endpoint& endpoint,
                         ports::WorkPool& work, memory::Pool& pool, ports::Entropy& entropy, DestinationObserver& observer,
                         Counters& counters)
    : impl_(std::make_unique<Impl>(options, root, link, endpoint, work, pool, entropy, observer, counters)) {}

Destination::~Destination() { CHECK(idle()); }

void Destination::start(Instant now) {
  impl_->now = now;
  impl_->start();
  // Lanes that were up before this object: their on_lane_up went to whoever decided to make it.
  for (const session::LaneIndex lane : impl_->link.live_lanes()) {
    if (!impl_->lanes.is_live(lane)) on_lane_up(lane);
  }
}

void Destination::turn(Instant now) { impl_->turn(now); }

bool Destination::owns_mailbox(uint64_t mailbox) const { return impl_->lanes.owns(mailbox); }

void Destination::on_completion(const rvma::Completion& completion) {
  impl_->wake = true;
  std::optional<Arrival> arrival = impl_->lanes.take(completion);
  if (!arrival) return;
  ++impl_->buffers_out;
  impl_->arrivals.push_back(std::move(*arrival));
}

Instant Destination::next_deadline() const { return impl_->next_deadline(); }

bool Destination::finished() const { return impl_->error.has_value() || impl_->bye || (impl_->link_gone && impl_->summary_posted); }

bool Destination::idle() const { return impl_->idle(); }

bool Destination::in_disk() const { return impl_->jobs > 0; }

const Error* Destination::error() const { return impl_->error ? &*impl_->error : nullptr; }

const session::Tally& Destination::totals() const { return impl_->totals; }

Instant Destination::last_progress() const { return impl_->last_progress; }

std::string Destination::stuck_disk() const {
  return session::stuck_disk(impl_->disk.silent(impl_->now), impl_->peers_disk.silent(), impl_->options.disk_patience,
                             "the sender's");
}

void Destination::abort(const Error& error) { impl_->end_with(error, true); }

void Destination::on_lane_up(session::LaneIndex lane) {
  impl_->wake = true;
  if (finished()) return;
  impl_->lanes.up(lane);
  if (impl_->lanes.has_live()) impl_->owner->link_dead.store(false);
}

void Destination::on_lane_down(session::LaneIndex lane) {
  impl_->wake = true;
  impl_->lanes.down(lane);
  if (!impl_->lanes.has_live()) impl_->owner->link_dead.store(true);
}

void Destination::on_lane_message(session::LaneIndex lane, const Message& message) {
  impl_->wake = true;
  const auto* ask = std::get_if<session::Ask>(&message);
  if (ask == nullptr) return impl_->reject("a lane message that only a destination sends");
  if (!impl_->lanes.asked(lane, ask->limit)) impl_->reject("a question beyond the credit");
}

void Destination::on_message(const Message& message) { impl_->on_message(message); }

void Destination::on_put(session::LaneIndex, uint64_t, Status) {}  // a destination puts nothing

void Destination::on_link_lost(const Error& error) {
  impl_->wake = true;
  impl_->link_gone = true;
  impl_->owner->link_dead.store(true);
  // After the summary everything is durable: the transfer succeeded, whether or not the source knows it.
  if (!impl_->summary_posted) impl_->end_with(error, false);
}

}  // namespace ccixfer::recv
