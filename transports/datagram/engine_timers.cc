// What happens when nothing happens.
#include <algorithm>

#include "transports/datagram/engine.h"

namespace ccixfer::datagram {

Instant Engine::keepalive_deadline(const Connection& c) {
  const bool counted = c.state == State::awaiting_accept || c.state == State::requested || c.state == State::accepting ||
                       c.state == State::open || c.state == State::closing;
  if (!counted || c.keepalive_mode == Keepalive::off) return never;
  return after(std::max(c.last_received, c.last_probe), c.keepalive);
}

Instant Engine::deadline_of(const Connection& c) const {
  const Instant ack = c.state == State::draining ? never : c.received.ack_deadline();
  return std::min({c.step_deadline, c.messages.deadline(), keepalive_deadline(c), c.next_hello, c.silence_ends, ack, c.pace_at,
                   c.sent.deadline(c.rtt)});
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

void Engine::on_timer(Connection& c) {
  if (c.step_deadline <= now_) return on_step_timeout(c);
  if (c.silence_ends <= now_) return lose(c, Status::unreachable, "nobody answers");
  if (c.next_hello <= now_) send_hello(c);
  if (c.messages.deadline() <= now_) {
    c.messages.timer(now_, [&](const MessageOwner& owner, Status status) { message_ended(c, owner, status); });
  }
  if (c.sent.deadline(c.rtt) <= now_) {
    outcome_.clear();
    c.sent.timer(now_, c.rtt, outcome_);
    if (outcome_.probe && !outcome_.timed_out) {
      for (const reliability::Carried& carried : c.sent.oldest()->carried) carried_lost(c, carried);
    }
    learn(c, outcome_);
    if (outcome_.probe) {
      c.probe_credit = 1;
      if (!wants_to_send(c)) c.ping_due = c.state != State::draining;
    }
  }
  touch(c);
  if (keepalive_deadline(c) <= now_) on_keepalive_timer(c);
}

void Engine::on_step_timeout(Connection& c) {
  c.step_deadline = never;
  switch (c.state) {
    case State::resolving:
    case State::hello_sent:
    case State::awaiting_accept:
      return part(c, Status::timed_out, "no answer in time");
    case State::accepting:
      return part(c, Status::timed_out, "the dialler did not acknowledge in time");
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
    c.ping_due = true;
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

}  // namespace ccixfer::datagram
