// What happens when nothing happens.
#include <algorithm>

#include "transports/stream/engine.h"
#include "transports/stream/limits.h"

namespace ccixfer::stream {

Instant Engine::keepalive_deadline(const Connection& c) {
  const bool counted = c.state == State::awaiting_accept || c.state == State::requested || c.state == State::accepting ||
                       c.state == State::open || c.state == State::closing;
  if (!counted || c.keepalive_mode == Keepalive::off) return never;
  return after(std::max(c.last_received, c.last_probe), c.keepalive);
}

Instant Engine::deadline_of(const Connection& c) const {
  return std::min({c.step_deadline, c.messages.deadline(), keepalive_deadline(c)});
}

// A deadline that moves away leaves its entry where it is: it is looked at again when the entry is due.
void Engine::schedule(Connection& c) {
  if (c.state == State::gone) return;  // released: its slot has no deadline any more
  const Instant wanted = deadline_of(c);
  if (wanted < deadlines_.get(c.id.index)) deadlines_.set(c.id.index, wanted);
}

void Engine::run_timers() {
  while (deadlines_.earliest() <= now_) {
    Connection& c = *connections_.at(deadlines_.earliest_slot());
    if (deadline_of(c) <= now_) on_timer(c);
    if (c.state == State::gone) continue;
    // What is still due now has work in the next pass, not here again.
    const Instant next = deadline_of(c);
    deadlines_.set(c.id.index, next > now_ ? next : never);
    if (next <= now_) touch(c);
  }
}

Instant Engine::crowded_at() const {
  const bool crowded = pending_count_ >= options_.pending_requests_max && !silent_.empty();
  return crowded ? after(silent_.begin()->first, silence_when_crowded_max) : never;
}

// Else so many that say nothing would keep everybody out until the handshake's time is over.
void Engine::drop_silent() {
  if (crowded_at() > now_) return;
  while (!silent_.empty() && after(silent_.begin()->first, silence_when_crowded_max) <= now_) {
    counters_.add(Counter::hello_rejected);
    release(*connections_.at(silent_.begin()->second));
  }
}

void Engine::on_timer(Connection& c) {
  if (c.step_deadline <= now_) return on_step_timeout(c);
  if (c.messages.deadline() <= now_) {
    c.messages.timer(now_, [&](const MessageOwner& owner, Status status) { message_ended(c, owner, status); });
    touch(c);
  }
  if (keepalive_deadline(c) <= now_) on_keepalive_timer(c);
}

void Engine::on_step_timeout(Connection& c) {
  c.step_deadline = never;
  switch (c.state) {
    case State::dialling:
    case State::hello_sent:
    case State::awaiting_accept:
      return lose(c, Status::timed_out, "no answer in time");
    case State::awaiting_hello:
      counters_.add(Counter::hello_rejected);
      return release(c);
    case State::accepting:
      return lose(c, Status::timed_out, "the dialler did not acknowledge in time");
    case State::closing:
      return part(c, Status::disconnected, "the peer disconnected");
    case State::draining:
      return release(c);
    case State::requested:
    case State::open:
    case State::gone:
      return;
  }
}

void Engine::on_keepalive_timer(Connection& c) {
  c.last_probe = now_;
  if (c.probes < keepalive_probes_max) {
    ++c.probes;
    c.probe_due = true;
    return touch(c);
  }
  if (c.keepalive_mode == Keepalive::notify) {
    c.keepalive_mode = Keepalive::off;
    c.keepalive = Duration{0};
    if (!c.dead && c.state == State::open) sink_->on_keepalive_timeout(c.id);
    return;
  }
  lose(c, Status::timed_out, "the peer does not answer");
}

}  // namespace ccixfer::stream
