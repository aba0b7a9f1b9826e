#include "transports/datagram/proof.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/log.h"
#include "core/base/units.h"

namespace ccixfer::datagram {

void Proof::end_turn() {
  proofs_ = 0;
  silent_.make_room(engine_);
}

bool Proof::begin(Connection& c) {
  c.secured = std::make_unique<Secured>(trust_->handshake(trust::HandshakeSide::dialler));
  if (const Result<void> begun = c.secured->begin(); !begun) {
    failed(c, begun.error());
    return false;
  }
  return true;
}

void Proof::answer(Connection& c, Bytes first_words) {
  c.secured = std::make_unique<Secured>(trust_->handshake(trust::HandshakeSide::acceptor));
  silent_.add(c.id.index, engine_.now());
  take(c, 0, first_words);
}

void Proof::on_piece(Connection& c, const HandshakePiece& piece) {
  if (!c.secured->told(piece.arrived_bytes)) return engine_.counters().add(Counter::acks_rejected);
  if (piece.bytes.empty() || c.state == State::lingering) return;
  take(c, piece.offset_bytes, piece.bytes);
}

// Each piece is answered: with what comes next, or with how much has come.
void Proof::take(Connection& c, uint32_t offset_bytes, Bytes bytes) {
  const bool had_keys = c.secured->has_keys();
  const uint32_t had_bytes = c.secured->arrived_bytes();
  const Result<void> stepped = c.secured->arrived(offset_bytes, bytes);
  if (!stepped) return failed(c, stepped.error());
  const bool is_new = c.secured->arrived_bytes() > had_bytes;
  // A peer that was content would have gone on with a sealed packet.
  if (had_keys && is_new) return failed(c, {ErrorKind::authentication, "the peer does not take our proof"});
  if (!c.dialler) {
    if (is_new) silent_.add(c.id.index, engine_.now());  // it is not silent, and what it says next takes a round trip
    return send(c);
  }
  if (is_new) c.work().dialling->silence_ends = after(engine_.now(), engine_.options().handshake_timeout);
  if (c.secured->has_keys() && !had_keys) {
    const Result<void> wanted = trust_->admit_acceptor(c.secured->peer(), c.uri);
    if (!wanted) return failed(c, wanted.error());
    c.work().greeting_due = true;
  }
  send(c);
}

void Proof::say_again(Connection& c) {
  if (!c.secured->unheard().empty()) send(c);
}

void Proof::send(Connection& c) {
  HandshakePiece piece;
  piece.key = c.local_key;
  piece.datagram_bytes = datagram_bytes_;
  piece.arrived_bytes = c.secured->arrived_bytes();
  piece.offset_bytes = c.secured->heard_bytes();
  Bytes rest = c.secured->unheard();
  const size_t most = packet_bytes_base - packet_overhead_bytes - handshake_piece_bytes;
  do {
    piece.bytes = rest.first(std::min(rest.size(), most));
    wire::Writer out = outbox_.begin({PacketKind::handshake, packet_version, c.remote_index, c.id.index, c.remote_key, 0});
    encode(out, piece);
    end_packet(out);
    outbox_.put(c.address, out);
    rest = rest.subspan(piece.bytes.size());
    piece.offset_bytes += static_cast<uint32_t>(piece.bytes.size());
  } while (!rest.empty());
  c.secured->sent(engine_.now());
}

void Proof::failed(Connection& c, const Error& error) {
  log(LogLevel::info, "connection={}.{} with={} handshake failed: {}", c.id.index, c.id.generation,
      printable(c.dialler ? c.uri : net_.host_of(c.address)), error.message);
  if (c.remote_key != 0) send(c);  // the alert of TLS, if there is one
  if (c.dialler) return engine_.part(c, connection::Parting::Kind::violation, connection::status_of(error), error.message);
  engine_.counters().add(Counter::hello_rejected);
  sent_away(c.address, c.is_sealed() ? &c.secured->peer() : nullptr, error);
  silent_.remove(c.id.index);
  engine_.begin_lingering(c);  // the alert goes out again until it has arrived
}

Result<void> Proof::admit_dialler(const Connection& c, ports::Role role) {
  Result<void> admitted = trust_->admit_dialler(c.secured->peer(), role);
  if (!admitted) sent_away(c.address, &c.secured->peer(), admitted.error());
  return admitted;
}

void Proof::sent_away(const Address& from, const trust::ProvedPeer* peer, const Error& error) {
  trust_->sent_away(fmt::format("{}://{}", net_.scheme(), net_.host_of(from)), peer, error);
}

}  // namespace ccixfer::datagram
