#include "transports/datagram/packet_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/base/units.h"

namespace ccixfer::datagram {
namespace {

template <typename... Kinds>
bool is_one_of(const Frame& frame) {
  return (std::holds_alternative<Kinds>(frame) || ...);
}

bool of_data(const Frame& frame) {
  return is_one_of<MessageFrame, MessagePartFrame, MessageAckFrame, RmaWriteFrame, RmaWriteMoreFrame, RmaReadFrame,
                   RmaReadDataFrame, RmaEndFrame, MailboxHintFrame>(frame);
}

}  // namespace

void PacketReader::on_data(const Address& from, Packet& packet, size_t datagram_size) {
  PacketHeader& header = packet.header;
  Connection* c = engine_.at(header.destination);
  if (c == nullptr || c->state == State::gone || c->local_key != header.key) {
    if (header.is_short) return engine_.counters().add(Counter::datagrams_rejected);
    return outbox_.put_empty(from, {.kind = PacketKind::gone, .destination = header.source, .key = header.key});
  }
  if (!c->has_work()) engine_.touch(*c);  // whatever comes of this packet, it may rest again
  if (header.is_short) {
    if (c->remote_key == 0) return engine_.counters().add(Counter::datagrams_rejected);  // what it leaves out is not known yet
    header.source = c->remote_index;
    header.number = whole_number(static_cast<uint32_t>(header.number), c->work().received.next_newest());
  }
  const bool is_its_kind = (header.kind == PacketKind::sealed) == (c->secured != nullptr);
  const bool is_elsewhere = c->address != from;
  if (!is_its_kind || (is_elsewhere && !Moves::may_move(*c)) || (c->remote_key != 0 && c->remote_index != header.source))
    return engine_.counters().add(Counter::datagrams_rejected);
  if (is_elsewhere && c->secured == nullptr) return on_plain_from_elsewhere(*c, from, packet, datagram_size);
  switch (c->work().received.look(header.number)) {
    case reliability::ReceiveLedger::Verdict::duplicate:
    case reliability::ReceiveLedger::Verdict::too_old:
      return engine_.counters().add(Counter::datagrams_duplicate);
    case reliability::ReceiveLedger::Verdict::fresh:
      break;
  }
  Bytes body = packet.body;
  if (header.kind == PacketKind::sealed) {
    const std::optional<Bytes> frames = open(*c, packet);
    if (!frames) return;
    body = *frames;
  }
  moves_.heard(*c, from, c->work().received.is_newest(header.number), datagram_size);
  Says says;
  if (!may_take(*c, body, says)) return;
  all_had_room_ = true;
  wire::Reader in(body);
  while (in.remaining() > 0 && c->state != State::gone) {
    const std::optional<Frame> frame = decode_frame(in);
    CHECK(frame.has_value());
    on_frame(*c, from, header, *frame);
  }
  if (c->state == State::gone) return;
  // A packet with messages that must come again comes again whole: the rest of it is late then. If such a packet counted for
  // nothing, the message for which others wait might never be taken, as its sender puts it into one packet with later ones.
  // What the packet acknowledged may have made its own number too old to be remembered.
  reliability::ReceiveLedger& received = c->work().received;
  const bool is_fresh = received.look(header.number) == reliability::ReceiveLedger::Verdict::fresh;
  if (all_had_room_ && is_fresh) received.received(header.number, says.asks_for_ack, engine_.now());
  // Copies of a packet that was not taken whole, which anybody can send, are no sign of life. Nor is what a plain peer answers at
  // the address of before while it sends from another: it is not moved, so its content is not taken, and that would be for ever.
  if (all_had_room_ && (c->secured != nullptr || !says.only_of_path)) engine_.heard(*c);
  engine_.touch(*c);
}

std::optional<Bytes> PacketReader::open(Connection& c, const Packet& packet) {
  // It has overtaken what brings the keys, and comes again.
  if (!c.is_sealed()) return std::nullopt;
  std::array<std::byte, packet_head_bytes(true)> header;
  wire::Writer again{MutableBytes(header)};
  begin_packet(again, packet.header);
  const size_t head = packet_head_bytes(true, packet.header.is_short);
  const Bytes sealed = packet.body.first(packet.body.size() - packet_tag_bytes);
  trust::Tag tag;
  std::memcpy(tag.data(), packet.body.last(packet_tag_bytes).data(), tag.size());
  opened_.assign(sealed.begin(), sealed.end());
  if (!c.secured->open(packet.header.number, Bytes(header).first(head), opened_, tag)) {
    engine_.counters().add(Counter::datagrams_rejected);
    return std::nullopt;
  }
  return opened_;
}

bool PacketReader::may_take(Connection& c, Bytes body, Says& says) {
  wire::Reader in(body);
  bool first = true;
  bool asks_path = false;
  described_.clear();
  bool greeted = c.state != State::hello_sent && c.state != State::awaiting_hello;
  bool accepted = greeted && c.state != State::awaiting_accept;
  while (in.remaining() > 0) {
    const std::optional<Frame> frame = decode_frame(in);
    if (!frame) {
      engine_.violation(c, "malformed frame");
      return false;
    }
    first = false;
    const bool is_of_path = is_one_of<PathChallengeFrame, PathAnswerFrame>(*frame);
    says.only_of_path = says.only_of_path && is_of_path;
    if (is_one_of<reliability::Ack>(*frame)) continue;
    if (is_of_path) {
      // Whoever has the keys could have many answers sent to somebody else for one packet.
      if (!std::exchange(asks_path, true)) continue;
      engine_.violation(c, "more than one question of the path");
      return false;
    }
    says.asks_for_ack = true;
    if (is_one_of<HelloReplyFrame, GreetingFrame, EndNoticeFrame>(*frame)) greeted = true;
    if (is_one_of<AcceptFrame>(*frame)) accepted = true;
    // It overtook what must come before it.
    if (!greeted || (of_data(*frame) && !accepted)) return false;
    if (const auto* write = std::get_if<RmaWriteFrame>(&*frame)) described_.push_back(write->operation);
    if (const auto* more = std::get_if<RmaWriteMoreFrame>(&*frame)) {
      const bool is_described = std::find(described_.begin(), described_.end(), more->operation) != described_.end();
      if (!is_described && !c.work().served.knows(more->operation)) return false;
    }
  }
  if (first) engine_.violation(c, "an empty packet");
  return !first && greeted;
}

// Whoever saw a packet in clear knows the key, so what comes from elsewhere is not taken, and not acknowledged, until the peer has
// answered there. Only its answer is looked for.
void PacketReader::on_plain_from_elsewhere(Connection& c, const Address& from, const Packet& packet, size_t datagram_size) {
  const bool is_newest = c.work().received.is_newest(packet.header.number);
  if (is_newest) moves_.heard(c, from, true, datagram_size);
  wire::Reader in(packet.body);
  const std::optional<Frame> frame = decode_frame(in);
  const auto* answer = frame && is_newest ? std::get_if<PathAnswerFrame>(&*frame) : nullptr;
  if (answer == nullptr) {
    engine_.counters().add(Counter::datagrams_rejected);
  } else {
    moves_.on_answer(c, from, *answer);
  }
  engine_.touch(c);
}

void PacketReader::on_frame(Connection& c, const Address& from, const PacketHeader& header, const Frame& frame) {
  if (const auto* ack = std::get_if<reliability::Ack>(&frame)) return outcomes_.acknowledged(c, *ack);
  if (c.state == State::lingering) {
    // The peer said goodbye as well: it needs no more of us than the answer that nobody is here.
    if (is_one_of<EndNoticeFrame>(frame)) engine_.release(c);
    return;
  }
  if (const auto* challenge = std::get_if<PathChallengeFrame>(&frame)) return moves_.on_challenge(c, from, *challenge);
  if (const auto* answer = std::get_if<PathAnswerFrame>(&frame)) return moves_.on_answer(c, from, *answer);
  const bool data = of_data(frame);
  if (data && c.state == State::requested) return engine_.violation(c, "data before the connection was accepted");
  if (data && c.attribute == ports::Attribute::unreliable && !is_one_of<MessageFrame, MessagePartFrame>(frame)) {
    return engine_.violation(c, "a frame that an unreliable connection does not have");
  }
  if (data) c.work().used_at = engine_.now();
  if (data) handshake_.opened_by_dialler(c);
  const auto ended = [&](uint64_t token, ports::OperationResult ending) { engine_.sink().on_completion(c.id, token, ending); };
  if (const auto* reply = std::get_if<HelloReplyFrame>(&frame)) {
    if (!c.dialler) return engine_.violation(c, "a reply to a hello that was not sent");
    handshake_.on_hello_reply(c, header, *reply);
  } else if (const auto* greeting = std::get_if<GreetingFrame>(&frame)) {
    handshake_.on_greeting(c, *greeting);
  } else if (is_one_of<AcceptFrame>(frame)) {
    if (!c.dialler) return engine_.violation(c, "an acceptance that was not asked for");
    if (c.state != State::awaiting_accept) return;
    engine_.accepted_by_peer(c);
  } else if (const auto* notice = std::get_if<EndNoticeFrame>(&frame)) {
    engine_.lose(c, notice->notice.status, printable(notice->notice.reason));
    // So that the peer need not repeat it. It will ask no more: nobody is here.
    outbox_.put_empty(c.address, {.kind = PacketKind::gone, .destination = header.source, .key = c.local_key});
  } else if (const auto* message = std::get_if<MessageFrame>(&frame)) {
    on_message(c, *message);
  } else if (const auto* part = std::get_if<MessagePartFrame>(&frame)) {
    on_message_part(c, *part);
  } else if (const auto* told = std::get_if<MessageAckFrame>(&frame)) {
    const bool fine = c.work().messages.acknowledge(
        *told, engine_.now(), [&](const MessageOwner& owner, Status s) { engine_.message_ended(c, owner, s); });
    if (!fine) engine_.violation(c, "an acknowledgement of a message that was not sent");
  } else if (const auto* write = std::get_if<RmaWriteFrame>(&frame)) {
    if (!c.work().served.write(*write, engine_.target())) engine_.violation(c, "a chunk of an operation that cannot be");
  } else if (const auto* more = std::get_if<RmaWriteMoreFrame>(&frame)) {
    if (!c.work().served.write_more(*more, engine_.target())) engine_.violation(c, "a chunk of an operation that cannot be");
  } else if (const auto* read = std::get_if<RmaReadFrame>(&frame)) {
    if (!c.work().served.read(*read, engine_.target())) engine_.violation(c, "a read that cannot be");
  } else if (const auto* placed = std::get_if<RmaReadDataFrame>(&frame)) {
    if (!c.work().rma.data(*placed, c.work().messages, c.send_timeout, ended))
      engine_.violation(c, "data of a read that was not asked for");
  } else if (const auto* end = std::get_if<RmaEndFrame>(&frame)) {
    if (!c.work().rma.end(*end, c.work().messages, c.send_timeout, ended))
      engine_.violation(c, "the end of an operation that was not begun");
  } else if (const auto* hinted = std::get_if<MailboxHintFrame>(&frame)) {
    if (c.work().peer_hints == nullptr) c.work().peer_hints = std::make_unique<HintsIn>();
    if (c.work().peer_hints->arrived(hinted->number) && !c.left && c.state == State::open)
      engine_.sink().on_mailbox_ready(c.id, hinted->mailbox, hinted->epoch);
  }
}

bool PacketReader::deliver(Connection& c, Bytes bytes) {
  const MutableBytes memory = engine_.sink().on_message_begin(c.id, static_cast<uint32_t>(bytes.size()));
  if (memory.data() == nullptr) return false;
  CHECK(memory.size() >= bytes.size());
  if (!bytes.empty()) std::memcpy(memory.data(), bytes.data(), bytes.size());
  engine_.sink().on_message_end(c.id, true);
  return true;
}

void PacketReader::on_message(Connection& c, const MessageFrame& frame) {
  if (frame.bytes.size() > c.max_send_bytes) return engine_.violation(c, "a message longer than agreed");
  const Arrival arrival = c.work().incoming.arrived(frame, [&](Bytes bytes) { return deliver(c, bytes); });
  if (arrival == Arrival::fault) engine_.violation(c, "a message beyond the window");
  if (arrival == Arrival::no_room) all_had_room_ = false;
}

void PacketReader::on_message_part(Connection& c, const MessagePartFrame& frame) {
  if (frame.total_bytes > c.max_send_bytes) return engine_.violation(c, "a message longer than agreed");
  const Arrival arrival = c.work().incoming.part_arrived(frame, [&](Bytes bytes) { return deliver(c, bytes); });
  if (arrival == Arrival::fault) engine_.violation(c, "a part of a message that cannot be");
  if (arrival == Arrival::no_room) all_had_room_ = false;
}

// The peer restarted, or gave this connection up long ago. Only who saw our packets knows the key.
void PacketReader::on_gone(const Address& from, const Packet& packet) {
  const PacketHeader& header = packet.header;
  Connection* c = engine_.at(header.destination);
  if (c == nullptr || c->remote_key == 0 || c->remote_key != header.key || c->address != from) return;
  if (c->state == State::lingering) return engine_.release(*c);
  engine_.lose(*c, Status::disconnected, "the peer does not know this connection");
}

}  // namespace ccixfer::datagram
