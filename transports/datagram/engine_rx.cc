// What comes in. A packet is looked at whole before any of it takes effect: what cannot be taken now is not acknowledged, and comes
// again.
#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/base/units.h"
#include "transports/datagram/engine.h"

namespace ccixfer::datagram {
namespace {

template <typename... Kinds>
bool is_one_of(const Frame& frame) {
  return (std::holds_alternative<Kinds>(frame) || ...);
}

bool of_data(const Frame& frame) {
  return is_one_of<MessageFrame, MessageAckFrame, RmaWriteFrame, RmaReadFrame, RmaReadDataFrame, RmaEndFrame, MailboxHintFrame>(
      frame);
}

}  // namespace

void Engine::received(const Address& from, Bytes datagram) {
  counters_.add(Counter::bytes_in, datagram.size());
  const std::optional<Packet> packet = open_packet(datagram);
  if (!packet) return counters_.add(Counter::datagrams_rejected);
  if (packet->header.kind == PacketKind::hello) return on_hello(from, *packet, datagram.size());
  if (packet->header.version != packet_version) {
    if (packet->header.kind != PacketKind::refuse) return counters_.add(Counter::datagrams_rejected);
  }
  switch (packet->header.kind) {
    case PacketKind::hello:
      return;
    case PacketKind::retry:
      return on_retry(from, *packet);
    case PacketKind::refuse:
      return on_refuse(from, *packet);
    case PacketKind::data:
      return on_data(from, *packet);
    case PacketKind::gone:
      return on_gone(from, *packet);
  }
}

void Engine::on_data(const Address& from, const Packet& packet) {
  const PacketHeader& header = packet.header;
  Connection* c = connections_.at(header.destination);
  if (c == nullptr || c->state == State::gone || c->local_key != header.key) {
    return put_small(from, {.kind = PacketKind::gone, .destination = header.source, .key = header.key});
  }
  if (c->address != from || (c->remote_key != 0 && c->remote_index != header.source))
    return counters_.add(Counter::datagrams_rejected);
  switch (c->received.look(header.number)) {
    case reliability::ReceiveLedger::Verdict::duplicate:
    case reliability::ReceiveLedger::Verdict::too_old:
      return counters_.add(Counter::datagrams_duplicate);
    case reliability::ReceiveLedger::Verdict::fresh:
      break;
  }
  bool eliciting = false;
  if (!may_take(*c, packet.body, eliciting)) return;
  c->received.received(header.number, eliciting, now_);
  c->last_received = now_;
  c->probes = 0;
  wire::Reader in(packet.body);
  while (in.remaining() > 0 && c->state != State::gone) {
    const std::optional<Frame> frame = decode_frame(in);
    CHECK(frame.has_value());
    on_frame(*c, packet, *frame);
  }
  if (c->state != State::gone) touch(*c);
}

bool Engine::may_take(Connection& c, Bytes body, bool& eliciting) {
  wire::Reader in(body);
  bool first = true;
  bool greeted = c.state != State::hello_sent;
  bool accepted = c.state != State::hello_sent && c.state != State::awaiting_accept;
  while (in.remaining() > 0) {
    const std::optional<Frame> frame = decode_frame(in);
    if (!frame) {
      violation(c, "malformed frame");
      return false;
    }
    if (!is_one_of<reliability::Ack>(*frame)) eliciting = true;
    if (is_one_of<HelloReplyFrame>(*frame)) greeted = true;
    if (is_one_of<AcceptFrame>(*frame)) accepted = true;
    // It overtook what must come before it.
    if (!greeted || (of_data(*frame) && !accepted)) return false;
    if (const auto* message = std::get_if<MessageFrame>(&*frame)) {
      if (!c.incoming.room_for(*message)) return false;
    }
    first = false;
  }
  if (first) violation(c, "an empty packet");
  return !first;
}

void Engine::on_frame(Connection& c, const Packet& packet, const Frame& frame) {
  if (const auto* ack = std::get_if<reliability::Ack>(&frame)) return on_ack(c, *ack);
  if (c.state == State::draining) {
    // The peer said goodbye as well: it needs no more of us than the answer that nobody is here.
    if (is_one_of<FarewellFrame>(frame)) release(c);
    return;
  }
  const bool data = of_data(frame);
  if (data && c.state == State::requested) return violation(c, "data before the connection was accepted");
  if (data && c.attribute == ports::Attribute::unreliable && !is_one_of<MessageFrame>(frame)) {
    return violation(c, "a frame that an unreliable connection does not have");
  }
  if (data) opened_by_dialler(c);
  const auto ended = [&](uint64_t token, ports::Ending ending) { sink_->on_completion(c.id, token, ending); };
  if (const auto* reply = std::get_if<HelloReplyFrame>(&frame)) {
    if (!c.dialler) return violation(c, "a reply to a hello that was not sent");
    on_hello_reply(c, packet.header, *reply);
  } else if (is_one_of<AcceptFrame>(frame)) {
    if (!c.dialler) return violation(c, "an acceptance that was not asked for");
    if (c.state != State::awaiting_accept) return;
    set_state(c, State::open);
    limit_step(c, forever);
    sink_->on_connected(c.id, Status::success, {c.max_send_bytes}, {});
  } else if (const auto* farewell = std::get_if<FarewellFrame>(&frame)) {
    lose(c, farewell->farewell.status, printable(farewell->farewell.reason));
    // So that the peer need not repeat it. It will ask no more: nobody is here.
    put_small(c.address, {.kind = PacketKind::gone, .destination = c.remote_index, .key = c.local_key});
  } else if (const auto* message = std::get_if<MessageFrame>(&frame)) {
    on_message(c, *message);
  } else if (const auto* told = std::get_if<MessageAckFrame>(&frame)) {
    const bool fine = c.messages.acknowledge(*told, now_, [&](const MessageOwner& owner, Status s) { message_ended(c, owner, s); });
    if (!fine) violation(c, "an acknowledgement of a message that was not sent");
  } else if (const auto* write = std::get_if<RmaWriteFrame>(&frame)) {
    if (!c.served.write(*write, *target_)) violation(c, "a fragment of an operation that cannot be");
  } else if (const auto* read = std::get_if<RmaReadFrame>(&frame)) {
    if (!c.served.read(*read, *target_)) violation(c, "a read that cannot be");
  } else if (const auto* placed = std::get_if<RmaReadDataFrame>(&frame)) {
    if (!c.rma.data(*placed, c.messages, c.send_timeout, ended)) violation(c, "data of a read that was not asked for");
  } else if (const auto* end = std::get_if<RmaEndFrame>(&frame)) {
    if (!c.rma.end(*end, c.messages, c.send_timeout, ended)) violation(c, "the end of an operation that was not begun");
  } else if (const auto* hinted = std::get_if<MailboxHintFrame>(&frame)) {
    if (c.peer_hints.arrived(hinted->number) && !c.left && c.state == State::open)
      sink_->on_mailbox_ready(c.id, hinted->mailbox, hinted->epoch);
  }
}

void Engine::on_message(Connection& c, const MessageFrame& frame) {
  if (frame.bytes.size() > c.max_send_bytes) return violation(c, "a message longer than agreed");
  const auto deliver = [&](Bytes bytes) {
    const MutableBytes memory = sink_->on_message_begin(c.id, static_cast<uint32_t>(bytes.size()));
    if (memory.data() == nullptr) return false;
    CHECK(memory.size() >= bytes.size());
    if (!bytes.empty()) std::memcpy(memory.data(), bytes.data(), bytes.size());
    sink_->on_message_end(c.id, true);
    return true;
  };
  if (!c.incoming.arrived(frame, deliver)) violation(c, "a message beyond the window");
}

void Engine::on_ack(Connection& c, const reliability::Ack& ack) {
  outcome_.clear();
  if (!c.sent.acknowledge(ack, now_, c.rtt, outcome_)) {
    counters_.add(Counter::acks_rejected);
    return violation(c, "an acknowledgement of a packet that was not sent");
  }
  learn(c, outcome_);
}

void Engine::learn(Connection& c, reliability::SendLedger::Outcome& outcome) {
  for (const reliability::SentPacket& packet : outcome.acked) {
    c.congestion->acked(packet.bytes, packet.sent_at, packet.limited);
    for (const reliability::Carried& carried : packet.carried) carried_acked(c, carried);
    if (c.state == State::gone) return;
  }
  if (!outcome.lost.empty()) {
    counters_.add(Counter::datagrams_lost, outcome.lost.size());
    if (outcome.timed_out) {
      c.congestion->timed_out();
    } else {
      c.congestion->lost(outcome.lost.back().sent_at, now_);
    }
  }
  for (const reliability::SentPacket& packet : outcome.lost) {
    for (const reliability::Carried& carried : packet.carried) carried_lost(c, carried);
  }
}

void Engine::carried_acked(Connection& c, const reliability::Carried& carried) {
  switch (static_cast<Carries>(carried.kind)) {
    case Carries::ack:
      return c.received.ack_arrived(carried.b);
    case Carries::accept:
      return opened_by_dialler(c);
    case Carries::farewell:
      if (c.state == State::draining) release(c);
      return;
    case Carries::write_fragment:
      if (const auto token = c.rma.fragment_acked(carried.b, carried.c)) sink_->on_local_completion(c.id, *token);
      return;
    case Carries::read_fragment:
      return c.served.fragment_acked(carried.b, carried.c, *target_);
    case Carries::mailbox_hint:
      return c.hints.acked(carried.b);
    case Carries::hello_reply:
    case Carries::message:
    case Carries::message_ack:
    case Carries::read_request:
    case Carries::rma_end:
      return;
  }
}

// It goes out again, if it still matters.
void Engine::carried_lost(Connection& c, const reliability::Carried& carried) {
  switch (static_cast<Carries>(carried.kind)) {
    case Carries::ack:
      return;
    case Carries::hello_reply:
      c.hello_reply_due = c.state == State::requested || c.state == State::accepting;
      return;
    case Carries::accept:
      c.accept_due = c.state == State::accepting || c.state == State::closing;
      return;
    case Carries::farewell:
      c.farewell_due = c.state == State::draining;
      return;
    case Carries::message:
      return c.messages.lost(carried.b, carried.a);
    case Carries::message_ack:
      return c.incoming.lost(carried.b);
    case Carries::write_fragment:
      return c.rma.fragment_lost(carried.b, carried.c);
    case Carries::read_request:
      return c.rma.request_lost(carried.b);
    case Carries::read_fragment:
      return c.served.fragment_lost(carried.b, carried.c);
    case Carries::rma_end:
      return c.served.reply_lost(carried.b);
    case Carries::mailbox_hint:
      return c.hints.lost(carried.b);
  }
}

}  // namespace ccixfer::datagram
