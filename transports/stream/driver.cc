#include "transports/stream/driver.h"

#include <algorithm>
#include <utility>

#include "core/ports/departure.h"
#include "transports/connection/engine_impl.h"
#include "transports/stream/limits.h"

template class ccixfer::connection::Engine<ccixfer::stream::Driver, ccixfer::stream::Connection>;

namespace ccixfer::stream {
namespace {

ports::TransportOptions within_limits(ports::TransportOptions options) {
  options.rmas_in_flight_max = std::min(options.rmas_in_flight_max, wire::operation_slots_max);
  return options;
}

// All but a frame of which the peer has seen a part.
void forget_unsent(Connection& c) {
  if (c.batch == nullptr) return;
  const size_t records = c.batch->keep_begun();
  if (records > 0) c.secured->drop(records);
}

// Half a chunk of memory that is no longer ours to read has gone out: nothing else fits in behind it.
bool is_in_the_middle_of_a_payload(const Connection& c) {
  if (c.batch == nullptr || c.batch->empty()) return false;
  const OutItem::Type type = c.batch->front().type;
  return type == OutItem::Type::write || type == OutItem::Type::read_reply;
}

}  // namespace

Driver::Driver(const ports::TransportOptions& options, std::unique_ptr<StreamNet> net, Counters& counters,
               std::shared_ptr<connection::HopTrust> trust)
    : net_(std::move(net)),
      trust_(std::move(trust)),
      engine_(within_limits(options), max_send_offered_bytes, *this, counters),
      lent_(engine_, *net_),
      handshake_(engine_, *net_, silent_, trust_.get()),
      reader_(engine_, *net_, handshake_, lent_),
      writer_(engine_, *net_) {}

Driver::~Driver() {
  if (engine_.is_bound()) engine_.target().set_lender(nullptr);
  engine_.for_each([this](Connection& c) {
    if (engine_.is_bound()) c.served.abandon(engine_.target());
    // The peer learns at once, if the stream stands between frames and takes the goodbye.
    const bool between_frames = c.batch == nullptr || c.batch->empty() || c.batch->front().done_bytes == 0;
    if (between_frames && connection::is_established(c.state) && !c.bye_queued) {
      forget_unsent(c);
      Handshake::say_bye(c, Status::disconnected, ports::words_of_departure);
      const std::vector<std::byte> bye = FrameWriter::as_sent(c, *c.handshake_out);
      const ConstIoSpan span{bye.data(), bye.size()};
      static_cast<void>(net_->send(c.stream, {&span, 1}));
    }
    if (c.stream != 0) net_->close(c.stream);
    if (engine_.is_bound()) c.served.closed(engine_.target());
  });
}

void Driver::bind(ports::TransportSink& sink, ports::RmaTarget& target) {
  engine_.bind(sink, target);
  target.set_lender(&lent_);
}

void Driver::resume(ports::ConnectionId id) {
  Connection* c = engine_.find(id);
  if (c == nullptr) return;
  c->served.resume();
  c->rma.resume();
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

connection::Outflow Driver::outflow(const Connection& c) const {
  const uint64_t waiting_bytes = net_->waiting_bytes(c.stream);
  // A network that took all it had room for may have passed it on, and not yet told us to go on.
  return {c.given_bytes - std::min(c.given_bytes, waiting_bytes), waiting_bytes > 0 || c.blocked};
}

std::optional<uint64_t> Driver::delivered_bytes(ports::ConnectionId id) const {
  const Connection* c = engine_.find(id);
  return c == nullptr ? std::nullopt : std::optional(outflow(*c).left_bytes);
}

std::optional<uint64_t> Driver::received_bytes(ports::ConnectionId id) const {
  const Connection* c = engine_.find(id);
  return c == nullptr ? std::nullopt : std::optional(c->received_bytes);
}

std::optional<ports::PathFigures> Driver::path_figures(ports::ConnectionId id) const {
  const Connection* c = engine_.find(id);
  return c == nullptr ? std::nullopt : net_->path_figures(c->stream);
}

void Driver::dialling(Connection& c, uint64_t stream) {
  c.stream = stream;
  by_stream_.emplace(stream, c.id.index);
}

// ---- One turn.

void Driver::poll(Instant now) {
  net_->poll(now, [this](const StreamEvent& event) { net_event(event); });
}

void Driver::stream_accepted(const StreamEvent& event) {
  Connection* c = engine_.admit(State::awaiting_hello);
  if (c == nullptr) return net_->close(event.id);  // it came before the pause took hold
  dialling(*c, event.id);
  c->uri = event.reason;
  c->readable = true;
  c->hello_at = engine_.now();
  silent_.add(c->id.index, c->hello_at);
  c->step.set(engine_.options().handshake_timeout);
  engine_.touch(*c);
}

// As one that was accepted here, whose hello has come.
void Driver::adopt(MovedConnection moved) {
  Connection* c = engine_.admit(State::awaiting_hello);
  if (c == nullptr) return;  // too many: the dialler sees the end of the stream
  const StreamId id = net_->adopt(std::move(moved.stream));
  if (id == 0) return engine_.release(*c);
  dialling(*c, id);
  c->uri = std::move(moved.uri);
  c->secured = std::move(moved.secured);
  c->keep_hello(std::move(moved.hello));
  c->readable = true;
  c->hello_at = engine_.now();
  c->step.set(engine_.options().handshake_timeout);
  engine_.touch_from_above(*c);
}

void Driver::net_event(const StreamEvent& event) {
  if (event.type == StreamEventType::accepted) return stream_accepted(event);
  if (event.type == StreamEventType::device_failed) return engine_.sink().on_device_failed(event.reason);
  const auto found = by_stream_.find(event.id);
  if (found == by_stream_.end()) return;
  Connection& c = *engine_.at(found->second);
  switch (event.type) {
    case StreamEventType::connected:
      if (c.state == State::dialling) handshake_.greet(c);
      if (c.state == State::gone) return;
      break;
    case StreamEventType::failed:
      return engine_.lose(c, event.status == Status::success ? Status::disconnected : event.status, event.reason);
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
  engine_.touch(c);
}

void Driver::serve(Connection& c) {
  c.messages.stamp(engine_.now());
  if (c.keeps_hello() && !handshake_.has_placement()) handshake_.answer_kept_hello(c);  // it has moved here
  if (c.readable && c.state != State::dialling && handshake_.has_time_for(c)) reader_.receive(c);
  if (c.keeps_hello() && c.state == State::awaiting_hello) handshake_.move_on(c);
  if (c.state == State::gone || c.state == State::dialling) return;
  if (c.hello_due) handshake_.ask_if_due(c);
  if (c.served.holds()) c.served.acknowledged(lent_.acknowledged_bytes(c), engine_.target());
  c.rma.start(c.messages.ended());
  engine_.release_fenced(c);
  c.messages.stamp(engine_.now());
  if (!c.blocked && !FrameWriter::hold_acknowledgement(c)) writer_.transmit(c);
  if (c.state == State::gone) return;
  if (c.ack_held && !c.readable) {
    engine_.touch(c, true);
  } else if (c.readable || (!c.blocked && (c.keeps_hello() || FrameWriter::wants_to_send(c)))) {
    engine_.touch(c);
  }
}

void Driver::end_turn() {
  silent_.make_room(engine_, net_->accept_starves());
  handshake_.end_turn();
  lent_.turn();
}

Instant Driver::own_deadline() const {
  const bool keeps_out = engine_.takes_no_more() || net_->accept_starves();
  return std::min(lent_.deadline(), keeps_out ? silent_.deadline() : never);
}

// ---- The end.

bool Driver::say_end(Connection& c, const connection::Parting& parting) {
  if (parting.kind == connection::Parting::Kind::reject) {
    Handshake::say_reject(c, parting.status, parting.reason);
    return true;
  }
  if (parting.kind == connection::Parting::Kind::gave_up) return false;
  if (c.state == State::dialling || c.state == State::awaiting_hello) return false;
  if (c.secured != nullptr && !c.secured->is_confirmed()) return c.secured->has_output();  // nothing but what TLS has to say
  // Memory of operations that have just ended is their owner's again: what the network still has of it must not arrive.
  if (c.lent_until > lent_.acknowledged_bytes(c)) return false;
  forget_unsent(c);
  if (is_in_the_middle_of_a_payload(c)) return false;
  Handshake::say_bye(c, parting.status, parting.reason);
  return true;
}

void Driver::stop_receiving(Connection& c) {
  c.incoming.leave();
  c.served.leave();
  c.served.abandon(engine_.target());
  if (c.rx.payload == Payload::message) {
    engine_.sink().on_message_end(c.id, false);
    c.rx.payload = Payload::dropped;
  }
}

void Driver::operations_end(Connection& c) {
  if (c.rx.payload == Payload::message) engine_.sink().on_message_end(c.id, false);
  c.rx.payload = Payload::none;
  c.rx.rest_bytes = 0;
  c.served.abandon(engine_.target());
}

void Driver::released(Connection& c) {
  if (c.state == State::awaiting_hello) silent_.remove(c.id.index);
  net_->close(c.stream);
  c.served.closed(engine_.target());
  by_stream_.erase(c.stream);
  if (c.batch != nullptr) writer_.keep_batch(std::move(c.batch));
}

}  // namespace ccixfer::stream
