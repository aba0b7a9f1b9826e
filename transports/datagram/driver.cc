#include "transports/datagram/driver.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/ports/departure.h"
#include "transports/connection/engine_impl.h"

template class ccixfer::connection::Engine<ccixfer::datagram::Driver, ccixfer::datagram::Connection>;

namespace ccixfer::datagram {
namespace {

ports::TransportOptions within_limits(ports::TransportOptions options) {
  options.rmas_in_flight_max = std::min(options.rmas_in_flight_max, operation_slots_max);
  options.sends_in_flight_max = std::min(options.sends_in_flight_max, messages_window_max);
  return options;
}

}  // namespace

Driver::Driver(const DatagramOptions& options, std::unique_ptr<DatagramNet> net, ports::Entropy& entropy, Counters& counters,
               std::shared_ptr<connection::HopTrust> trust)
    : net_(std::move(net)),
      datagram_bytes_(std::min(net_->datagram_bytes_max(), datagram_bytes_max)),
      outbox_(*net_, counters),
      engine_(within_limits(options.transport),
              message_bytes_max(std::min(net_->message_datagram_bytes(), datagram_bytes_), trust != nullptr), *this, counters),
      groups_(engine_, outbox_, *net_, entropy, trust != nullptr),
      proof_(engine_, outbox_, *net_, std::move(trust), datagram_bytes_),
      handshake_(engine_, outbox_, *net_, proof_, entropy, datagram_bytes_, options.congestion, options.paths),
      outcomes_(engine_),
      writer_(engine_, outbox_, handshake_, datagram_bytes_),
      moves_(engine_, *net_, entropy, handshake_, outcomes_, writer_),
      reader_(engine_, outbox_, handshake_, outcomes_, moves_) {
  CHECK(datagram_bytes_ >= datagram_bytes_min);
}

Driver::~Driver() {
  engine_.for_each([this](Connection& c) {
    handshake_.remember_path(c);
    if (engine_.is_bound() && c.has_work()) c.work().served.abandon(engine_.target());
    if (!c.can_be_told() || (c.state == State::lingering && c.work().farewell == nullptr)) return;
    if (c.state != State::lingering) {
      static_cast<void>(say_end(c, {connection::Parting::Kind::finished, Status::disconnected, ports::words_of_departure}));
      engine_.begin_lingering(c);
    }
    for (uint32_t i = 0; i < end_notices; ++i) {
      if (outbox_.is_full()) outbox_.flush_last();
      c.work().end_notice_due = true;
      if (!writer_.build(c, true)) break;
    }
  });
  outbox_.flush_last();
}

void Driver::hint(ports::ConnectionId id, uint64_t mailbox, uint64_t epoch) {
  Connection* c = engine_.find_open(id);
  if (c == nullptr) return;
  if (c->work().hints == nullptr) c->work().hints = std::make_unique<HintsOut>();
  c->work().hints->push(mailbox, epoch);
  engine_.touch_from_above(*c);
}

std::vector<std::byte> Driver::copy_message(std::span<const Bytes> parts) {
  size_t size = 0;
  for (const Bytes part : parts) size += part.size();
  std::vector<std::byte> copy;
  copy.reserve(size);
  for (const Bytes part : parts) copy.insert(copy.end(), part.begin(), part.end());
  return copy;
}

Duration Driver::round_trip(const Connection& c) {
  if (c.dialler) return c.round_trip;
  return c.rtt.known() ? c.rtt.smoothed() : Duration{0};
}

// ---- What the network tells.

void Driver::poll(Instant now) {
  handshake_.begin_turn(now);
  groups_.begin_turn();
  net_->poll(now, *this);
}

void Driver::received(std::span<const Datagram> batch) {
  for (const Datagram& datagram : batch) received_one(datagram.peer, datagram.bytes);
}

void Driver::received_one(const Address& from, Bytes datagram) {
  engine_.counters().add(Counter::bytes_in, datagram.size());
  std::optional<Packet> packet = open_packet(datagram);
  if (!packet) return engine_.counters().add(Counter::datagrams_rejected);
  if (packet->header.kind == PacketKind::hello && !net_->takes_strangers()) return engine_.counters().add(Counter::hello_rejected);
  if (packet->header.kind == PacketKind::hello) return handshake_.on_hello(from, *packet, datagram.size());
  if (packet->header.version != packet_version && packet->header.kind != PacketKind::refuse) {
    return engine_.counters().add(Counter::datagrams_rejected);
  }
  switch (packet->header.kind) {
    case PacketKind::hello:
      return;
    case PacketKind::retry:
      return handshake_.on_retry(from, *packet);
    case PacketKind::refuse:
      return handshake_.on_refuse(from, *packet);
    case PacketKind::handshake:
      return handshake_.on_handshake(from, *packet);
    case PacketKind::data:
    case PacketKind::sealed:
      return reader_.on_data(from, *packet, datagram.size());
    case PacketKind::gone:
      return reader_.on_gone(from, *packet);
    case PacketKind::group:  // it did not come to a group
      return engine_.counters().add(Counter::datagrams_rejected);
  }
}

void Driver::resolved(uint64_t query, Status status, const Address& address, std::string_view reason) {
  handshake_.resolved(query, status, address, reason);
}

// Who waits for room is in the list of those who have something to do.
void Driver::writable() { static_cast<void>(outbox_.unblock()); }

// ---- One connection's part of a turn.

void Driver::serve(Connection& c) {
  if (!c.has_work() && c.state == State::open) return;
  c.work().rma.start(c.work().messages.ended());
  engine_.release_fenced(c);
  c.work().messages.stamp(engine_.now());
  writer_.transmit(c);
  if (c.state == State::closing) finish_closing(c);
  rest_if_quiet(c);
}

void Driver::rest_if_quiet(Connection& c) {
  Work& work = c.work();
  work.rest_at = never;
  if (!c.may_rest()) return;
  const Instant at = after(work.used_at, rest_after);
  if (at <= engine_.now()) {
    handshake_.remember_path(c);
    return c.rest();
  }
  work.rest_at = at;
}

// All of ours is delivered: say goodbye.
void Driver::finish_closing(Connection& c) {
  if (!c.work().messages.empty() || !c.work().rma.empty() || !c.work().fenced.empty()) return;
  static_cast<void>(say_end(c, {connection::Parting::Kind::finished, Status::disconnected, "the peer disconnected"}));
  engine_.begin_lingering(c);
  writer_.transmit(c);
}

void Driver::stop_receiving(Connection& c) {
  c.work().incoming.leave();
  c.work().served.leave();
  c.work().served.abandon(engine_.target());
}

void Driver::end_turn() {
  proof_.end_turn();
  groups_.end_turn();
  outbox_.flush();
}

ports::PeerIdentity Driver::peer(const Connection& c) const {
  if (!c.is_sealed()) return {{}, net_->host_of(c.address)};
  return {c.secured->peer_name(), net_->host_of(c.address), trust::to_string(c.secured->peer().id)};
}

std::string_view Driver::protection(const Connection& c) {
  return c.is_sealed() ? connection::to_string(c.secured->cipher()) : std::string_view{};
}

// ---- Timers.

Instant Driver::deadline(const Connection& c) {
  const Work* work = c.work_if_any();
  if (work == nullptr) return never;
  const Instant ack = c.state == State::lingering ? never : work->received.ack_deadline();
  const Instant hello = work->dialling == nullptr ? never : std::min(work->dialling->next_hello, work->dialling->silence_ends);
  const Instant proof = c.secured == nullptr ? never : c.secured->resend_at();
  return std::min({hello, ack, proof, Moves::deadline(c), work->pace_at, work->rest_at, work->sent.deadline(c.rtt)});
}

void Driver::on_timer(Connection& c) {
  const Instant now = engine_.now();
  if (c.work().dialling != nullptr) {
    if (c.work().dialling->silence_ends <= now)
      return engine_.lose(c, Status::unreachable, engine_.words_of_silence(c, "nobody answers"));
    if (c.work().dialling->next_hello <= now) handshake_.send_hello(c);
  }
  if (c.secured != nullptr && c.secured->resend_at() <= now && c.remote_key != 0) proof_.say_again(c);
  if (Moves::deadline(c) <= now) moves_.on_timer(c);
  if (c.work().sent.deadline(c.rtt) <= now) outcomes_.silence(c);
}

}  // namespace ccixfer::datagram
