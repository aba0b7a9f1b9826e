#include "transports/stream/engine.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "transports/stream/limits.h"

namespace ccixfer::stream {

Engine::Engine(const ports::TransportOptions& options, std::unique_ptr<StreamNet> net, Counters& counters)
    : options_(options),
      net_(std::move(net)),
      counters_(counters),
      staging_(wire::header_bytes_max + staging_bytes),
      drain_(drain_bytes),
      zeros_(staging_bytes) {
  options_.rmas_in_flight_max = std::min(options_.rmas_in_flight_max, wire::operation_slots_max);
  CHECK(options_.connections_max > 0 && options_.pending_requests_max > 0);
  CHECK(options_.sends_in_flight_max > 0 && options_.rmas_in_flight_max > 0);
}

Engine::~Engine() {
  if (target_ != nullptr) target_->set_lender(nullptr);
  connections_.for_each([this](Connection& c) {
    if (c.state == State::gone) return;
    if (target_ != nullptr) c.served.abandon(*target_);
    // The peer learns at once, if the stream stands between frames and takes the goodbye.
    const bool between_frames = c.batch == nullptr || c.batch->empty() || c.batch->front().done_bytes == 0;
    if (between_frames && (c.state == State::open || c.state == State::accepting || c.state == State::closing) && !c.bye_queued) {
      std::vector<std::byte> out;
      wire::Writer writer(out);
      wire::encode_bye(writer, {Status::disconnected, "the endpoint was destroyed"});
      const ConstIoSpan span{out.data(), out.size()};
      static_cast<void>(net_->send(c.stream, {&span, 1}));
    }
    if (c.stream != 0) net_->close(c.stream);
    if (target_ != nullptr) c.served.closed(*target_);
  });
}

void Engine::bind(ports::TransportSink& sink, ports::RmaTarget& target) {
  sink_ = &sink;
  target_ = &target;
  target.set_lender(this);
}

Connection* Engine::find(ports::ConnectionId id) const {
  Connection* c = connections_.find(id.index, id.generation);
  return c == nullptr || c->dead || c->state == State::gone ? nullptr : c;
}

Connection* Engine::create(StreamId stream, State state) {
  if (connections_count_ >= options_.connections_max) return nullptr;
  const auto name = connections_.add();
  Connection& c = *connections_.find(name);
  c.id = {name.index, name.generation};
  c.stream = stream;
  c.state = state;
  c.last_received = now_;
  by_stream_.emplace(stream, name.index);
  ++connections_count_;
  if (state == State::awaiting_hello) {
    ++pending_count_;
    c.accepted_at = now_;
    silent_.emplace(now_, name.index);
  }
  update_accepting();
  return &c;
}

void Engine::set_state(Connection& c, State next) {
  CHECK(may_follow(c.state, next));
  const auto pending = [](State state) { return state == State::awaiting_hello || state == State::requested; };
  if (pending(next)) ++pending_count_;
  if (pending(c.state)) --pending_count_;
  if (c.state == State::awaiting_hello) silent_.erase({c.accepted_at, c.id.index});
  c.state = next;
  update_accepting();
}

void Engine::update_accepting() {
  const bool pause = pending_count_ >= options_.pending_requests_max || connections_count_ >= options_.connections_max;
  if (pause == accepting_paused_) return;
  accepting_paused_ = pause;
  net_->pause_accept(pause);
}

void Engine::limit_step(Connection& c, Duration timeout) {
  c.step_timeout = timeout;
  c.step_unstamped = true;
  c.step_deadline = never;
}

void Engine::touch(Connection& c) {
  urgent_ = true;
  queue(c);
}

void Engine::queue(Connection& c) {
  if (c.queued) return;
  c.queued = true;
  ready_.push_back(c.id.index);
}

void Engine::touch_from_above(Connection& c) {
  touch(c);
  if (in_turn_ || poked_) return;
  poked_ = true;
  net_->set_deadline(now_);
}

void Engine::net_event(const StreamEvent& event) {
  if (event.type == StreamEventType::accepted) {
    Connection* accepted = create(event.id, State::awaiting_hello);
    if (accepted == nullptr) return net_->close(event.id);  // it came before the pause took hold
    accepted->readable = true;
    accepted->uri = event.reason;
    limit_step(*accepted, options_.handshake_timeout);
    return touch(*accepted);
  }
  if (event.type == StreamEventType::device_failed) return sink_->on_device_failed(event.reason);
  const auto found = by_stream_.find(event.id);
  if (found == by_stream_.end()) return;
  Connection& c = *connections_.at(found->second);
  switch (event.type) {
    case StreamEventType::connected:
      if (c.state == State::dialling) greet(c);
      break;
    case StreamEventType::failed:
      return lose(c, event.status == Status::success ? Status::disconnected : event.status, event.reason);
    case StreamEventType::readable:
      c.readable = true;
      break;
    case StreamEventType::writable:
      c.blocked = false;
      break;
    case StreamEventType::accepted:
    case StreamEventType::device_failed:
      return;
  }
  touch(c);
}

// [Turn] What the network tells, what each connection has to do (bounded), the timers that are due.
void Engine::turn(Instant now) {
  CHECK(sink_ != nullptr && target_ != nullptr);
  now_ = now;
  in_turn_ = true;
  poked_ = false;
  net_->poll(now, [this](const StreamEvent& event) { net_event(event); });
  serving_.swap(ready_);
  urgent_ = false;
  for (const uint32_t index : serving_) {
    Connection& c = *connections_.at(index);
    c.queued = false;
    service(c);
  }
  serving_.clear();
  run_timers();
  drop_silent();
  if (target_->wants() != wants_seen_ || reclaim_at_ <= now_) reclaim();
  for (const uint32_t index : released_) connections_.remove(index);
  if (!released_.empty()) {
    std::erase_if(ready_, [this](uint32_t index) { return connections_.at(index) == nullptr; });
    released_.clear();
  }
  in_turn_ = false;
  // Who turns us again at next_deadline() sends a held acknowledgement at once; who waits for the OS handle, a little later.
  net_->set_deadline(ready_.empty() || urgent_ ? next_deadline() : std::min(timers(), after(now_, acknowledgement_delay_max)));
}

Instant Engine::next_deadline() const {
  const bool wanted = target_ != nullptr && target_->wants() != wants_seen_;
  return ready_.empty() && !wanted ? timers() : now_;
}

void Engine::service(Connection& c) {
  if (c.state == State::gone) return;
  if (c.cancelled) return lose(c, Status::cancelled, "cancelled");
  if (c.left) leave(c);
  if (c.step_unstamped) {
    c.step_unstamped = false;
    c.step_deadline = after(now_, c.step_timeout);
  }
  if (std::exchange(c.keepalive_unstamped, false)) c.last_probe = now_;
  c.messages.stamp(now_);
  if (c.readable && c.state != State::dialling) receive(c);
  if (c.state == State::gone || c.state == State::dialling) return schedule(c);
  if (c.served.holds()) c.served.acknowledged(acknowledged_bytes(c), *target_);
  start_operations(c);
  if (!c.fenced.empty()) release_fenced(c);
  c.messages.stamp(now_);
  if (!c.blocked && !hold_acknowledgement(c)) transmit(c);
  if (c.state == State::gone) return;
  const bool waits_only_for_an_answer = c.ack_held && !c.step_unstamped && !c.readable;
  if (waits_only_for_an_answer) {
    queue(c);
  } else if (c.step_unstamped || c.readable || (!c.blocked && wants_to_send(c))) {
    touch(c);
  }
  schedule(c);
}

uint64_t Engine::acknowledged_bytes(const Connection& c) const {
  return c.given_bytes - std::min(c.given_bytes, net_->unacknowledged_bytes(c.stream));
}

void Engine::settle() {
  connections_.for_each([this](Connection& c) {
    if (c.state != State::gone && c.served.holds()) c.served.acknowledged(acknowledged_bytes(c), *target_);
  });
}

// Regions were deregistered while the network refers to bytes of them. It lets go of those as the peer's network acknowledges them;
// a peer that does not go on has its connection reset, in bounded time.
void Engine::reclaim() {
  wants_seen_ = target_->wants();
  reclaim_at_ = never;
  connections_.for_each([this](Connection& c) {
    if (c.state == State::gone || !c.lends) return;
    const uint64_t acknowledged = acknowledged_bytes(c);
    c.served.acknowledged(acknowledged, *target_);
    if (!c.served.owes(acknowledged, *target_)) {
      c.owed_since = never;
      return;
    }
    if (c.owed_since == never) c.owed_since = c.owed_progress_at = now_;
    if (acknowledged != std::exchange(c.owed_acknowledged, acknowledged)) c.owed_progress_at = now_;
    const Instant until = std::min(after(c.owed_progress_at, lent_stall_max), after(c.owed_since, lent_wait_max));
    if (until <= now_) {
      lose(c, Status::timed_out, "the peer does not take what it was sent, and the memory is wanted back");
    } else {
      reclaim_at_ = std::min(until, after(now_, lent_look_interval));
    }
  });
}

void Engine::leave(Connection& c) {
  c.left = false;
  if (c.state == State::accepting) sink_->on_accepted(c.id, Status::cancelled, {});
  if (c.state != State::open && c.state != State::accepting) return;
  set_state(c, State::closing);
  c.incoming.leave();
  c.served.leave();
  c.served.abandon(*target_);
  if (c.rx.payload == Payload::message) {
    sink_->on_message_end(c.id, false);
    c.rx.payload = Payload::dropped;
  }
  limit_step(c, disconnect_flush_max);
}

}  // namespace ccixfer::stream
