#include "transports/datagram/packet_outcomes.h"

#include "transports/datagram/packet_length.h"
#include "transports/datagram/packet_writer.h"

namespace ccixfer::datagram {

void PacketOutcomes::acknowledged(Connection& c, const reliability::Ack& ack) {
  outcome_.clear();
  if (!c.work().sent.acknowledge(ack, engine_.now(), c.rtt, outcome_)) {
    engine_.counters().add(Counter::acks_rejected);
    return engine_.violation(c, "an acknowledgement of a packet that was not sent");
  }
  learn(c);
}

// The congestion control first: what follows for the frames may end the connection.
void PacketOutcomes::learn(Connection& c) {
  learn_path(c, outcome_.acked, outcome_.lost, outcome_.timed_out);
  tell_congestion(c);
  for (const reliability::SentPacket& packet : outcome_.acked) {
    for (const reliability::Carried& carried : packet.carried) carried_acked(c, carried);
    if (c.state == State::gone) return;
  }
  for (const reliability::SentPacket& packet : outcome_.lost) {
    for (const reliability::Carried& carried : packet.carried) carried_lost(c, carried);
  }
}

void PacketOutcomes::tell_congestion(Connection& c) {
  const Instant now = engine_.now();
  const uint64_t in_flight = c.work().sent.in_flight_bytes();
  if (outcome_.round_trip) c.work().congestion->round_trip(c.rtt.latest(), c.rtt.smoothed(), now);
  if (!outcome_.acked.empty()) {
    c.work().congestion->acked({now, outcome_.acked, outcome_.rate, c.work().sent.delivered_bytes(), in_flight});
  }
  if (outcome_.lost.empty()) return;
  engine_.counters().add(Counter::datagrams_lost, outcome_.lost.size());
  if (outcome_.timed_out) {
    c.work().congestion->timed_out();
  } else {
    c.work().congestion->lost({now, outcome_.lost, in_flight});
  }
}

void PacketOutcomes::carried_acked(Connection& c, const reliability::Carried& carried) {
  switch (static_cast<Carries>(carried.kind)) {
    case Carries::ack:
      return c.work().received.ack_arrived(carried.b);
    case Carries::accept:
      if (c.state == State::accepting) c.work().accept_due = false;
      return engine_.opened_by_dialler(c);
    case Carries::end_notice:
      if (c.state == State::lingering) engine_.release(c);
      return;
    case Carries::write_chunk:
      if (const auto token = c.work().rma.chunk_acked(carried.b, {carried.c, carried.a}))
        engine_.sink().on_local_completion(c.id, *token);
      return;
    case Carries::read_chunk:
      return c.work().served.chunk_acked(carried.b, {carried.c, carried.a}, engine_.target());
    case Carries::mailbox_hint:
      return c.work().hints->acked(carried.b);
    case Carries::greeting:
    case Carries::hello_reply:
    case Carries::message:
    case Carries::message_ack:
    case Carries::read_request:
    case Carries::rma_end:
    case Carries::path_probe:
      return;
  }
}

void PacketOutcomes::silence(Connection& c) {
  outcome_.clear();
  c.work().sent.timer(engine_.now(), c.rtt, outcome_);
  // Every other probe of what is open is a ping alone: a path that carries less than it did would show nothing else, and a peer
  // that does not know the connection does not answer a packet of the short form, as chunks have.
  const bool is_open = c.state == State::open || c.state == State::closing;
  const bool is_ping = is_open && c.work().sent.probes() % 2 == 0;
  if (outcome_.probe && is_ping) c.work().ping_alone_due = true;
  if (outcome_.probe && !outcome_.timed_out && !is_ping) {
    for (const reliability::Carried& carried : c.work().sent.oldest()->carried) carried_lost(c, carried);
  }
  learn(c);
  if (!outcome_.probe) return;
  c.work().probe_credit = 1;
  if (!PacketWriter::wants_to_send(c)) c.work().ping_due = c.state != State::lingering;
}

// No sign of congestion, as the path is another one.
void PacketOutcomes::moved(Connection& c) {
  outcome_.clear();
  c.work().sent.abandon(outcome_);
  engine_.counters().add(Counter::datagrams_lost, outcome_.lost.size());
  for (const reliability::SentPacket& packet : outcome_.lost) {
    for (const reliability::Carried& carried : packet.carried) carried_lost(c, carried);
  }
  c.work().probe_credit = 0;
  c.work().ping_alone_due = false;
  c.work().received.tell_again(engine_.now());
}

// It goes out again, if it still matters.
void PacketOutcomes::carried_lost(Connection& c, const reliability::Carried& carried) {
  switch (static_cast<Carries>(carried.kind)) {
    case Carries::ack:
    case Carries::path_probe:
      return;
    case Carries::greeting:
      c.work().greeting_due = c.state == State::hello_sent;
      return;
    case Carries::hello_reply:
      c.work().hello_reply_due = c.state == State::requested || c.state == State::accepting;
      return;
    case Carries::accept:
      c.work().accept_due = c.state == State::accepting || c.state == State::closing;
      return;
    case Carries::end_notice:
      c.work().end_notice_due = c.state == State::lingering;
      return;
    case Carries::message:
      return c.work().messages.lost(carried.b, carried.a, static_cast<uint32_t>(carried.c));
    case Carries::message_ack:
      return c.work().incoming.lost(carried.b);
    case Carries::write_chunk:
      return c.work().rma.chunk_lost(carried.b, {carried.c, carried.a});
    case Carries::read_request:
      return c.work().rma.request_lost(carried.b);
    case Carries::read_chunk:
      return c.work().served.chunk_lost(carried.b, {carried.c, carried.a});
    case Carries::rma_end:
      return c.work().served.reply_lost(carried.b);
    case Carries::mailbox_hint:
      return c.work().hints->lost(carried.b);
  }
}

}  // namespace ccixfer::datagram
