// How connections begin. The acceptor remembers nothing of a hello until the dialler has shown, by its cookie, that it receives at
// the address that the hello names; then at most pending_requests_max that are not decided.
#include "transports/datagram/handshake.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/base/units.h"
#include "transports/datagram/packet_length.h"

namespace ccixfer::datagram {

using ports::Attribute;

namespace {

bool is_usable(const wire::Offer& offer, uint32_t datagram_bytes) {
  return connection::offer_is_usable(offer) && datagram_bytes >= datagram_bytes_min;
}

}  // namespace

// ---- What both ends have in common.

void Handshake::agree_on_packets(Connection& c, uint32_t their_datagram_bytes) {
  c.datagram_bytes = static_cast<uint16_t>(std::min(datagram_bytes_, their_datagram_bytes));
  begin_path(c);
}

// Nothing is known of it, neither what it carries nor how long it takes, but by earlier connections.
void Handshake::begin_path(Connection& c) {
  begin_packet_length(c, net_.knows_path(c.address));
  c.begin_sending();
}

void Handshake::remember_path(const Connection& c) const {
  const Work* work = c.work_if_any();
  if (terms_.paths == nullptr || work == nullptr || work->congestion == nullptr) return;
  if (const auto learned = work->congestion->learned()) terms_.paths->remember(net_.host_of(c.address), *learned);
}

void Handshake::agree(Connection& c, const wire::Offer& theirs) {
  const connection::Agreed agreed = engine_.agree(c, theirs);
  c.max_send_bytes = std::min(c.max_send_bytes, message_bytes_max(c.datagram_bytes, c.secured != nullptr));
  c.sends_max = static_cast<uint16_t>(agreed.sends_in_flight_max);
  c.rmas_max = agreed.rmas_in_flight_max;
  c.open_machines();
}

std::optional<wire::EndNotice> Handshake::objection_to(const Hello& hello) {
  if (!is_usable(hello.offer, hello.datagram_bytes)) return {{Status::version, "the hello's limits cannot be used"}};
  if (hello.attribute == Attribute::multicast_send || hello.attribute == Attribute::multicast_receive) {
    return {{Status::not_implemented, "multicast is not implemented on this transport"}};
  }
  if (wire::scan_options(hello.options) != wire::OptionScan::fine) {
    return {{Status::version, "the hello demands an option that this end does not know"}};
  }
  return std::nullopt;
}

Hello Handshake::hello_of(const Connection& c) const {
  Hello hello;
  hello.attempt = c.attempt;
  hello.role = c.role;
  hello.attribute = c.attribute;
  hello.offer = engine_.our_offer();
  hello.datagram_bytes = datagram_bytes_;
  if (c.connect_data != nullptr) hello.data = *c.connect_data;
  return hello;
}

uint64_t Handshake::new_key() {
  uint64_t key = 0;
  while (key == 0) key = entropy_.next_u64();
  return key;
}

void Handshake::dialling(Connection& c, uint64_t query) {
  c.local_key = new_key();
  c.terms = &terms_;
  c.work().dialling = std::make_unique<Dialling>();
  c.work().dialling->query = query;
  by_query_[query] = c.id.index;
}

void Handshake::resolved(uint64_t query, Status status, const Address& address, std::string_view reason) {
  const auto found = by_query_.find(query);
  if (found == by_query_.end()) return;
  Connection& c = *engine_.at(found->second);
  by_query_.erase(found);
  c.work().dialling->query = 0;
  if (status != Status::success) return engine_.lose(c, status, reason);
  c.address = address;
  engine_.hello_is_out(c);
  c.work().dialling->silence_ends = after(engine_.now(), engine_.options().handshake_timeout);
  if (proof_.is_wanted() && !proof_.begin(c)) return;
  send_hello(c);
  engine_.touch(c);
}

void Handshake::send_hello(Connection& c) {
  ++c.attempt;
  Hello hello;
  if (c.secured == nullptr) {
    hello = hello_of(c);
  } else {
    hello.secured = true;
    hello.attempt = c.attempt;
    hello.datagram_bytes = datagram_bytes_;
    hello.data = c.secured->unheard();
  }
  hello.cookie = c.work().dialling->cookie;
  wire::Writer out = outbox_.begin({PacketKind::hello, packet_version, 0, c.id.index, c.local_key, 0});
  encode(out, hello);
  if (out.position() + packet_check_bytes < hello_bytes_min) out.zeros(hello_bytes_min - packet_check_bytes - out.position());
  end_packet(out);
  outbox_.put(c.address, out);
  c.work().dialling->hello_at[hello.attempt % hello_attempts_remembered] = engine_.now();
  c.work().dialling->next_hello = after(engine_.now(), c.work().dialling->hello_pause);
  c.work().dialling->hello_pause = std::min(c.work().dialling->hello_pause * 2, hello_pause_max);
}

void Handshake::refuse(const Address& from, const PacketHeader& hello, Status status, std::string_view reason) {
  engine_.counters().add(Counter::hello_rejected);
  wire::Writer out = outbox_.begin({.kind = PacketKind::refuse, .destination = hello.source, .key = hello.key});
  encode(out, wire::EndNotice{status, reason});
  end_packet(out);
  outbox_.put(from, out);
}

void Handshake::retry(const Address& from, const PacketHeader& hello) {
  wire::Writer out = outbox_.begin({.kind = PacketKind::retry, .destination = hello.source, .key = hello.key});
  encode(out, cookies_.bake(from, hello.source, hello.key, engine_.now()));
  end_packet(out);
  outbox_.put(from, out);
}

Connection& Handshake::admit(const Address& from, const PacketHeader& header, const Hello& hello, State state) {
  Connection& c = *engine_.admit(state);
  c.local_key = new_key();
  c.terms = &terms_;
  c.address = from;
  c.remote_index = header.source;
  c.remote_key = header.key;
  c.attempt = hello.attempt;
  hellos_.add(cookies_.name(from, header.source, header.key));
  agree_on_packets(c, hello.datagram_bytes);
  engine_.touch(c);
  return c;
}

void Handshake::requested(Connection& c, const Hello& hello) {
  c.role = hello.role;
  c.attribute = hello.attribute;
  agree(c, hello.offer);
  c.work().hello_reply_due = true;
  engine_.requested(c, hello.data);
}

void Handshake::on_hello(const Address& from, const Packet& packet, size_t datagram_size) {
  const PacketHeader& header = packet.header;
  // What is shorter than our answers may be is not answered: nobody is to be flooded in another's name.
  if (datagram_size < hello_bytes_min || header.key == 0) return engine_.counters().add(Counter::hello_rejected);
  if (header.version != packet_version) {
    return refuse(from, header, Status::version,
                  fmt::format("this end speaks version {} of the datagram protocol", packet_version));
  }
  const std::optional<Hello> hello = decode_hello(packet.body);
  if (!hello) return engine_.counters().add(Counter::hello_rejected);
  if (hellos_.knows(cookies_.name(from, header.source, header.key))) return;  // our reply comes again by itself
  const bool proven = hello->cookie && cookies_.holds(*hello->cookie, from, header.source, header.key, engine_.now());
  if (!proven || engine_.is_crowded() || !engine_.has_room()) return retry(from, header);
  if (hello->secured && !proof_.is_wanted()) {
    return refuse(from, header, Status::not_authenticated, connection::acceptor_is_insecure);
  }
  if (!hello->secured && proof_.is_wanted()) {
    proof_.sent_away(from, nullptr, {ErrorKind::authentication, "it runs with --insecure"});
    return refuse(from, header, Status::not_authenticated, connection::dialler_is_insecure);
  }
  if (!hello->secured) {
    if (const auto objection = objection_to(*hello)) return refuse(from, header, objection->status, objection->reason);
    return requested(admit(from, header, *hello, State::requested), *hello);
  }
  if (hello->datagram_bytes < datagram_bytes_min) {
    return refuse(from, header, Status::version, "the hello's limits cannot be used");
  }
  if (!proof_.has_time()) return retry(from, header);
  Connection& c = admit(from, header, *hello, State::awaiting_hello);
  c.step.set(engine_.options().handshake_timeout);
  proof_.answer(c, hello->data);
}

void Handshake::on_retry(const Address& from, const Packet& packet) {
  const PacketHeader& header = packet.header;
  Connection* c = engine_.at(header.destination);
  const std::optional<Cookie> cookie = decode_cookie(packet.body);
  if (c == nullptr || c->state != State::hello_sent || c->address != from || c->local_key != header.key || !cookie) return;
  const bool first = !c->work().dialling->cookie;
  c->work().dialling->cookie = cookie;
  c->work().dialling->silence_ends =
      after(engine_.now(), engine_.options().handshake_timeout);  // somebody is there, and perhaps busy
  if (!first) return;
  c->work().dialling->hello_pause = hello_pause_first;
  send_hello(*c);
  engine_.touch(*c);
}

void Handshake::on_refuse(const Address& from, const Packet& packet) {
  const PacketHeader& header = packet.header;
  Connection* c = engine_.at(header.destination);
  if (c == nullptr || c->state != State::hello_sent || c->address != from || c->local_key != header.key) return;
  wire::Reader in(packet.body);
  const wire::EndNotice notice = decode_end_notice(in);
  if (!in.done()) return engine_.counters().add(Counter::frames_rejected);
  if (c->secured == nullptr) return engine_.lose(*c, notice.status, printable(notice.reason));
  // Whoever has proved nothing may be anybody: no word of it is repeated.
  const bool other_version = notice.status == Status::version;
  engine_.lose(*c, other_version ? Status::version : Status::not_authenticated,
               other_version ? "the peer speaks another version of the datagram protocol" : connection::acceptor_is_insecure);
}

// ---- Both ends prove who they are, and then the dialler says what it wants.

void Handshake::on_handshake(const Address& from, const Packet& packet) {
  const PacketHeader& header = packet.header;
  Connection* c = engine_.at(header.destination);
  if (c == nullptr || c->state == State::gone || c->local_key != header.key) {
    return outbox_.put_empty(from, {.kind = PacketKind::gone, .destination = header.source, .key = header.key});
  }
  const std::optional<HandshakePiece> piece = decode_handshake_piece(packet.body);
  const bool is_its_peer = c->address == from && (c->remote_key == 0 || (c->remote_index == header.source));
  if (!piece || !is_its_peer || c->secured == nullptr || piece->datagram_bytes < datagram_bytes_min ||
      (c->remote_key != 0 && c->remote_key != piece->key)) {
    return engine_.counters().add(Counter::datagrams_rejected);
  }
  // Late: the peer has what it needs. Such packets are not sealed, so anybody can make them up: they say nothing of the peer.
  if (c->secured->is_confirmed()) return;
  if (!piece->bytes.empty() && !proof_.has_time()) return;  // it comes again
  if (c->remote_key == 0) {
    if (c->state != State::hello_sent) return;  // nobody has been asked yet
    c->remote_index = header.source;
    c->remote_key = piece->key;
    c->work().dialling->next_hello = never;
    agree_on_packets(*c, piece->datagram_bytes);
  }
  proof_.on_piece(*c, *piece);
  if (c->state != State::gone) engine_.touch(*c);
}

GreetingFrame Handshake::greeting(const Connection& c) {
  greeting_.clear();
  wire::Writer out(greeting_);
  encode(out, hello_of(c));
  return {greeting_};
}

void Handshake::on_greeting(Connection& c, const GreetingFrame& frame) {
  if (c.dialler || c.secured == nullptr) return engine_.violation(c, "a greeting that was not asked for");
  if (c.state != State::awaiting_hello) return;  // come again
  const std::optional<Hello> hello = decode_hello(frame.hello);
  if (!hello || hello->secured || hello->cookie) return engine_.violation(c, "malformed greeting");
  // The first hello was not sealed: whoever changed it there has two ends with chunks of two lengths.
  if (std::min(datagram_bytes_, hello->datagram_bytes) != c.datagram_bytes)
    return engine_.violation(c, "a greeting with another length of packets than the hello");
  proof_.greeted(c);
  std::optional<wire::EndNotice> objection = objection_to(*hello);
  const Result<void> admitted = objection ? Result<void>{} : proof_.admit_dialler(c, hello->role);
  if (!admitted) objection = {connection::status_of(admitted.error()), admitted.error().message};
  if (!objection) return requested(c, *hello);
  engine_.counters().add(Counter::hello_rejected);
  static_cast<void>(say_end(c, {connection::Parting::Kind::reject, objection->status, objection->reason}));
  engine_.begin_lingering(c);
}

bool Handshake::say_end(Connection& c, const connection::Parting& parting) {
  if (!c.can_be_told()) return false;
  c.work().end_notice_due = true;
  c.work().farewell =
      std::make_unique<Farewell>(Farewell{.is_reject = parting.kind == connection::Parting::Kind::reject,
                                          .status = parting.status == Status::success ? Status::disconnected : parting.status,
                                          .reason = std::string(parting.reason.substr(0, wire::reason_bytes_max))});
  return true;
}

void Handshake::on_hello_reply(Connection& c, const PacketHeader& header, const HelloReplyFrame& frame) {
  if (c.state != State::hello_sent) return;  // come again
  if (frame.key == 0 || !is_usable(frame.offer, frame.datagram_bytes)) {
    engine_.counters().add(Counter::hello_rejected);
    return engine_.lose(c, Status::version, "the peer's version or limits cannot be used");
  }
  if (c.secured == nullptr) {
    c.remote_index = header.source;
    c.remote_key = frame.key;
    agree_on_packets(c, frame.datagram_bytes);
  } else if (frame.key != c.remote_key || std::min(datagram_bytes_, frame.datagram_bytes) != c.datagram_bytes) {
    // What was said before the proof was somebody else's.
    return engine_.lose(c, Status::version, "the peer's version or limits cannot be used");
  }
  agree(c, frame.offer);
  if (c.secured != nullptr) {
    c.round_trip = std::max(c.rtt.known() ? c.rtt.latest() : Duration{0}, ports::round_trip_min);
  } else if (frame.attempt > 0 && frame.attempt <= c.attempt && c.attempt - frame.attempt < hello_attempts_remembered) {
    c.round_trip =
        std::max(engine_.now() - c.work().dialling->hello_at[frame.attempt % hello_attempts_remembered], ports::round_trip_min);
    c.rtt.sample(c.round_trip);
    c.work().congestion->round_trip(c.rtt.latest(), c.rtt.smoothed(), engine_.now());
  }
  c.work().dialling.reset();
  engine_.answered(c);
}

void Handshake::opened_by_dialler(Connection& c) {
  if (c.state == State::accepting) c.work().accept_due = false;
  engine_.opened_by_dialler(c);
}

// The dialler says hello no more, from wherever it is.
void Handshake::moved(Connection& c, const Address& to) {
  if (!c.dialler) hellos_.end(cookies_.name(c.address, c.remote_index, c.remote_key));
  remember_path(c);
  c.address = to;
  c.rtt = {};
  begin_path(c);
  apply_packet_length(c);
}

void Handshake::released(const Connection& c) {
  remember_path(c);
  proof_.released(c);
  if (!c.dialler) hellos_.end(cookies_.name(c.address, c.remote_index, c.remote_key));
  const Work* work = c.work_if_any();
  if (work == nullptr || work->dialling == nullptr || work->dialling->query == 0) return;
  net_.forget(work->dialling->query);
  by_query_.erase(work->dialling->query);
}

}  // namespace ccixfer::datagram
