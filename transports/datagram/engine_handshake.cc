// How connections begin. The acceptor remembers nothing of a hello until the dialler has shown, by its cookie, that it receives at
// the address that the hello names; then at most pending_requests_max that are not decided.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/base/units.h"
#include "transports/datagram/engine.h"

namespace ccixfer::datagram {

using ports::Attribute;

wire::Offer Engine::our_offer() const { return {max_send_bytes(), options_.sends_in_flight_max, options_.rmas_in_flight_max}; }

namespace {

bool sane(const wire::Offer& offer, uint32_t datagram_bytes) {
  return offer.max_send_bytes >= ports::max_send_bytes_floor && offer.sends_in_flight_max > 0 && offer.rmas_in_flight_max > 0 &&
         datagram_bytes >= datagram_bytes_min;
}

}  // namespace

void Engine::agree(Connection& c, const wire::Offer& theirs, uint32_t their_datagram_bytes) {
  const wire::Offer ours = our_offer();
  c.datagram_bytes = std::min(datagram_bytes_, their_datagram_bytes);
  c.max_send_bytes = std::min({ours.max_send_bytes, theirs.max_send_bytes, message_bytes_max(c.datagram_bytes)});
  const uint32_t sends = std::min(ours.sends_in_flight_max, theirs.sends_in_flight_max);
  const uint32_t rmas = std::min(ours.rmas_in_flight_max, theirs.rmas_in_flight_max);
  c.messages.open(sends, c.attribute);
  c.incoming.open(sends, c.attribute, held_bytes_);
  c.rma.open(rmas, fragment_bytes_of(c.datagram_bytes));
  c.served.open(rmas, fragment_bytes_of(c.datagram_bytes), c.id.packed());
  c.congestion = std::make_unique<reliability::NewReno>(c.datagram_bytes);
  c.pacer = reliability::Pacer(uint64_t{burst_datagrams} * c.datagram_bytes);
  if (options_.keepalive > Duration{0} && options_.keepalive != forever) {
    c.keepalive_mode = Keepalive::lose;
    c.keepalive = options_.keepalive;
  }
  c.last_received = c.last_probe = now_;
}

void Engine::resolved(uint64_t query, Status status, const Address& address, std::string_view reason) {
  const auto found = by_query_.find(query);
  if (found == by_query_.end()) return;
  Connection& c = *connections_.at(found->second);
  by_query_.erase(found);
  c.query = 0;
  if (status != Status::success) return lose(c, status, reason);
  c.address = address;
  set_state(c, State::hello_sent);
  c.silence_ends = after(now_, options_.handshake_timeout);
  send_hello(c);
  touch(c);
}

void Engine::send_hello(Connection& c) {
  Hello hello;
  hello.attempt = ++c.attempt;
  hello.role = c.role;
  hello.attribute = c.attribute;
  hello.offer = our_offer();
  hello.datagram_bytes = datagram_bytes_;
  hello.cookie = c.cookie;
  hello.data = c.connect_data;
  out_.clear();
  wire::Writer out(out_);
  begin_packet(out, {PacketKind::hello, packet_version, 0, c.id.index, c.local_key, 0});
  encode(out, hello);
  if (out.position() + packet_check_bytes < hello_bytes_min) out.zeros(hello_bytes_min - packet_check_bytes - out.position());
  end_packet(out);
  put(c.address);
  c.hello_at[hello.attempt % hello_attempts_remembered] = now_;
  c.next_hello = after(now_, c.hello_pause);
  c.hello_pause = std::min(c.hello_pause * 2, hello_pause_max);
}

void Engine::refuse(const Address& from, const PacketHeader& hello, Status status, std::string_view reason) {
  counters_.add(Counter::hello_rejected);
  out_.clear();
  wire::Writer out(out_);
  begin_packet(out, {.kind = PacketKind::refuse, .destination = hello.source, .key = hello.key});
  encode(out, wire::Farewell{status, reason});
  end_packet(out);
  put(from);
}

void Engine::on_hello(const Address& from, const Packet& packet, size_t datagram_size) {
  const PacketHeader& header = packet.header;
  // What is shorter than our answers may be is not answered: nobody is to be flooded in another's name.
  if (datagram_size < hello_bytes_min || header.key == 0) return counters_.add(Counter::hello_rejected);
  if (header.version != packet_version) {
    return refuse(from, header, Status::version,
                  fmt::format("this end speaks version {} of the datagram protocol", packet_version));
  }
  const std::optional<Hello> hello = decode_hello(packet.body);
  if (!hello) return counters_.add(Counter::hello_rejected);
  const HelloName name{from, {header.source, header.key}};
  if (by_hello_.contains(name) || ended_hellos_.contains(name)) return;  // our reply comes again by itself
  const bool proven = hello->cookie && cookies_.holds(*hello->cookie, from, header.source, header.key, now_);
  const bool room = pending_count_ < options_.pending_requests_max && connections_count_ < options_.connections_max;
  if (!proven || !room) {
    out_.clear();
    wire::Writer out(out_);
    begin_packet(out, {.kind = PacketKind::retry, .destination = header.source, .key = header.key});
    encode(out, cookies_.bake(from, header.source, header.key, now_));
    end_packet(out);
    return put(from);
  }
  if (!sane(hello->offer, hello->datagram_bytes)) return refuse(from, header, Status::version, "the hello's limits cannot be used");
  if (hello->attribute == Attribute::multicast_send || hello->attribute == Attribute::multicast_receive) {
    return refuse(from, header, Status::not_implemented, "multicast is not implemented on this transport");
  }
  if (wire::scan_options(hello->options) != wire::OptionScan::fine) {
    return refuse(from, header, Status::version, "the hello demands an option that this end does not know");
  }
  Connection& c = *create(State::requested);
  c.address = from;
  c.remote_index = header.source;
  c.remote_key = header.key;
  c.role = hello->role;
  c.attribute = hello->attribute;
  c.attempt = hello->attempt;
  by_hello_[name] = c.id.index;
  agree(c, hello->offer, hello->datagram_bytes);
  c.hello_reply_due = true;
  touch(c);
  sink_->on_connect_request(c.id, c.role, c.attribute, hello->data);
}

void Engine::on_retry(const Address& from, const Packet& packet) {
  const PacketHeader& header = packet.header;
  Connection* c = connections_.at(header.destination);
  const std::optional<Cookie> cookie = decode_cookie(packet.body);
  if (c == nullptr || c->state != State::hello_sent || c->address != from || c->local_key != header.key || !cookie) return;
  const bool first = !c->cookie;
  c->cookie = cookie;
  c->silence_ends = after(now_, options_.handshake_timeout);  // somebody is there, and perhaps busy
  if (!first) return;
  c->hello_pause = hello_pause_first;
  send_hello(*c);
  touch(*c);
}

void Engine::on_refuse(const Address& from, const Packet& packet) {
  const PacketHeader& header = packet.header;
  Connection* c = connections_.at(header.destination);
  if (c == nullptr || c->state != State::hello_sent || c->address != from || c->local_key != header.key) return;
  wire::Reader in(packet.body);
  const wire::Farewell farewell = decode_farewell(in);
  if (!in.done()) return counters_.add(Counter::frames_rejected);
  lose(*c, farewell.status, printable(farewell.reason));
}

void Engine::on_hello_reply(Connection& c, const PacketHeader& header, const HelloReplyFrame& frame) {
  if (c.state != State::hello_sent) return;  // come again
  if (frame.key == 0 || !sane(frame.offer, frame.datagram_bytes)) {
    counters_.add(Counter::hello_rejected);
    return lose(c, Status::version, "the peer's version or limits cannot be used");
  }
  c.remote_index = header.source;
  c.remote_key = frame.key;
  agree(c, frame.offer, frame.datagram_bytes);
  c.connect_data = {};
  c.next_hello = c.silence_ends = never;
  if (frame.attempt > 0 && frame.attempt <= c.attempt && c.attempt - frame.attempt < hello_attempts_remembered) {
    c.round_trip = std::max(now_ - c.hello_at[frame.attempt % hello_attempts_remembered], ports::round_trip_min);
    c.rtt.sample(c.round_trip);
  }
  set_state(c, State::awaiting_accept);
}

void Engine::opened_by_dialler(Connection& c) {
  if (c.state != State::accepting) return;
  c.accept_due = false;
  if (c.left) return;  // our application has gone meanwhile: leave() comes
  set_state(c, State::open);
  limit_step(c, forever);
  sink_->on_accepted(c.id, Status::success, {c.max_send_bytes});
}

}  // namespace ccixfer::datagram
