#include "transports/rdma/driver.h"

#include <algorithm>
#include <utility>

#include "core/ports/departure.h"
#include "transports/connection/engine_impl.h"
#include "transports/connection/limits.h"

template class ccixfer::connection::Engine<ccixfer::rdma::Driver, ccixfer::rdma::Connection>;

namespace ccixfer::rdma {
namespace {

ports::TransportOptions within_limits(ports::TransportOptions options) {
  options.rmas_in_flight_max = std::min(options.rmas_in_flight_max, wire::operation_slots_max);
  return options;
}

// A share of the queue that several peers can have at once.
uint16_t credits_window(const RdmaNet& net) {
  return static_cast<uint16_t>(std::clamp<uint32_t>(net.receives_max() / 8, credits_first, credits_max));
}

}  // namespace

Driver::Driver(const ports::TransportOptions& options, std::unique_ptr<RdmaNet> net, Counters& counters,
               std::shared_ptr<connection::HopTrust> trust)
    : net_(std::move(net)),
      memory_(*net_),
      engine_(within_limits(options), PacketWriter::max_send_bytes(*net_), *this, counters),
      handshake_(engine_, credits_window(*net_), std::move(trust)),
      reader_(engine_, handshake_),
      writer_(engine_, *net_, memory_),
      pieces_(engine_, *net_, memory_) {}

Driver::~Driver() {
  if (engine_.is_bound()) engine_.target().set_lender(nullptr);
  uint32_t goodbyes = 0;
  engine_.for_each([&](Connection& c) {
    if (say_last_words(c)) ++goodbyes;
  });
  engine_.for_each([&](Connection& c) {
    if (c.pair == 0) return;
    if (!c.withdrawn && c.state == State::lingering && goodbyes > 0) {
      static_cast<void>(net_->flush(c.pair, last_words_wait_max / goodbyes));
    }
    close_pair(c);
    if (engine_.is_bound()) c.served.abandon(engine_.target());
  });
  for (const Waiting& waiting : waiting_) net_->close(waiting.pair);
}

// The peer learns at once, if the goodbye can be sent. True: it is on its way.
bool Driver::say_last_words(Connection& c) {
  if (!connection::is_established(c.state) || c.pair == 0 || c.withdrawn || c.pieces > 0 || c.exposed > 0 || c.blocked ||
      !c.credits.any() || c.unsent != nullptr) {
    return false;
  }
  Handshake::say_bye(c, Status::disconnected, ports::words_of_departure);
  engine_.begin_lingering(c);
  writer_.transmit(c);
  return c.greeting == nullptr && c.unsent == nullptr;
}

void Driver::bind(ports::TransportSink& sink, ports::RmaTarget& target) {
  engine_.bind(sink, target);
  target.set_lender(this);
}

void Driver::resume(ports::ConnectionId id) {
  Connection* c = engine_.find(id);
  if (c == nullptr) return;
  c->served.resume();
  engine_.touch_from_above(*c);
}

void Driver::hint(ports::ConnectionId id, uint64_t mailbox, uint64_t epoch) {
  Connection* c = engine_.find_open(id);
  if (c == nullptr) return;
  if (c->hints == nullptr) c->hints = std::make_unique<RingBuffer<wire::MailboxHint>>();
  if (c->hints->size() >= hints_waiting_max) return;
  c->hints->push_back({mailbox, epoch});
  engine_.touch_from_above(*c);
}

std::optional<uint64_t> Driver::delivered_bytes(ports::ConnectionId id) const {
  const Connection* c = engine_.find(id);
  return c == nullptr ? std::nullopt : std::optional(c->delivered_bytes);
}

std::optional<uint64_t> Driver::received_bytes(ports::ConnectionId id) const {
  const Connection* c = engine_.find(id);
  return c == nullptr ? std::nullopt : std::optional(c->received_bytes);
}

// ---- What the network tells.

void Driver::poll(Instant now) { net_->poll(now, *this); }

Connection* Driver::of(PairId pair) {
  const auto found = by_pair_.find(pair);
  return found == by_pair_.end() ? nullptr : engine_.at(found->second);
}

void Driver::dialling(Connection& c, uint64_t pair) {
  c.pair = pair;
  by_pair_.emplace(pair, c.id.index);
}

void Driver::requested(PairId pair, std::string_view peer) {
  if (waiting_.size() >= waiting_diallers_max) return net_->close(pair);
  waiting_.push_back({pair, std::string(peer)});
  admit_waiting();
}

// A proof costs time, so few begin in one turn.
void Driver::admit_waiting() {
  while (!waiting_.empty() && !paused_) {
    if (handshake_.proves() && admitted_++ >= connection::handshakes_per_turn_max) return;
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    Connection* c = engine_.admit(State::awaiting_hello);
    if (c == nullptr) return net_->close(next.pair);
    dialling(*c, next.pair);
    c->uri = next.peer;
    handshake_.came(*c);
    net_->accept(next.pair);
  }
}

void Driver::connected(PairId pair) {
  Connection* c = of(pair);
  if (c == nullptr) return;
  if (c->state == State::dialling) handshake_.greet(*c);
  engine_.touch(*c);
}

void Driver::closed(PairId pair, Status status, std::string_view reason) {
  Connection* c = of(pair);
  if (c == nullptr) {
    std::erase_if(waiting_, [pair](const Waiting& waiting) { return waiting.pair == pair; });
    return;
  }
  pair_is_gone(*c);
  if (c->state == State::lingering) return engine_.release(*c);
  if (c->state == State::awaiting_hello) engine_.counters().add(Counter::hello_rejected);
  engine_.lose(*c, status == Status::success ? Status::disconnected : status, reason);
}

void Driver::received(PairId pair, Bytes bytes) {
  Connection* c = of(pair);
  if (c == nullptr || c->withdrawn) return;
  reader_.read(*c, bytes);
  engine_.touch(*c);
}

void Driver::completed(PairId pair, uint64_t tag, WorkStatus status) {
  Connection* c = of(pair);
  if (c != nullptr && !c->withdrawn) pieces_.completed(*c, tag, status);
}

void Driver::sendable(PairId pair) {
  Connection* c = of(pair);
  if (c == nullptr) return;
  c->blocked = false;
  engine_.touch(*c);
}

// ---- One turn.

void Driver::serve(Connection& c) {
  if (c.withdrawn) return engine_.lose(c, Status::disconnected, "memory was taken back that a card was using");
  c.messages.stamp(engine_.now());
  if (c.state == State::dialling) return;
  if (connection::is_established(c.state)) {
    c.rma.start(c.messages.ended());
    engine_.release_fenced(c);
    c.messages.stamp(engine_.now());
    pieces_.post(c);
  }
  if (!PacketWriter::hold_acknowledgement(c)) writer_.transmit(c);
  if (c.state == State::closing) finish_closing(c);
  const bool all_said = c.greeting == nullptr && c.unsent == nullptr && !c.proof_due();
  if (c.state == State::lingering && all_said && net_->unsent(c.pair) == 0) {
    return engine_.release(c);
  }
  if (c.ack_held) {
    engine_.touch(c, true);
  } else if (PacketWriter::can_go_on(c)) {
    engine_.touch(c);
  }
}

void Driver::end_turn() {
  handshake_.end_turn();
  admitted_ = 0;
  admit_waiting();
}

Instant Driver::own_deadline() const { return waiting_.empty() || paused_ ? handshake_.deadline() : engine_.now(); }

// ---- The end.

// All of ours is delivered, and our card does nothing for the peer any more: say goodbye.
void Driver::finish_closing(Connection& c) {
  if (!c.messages.empty() || !c.rma.empty() || !c.fenced.empty() || !c.served.idle() || c.unsent != nullptr) return;
  Handshake::say_bye(c, Status::disconnected, "the peer disconnected");
  engine_.begin_lingering(c);
  writer_.transmit(c);
}

bool Driver::say_end(Connection& c, const connection::Parting& parting) {
  if (c.pair == 0 || c.withdrawn) return false;
  if (parting.kind == connection::Parting::Kind::reject) {
    Handshake::say_reject(c, parting.status, parting.reason);
    return true;
  }
  if (parting.kind == connection::Parting::Kind::gave_up) return false;
  if (c.state == State::dialling || c.state == State::awaiting_hello) return false;
  if (c.secured != nullptr && !c.secured->is_confirmed()) return c.proof_due();  // nothing but what TLS has to say
  Handshake::say_bye(c, parting.status, parting.reason);
  return true;
}

void Driver::stop_receiving(Connection& c) {
  c.incoming.leave();
  c.served.leave(engine_.target());
}

// Memory of operations is about to be its owners' again. Where a card has any of it, at this end or at the peer's, it must let go
// of it now, and only the end of the pair makes it.
void Driver::operations_end(Connection& c) {
  if (c.pieces > 0 || c.exposed > 0) close_pair(c);
  c.exposed = 0;
  c.served.abandon(engine_.target());
}

void Driver::close_pair(Connection& c) {
  if (c.pair == 0) return;
  if (!c.withdrawn) net_->close(c.pair);
  pair_is_gone(c);
}

void Driver::pair_is_gone(Connection& c) {
  by_pair_.erase(c.pair);
  c.pair = 0;
  c.withdrawn = false;
  pieces_.forget(c);
}

void Driver::released(Connection& c) {
  handshake_.released(c);
  close_pair(c);
  c.served.abandon(engine_.target());
}

}  // namespace ccixfer::rdma
