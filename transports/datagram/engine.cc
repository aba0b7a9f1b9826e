#include "transports/datagram/engine.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::datagram {

Engine::Engine(const ports::TransportOptions& options, std::unique_ptr<DatagramNet> net, ports::Entropy& entropy,
               Counters& counters)
    : options_(options),
      net_(std::move(net)),
      entropy_(entropy),
      counters_(counters),
      cookies_(entropy),
      datagram_bytes_(std::min(net_->datagram_bytes_max(), datagram_bytes_max)) {
  CHECK(datagram_bytes_ >= datagram_bytes_min);
  options_.rmas_in_flight_max = std::min(options_.rmas_in_flight_max, operation_slots_max);
  options_.sends_in_flight_max = std::min(options_.sends_in_flight_max, messages_window_max);
  CHECK(options_.connections_max > 0 && options_.pending_requests_max > 0);
  CHECK(options_.sends_in_flight_max > 0 && options_.rmas_in_flight_max > 0);
}

Engine::~Engine() {
  connections_.for_each([this](Connection& c) {
    if (c.state == State::gone) return;
    if (target_ != nullptr) c.served.abandon(*target_);
    if (c.remote_key == 0) return;
    if (c.state != State::draining) say_farewell(c, false, Status::disconnected, "the endpoint was destroyed");
    for (uint32_t i = 0; i < farewells; ++i) {
      c.farewell_due = true;
      if (!build(c, true)) break;
    }
  });
}

void Engine::bind(ports::TransportSink& sink, ports::RmaTarget& target) {
  sink_ = &sink;
  target_ = &target;
}

Connection* Engine::find(ports::ConnectionId id) const {
  Connection* c = connections_.find(id.index, id.generation);
  return c == nullptr || c->dead || c->state == State::gone ? nullptr : c;
}

Connection* Engine::create(State state) {
  if (connections_count_ >= options_.connections_max) return nullptr;
  const auto name = connections_.add();
  Connection& c = *connections_.find(name);
  c.id = {name.index, name.generation};
  c.state = state;
  c.last_received = now_;
  while (c.local_key == 0) c.local_key = entropy_.next_u64();
  ++connections_count_;
  if (state == State::requested) ++pending_count_;
  return &c;
}

void Engine::set_state(Connection& c, State next) {
  CHECK(may_follow(c.state, next));
  if (next == State::requested) ++pending_count_;
  if (c.state == State::requested) --pending_count_;
  c.state = next;
}

void Engine::limit_step(Connection& c, Duration timeout) {
  c.step_timeout = timeout;
  c.step_unstamped = true;
  c.step_deadline = never;
}

void Engine::touch(Connection& c) {
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

// [Turn] What the network tells, what each connection has to do (bounded), the timers that are due.
void Engine::turn(Instant now) {
  CHECK(sink_ != nullptr && target_ != nullptr);
  now_ = now;
  in_turn_ = true;
  poked_ = false;
  net_->poll(now, *this);
  serving_.swap(ready_);
  for (const uint32_t index : serving_) {
    Connection& c = *connections_.at(index);
    c.queued = false;
    service(c);
  }
  serving_.clear();
  run_timers();
  for (const uint32_t index : released_) connections_.remove(index);
  if (!released_.empty()) {
    std::erase_if(ready_, [this](uint32_t index) { return connections_.at(index) == nullptr; });
    released_.clear();
  }
  in_turn_ = false;
  net_->set_deadline(next_deadline());
}

Instant Engine::next_deadline() const { return ready_.empty() || blocked_ ? deadlines_.earliest() : now_; }

void Engine::service(Connection& c) {
  if (c.state == State::gone) return;
  if (c.cancelled) {
    c.cancelled = false;
    return part(c, Status::cancelled, "cancelled");
  }
  if (c.left) leave(c);
  if (c.step_unstamped) {
    c.step_unstamped = false;
    c.step_deadline = after(now_, c.step_timeout);
  }
  if (std::exchange(c.keepalive_unstamped, false)) c.last_probe = now_;
  c.rma.start(c.messages.ended());
  if (!c.fenced.empty()) release_fenced(c);
  c.messages.stamp(now_);
  transmit(c);
  if (c.state == State::closing) finish_closing(c);
  if (c.state == State::gone) return;
  if (c.step_unstamped) touch(c);
  schedule(c);
}

void Engine::leave(Connection& c) {
  c.left = false;
  if (c.state == State::accepting) sink_->on_accepted(c.id, Status::cancelled, {});
  if (c.state != State::open && c.state != State::accepting) return;
  set_state(c, State::closing);
  c.incoming.leave();
  c.served.leave();
  c.served.abandon(*target_);
  limit_step(c, disconnect_flush_max);
}

// All of ours is delivered: say goodbye.
void Engine::finish_closing(Connection& c) {
  if (!c.messages.empty() || !c.rma.empty() || !c.fenced.empty()) return;
  say_farewell(c, false, Status::disconnected, "the peer disconnected");
  transmit(c);
}

Engine::HelloName Engine::hello_name(const Connection& c) { return {c.address, {c.remote_index, c.remote_key}}; }

}  // namespace ccixfer::datagram
