// What goes out: a packet begins with the ack that is wanted, then control, then messages and chunks by turns.
#include "transports/datagram/packet_writer.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::datagram {
namespace {
constexpr uint8_t as(Carries kind) { return static_cast<uint8_t>(kind); }
bool hints_due(Connection& c) { return c.work().hints != nullptr && c.work().hints->due(); }
bool has_window(Connection& c) {
  return c.work().congestion != nullptr && c.work().sent.in_flight_bytes() + c.packet_bytes <= c.work().congestion->window_bytes();
}
}  // namespace

bool PacketWriter::wants_to_send(Connection& c) {
  if (!c.can_be_told()) return false;
  if (c.work().end_notice_due) return true;
  if (c.state == State::lingering) return false;
  return c.work().ping_alone_due || c.work().greeting_due || c.work().hello_reply_due || c.work().accept_due || c.work().ping_due ||
         c.work().incoming.due() || c.work().served.reply_due() || hints_due(c) || c.work().messages.sendable() ||
         c.work().rma.request_due() || c.work().rma.chunk_due() || c.work().served.chunk_due();
}

// What asks for an acknowledgement and is no content: whatever the window, as there is one of each kind in a round trip at most.
void PacketWriter::send_probes(Connection& c) {
  if (c.work().ping_alone_due && c.state != State::lingering) {
    c.work().probe_credit = 0;
    build_probe(c, 0);
  }
  c.work().ping_alone_due = false;
  // Keepalive is no reason to search.
  if (c.work().path == nullptr || c.state != State::open || c.work().ping_due || !wants_to_send(c) || !outbox_.has_room()) return;
  if (const uint32_t bytes = c.work().path->probe_due(engine_.now()); bytes != 0) {
    c.work().path->probe_sent(bytes);
    build_probe(c, bytes);
  }
}

void PacketWriter::transmit(Connection& c) {
  if (c.work().pace_at <= engine_.now()) c.work().pacer.waited(engine_.now());
  c.work().pace_at = never;
  if (outbox_.has_room()) send_probes(c);
  for (uint32_t budget = send_budget_datagrams; outbox_.has_room(); --budget) {
    const bool wants = wants_to_send(c);
    const bool ack = c.work().received.ack_deadline() <= engine_.now() && c.state != State::lingering;
    if (!wants && !ack) {
      c.work().probe_credit = 0;
      if (has_window(c)) c.work().sent.app_limited();
      return;
    }
    bool may = wants;
    if (wants && c.state != State::lingering && c.work().probe_credit == 0) {
      may = has_window(c);
      if (may) {
        const Instant ready = c.work().pacer.ready_at(engine_.now());
        may = ready <= engine_.now();
        if (!may) c.work().pace_at = ready;
      }
    }
    if (!may && !ack) return;
    if (budget == 0) return engine_.touch(c);
    if (!build(c, may) && !wants_to_send(c)) return;  // withdrawn memory leaves an answer instead
  }
  engine_.touch(c);  // the network has no room: when it has, nobody looks for those that waited
}

wire::Writer PacketWriter::begin(Connection& c, bool is_short) {
  return outbox_.begin({c.secured != nullptr ? PacketKind::sealed : PacketKind::data, packet_version, c.remote_index, c.id.index,
                        c.remote_key, c.work().sent.next_number(), is_short});
}

void PacketWriter::build_probe(Connection& c, uint32_t bytes) {
  wire::Writer out = begin(c);
  const size_t tail = packet_tail_bytes(c.secured != nullptr);
  encode(out, PingFrame{});
  if (bytes > 0) encode_padding(out, bytes - tail - out.position());
  close(c, out);
  finish(c, out, true, bytes > 0 ? CarriedFrames{{.kind = as(Carries::path_probe)}} : CarriedFrames{});
}

bool PacketWriter::build(Connection& c, bool eliciting) {
  // A chunk is cut for the short form. Who does not know the connection does not answer to that: pings and goodbyes have the long
  // one, and so has the first word to a dialler, who learns from it what the short form leaves out.
  const bool has_chunks = eliciting && (c.work().rma.chunk_due() || c.work().served.chunk_due());
  const bool is_short = has_chunks && c.state != State::lingering && !c.work().end_notice_due && !c.work().hello_reply_due;
  wire::Writer out = begin(c, is_short);
  const bool seals = c.secured != nullptr;
  const size_t empty = out.position();
  const size_t size_max = c.packet_bytes - packet_tail_bytes(seals);
  CarriedFrames carried;
  if (c.work().received.ack_wanted() && c.state != State::lingering) {
    const reliability::Ack ack = c.work().received.take_ack(engine_.now());
    encode_ack(out, ack, size_max - out.position());
    carried.push_back({.kind = as(Carries::ack), .b = ack.largest()});
  }
  const size_t after_ack = out.position();
  if (eliciting) add_control(c, out, size_max, carried);
  if (eliciting && c.state != State::lingering) {
    if (c.work().bulk_first) add_bulk(c, out, size_max, carried);
    add_messages(c, out, size_max, carried);
    if (!c.work().bulk_first) add_bulk(c, out, size_max, carried);
    c.work().bulk_first = !c.work().bulk_first;
  }
  if (out.position() == empty) return false;
  const bool elicits = out.position() > after_ack;
  if (elicits && c.work().probe_credit > 0) --c.work().probe_credit;  // an ack that has no room behind it probes nothing
  close(c, out, is_short);
  finish(c, out, elicits, std::move(carried));
  return true;
}

void PacketWriter::close(Connection& c, wire::Writer& out, bool is_short) {
  if (c.secured != nullptr) {
    const size_t head = packet_head_bytes(true, is_short);
    const MutableBytes packet = outbox_.begun(out);
    const trust::Tag tag = c.secured->seal(c.work().sent.next_number(), packet.first(head), packet.subspan(head));
    out.bytes(std::as_bytes(std::span(tag)));
  } else {
    end_packet(out);
  }
}

void PacketWriter::finish(Connection& c, wire::Writer& out, bool elicits, CarriedFrames carried) {
  const auto bytes = static_cast<uint32_t>(out.position());
  CHECK(bytes <= c.datagram_bytes);
  const uint64_t in_flight = c.work().sent.in_flight_bytes();
  // Neither keepalive nor what is only acknowledged makes use of it.
  if (!carried.empty() && carried.back().kind != as(Carries::ack) && carried.back().kind != as(Carries::path_probe))
    c.work().used_at = engine_.now();
  const bool limited = 2 * (in_flight + bytes) >= c.work().congestion->window_bytes();
  static_cast<void>(c.work().sent.sent(engine_.now(), bytes, elicits, limited, std::move(carried)));
  if (elicits) {
    c.work().congestion->sent(bytes, in_flight, engine_.now());
    c.work().pacer.sent(bytes, c.work().congestion->pace_bytes_per_s(), engine_.now());
  }
  outbox_.put(c.address, out);
}

void PacketWriter::add_control(Connection& c, wire::Writer& out, size_t size_max, CarriedFrames& carried) {
  const auto fits = [&](size_t bytes) { return out.position() + bytes <= size_max; };
  if (c.work().end_notice_due && fits(end_notice_frame_bytes(c.work().farewell->reason))) {
    encode(out, EndNoticeFrame{c.work().farewell->is_reject, {c.work().farewell->status, c.work().farewell->reason}});
    carried.push_back({.kind = as(Carries::end_notice)});
    c.work().end_notice_due = false;
    return;
  }
  if (c.state == State::lingering) return;
  if (c.work().greeting_due) {
    const GreetingFrame frame = handshake_.greeting(c);
    if (fits(1 + 2 + frame.hello.size())) {
      encode(out, frame);
      carried.push_back({.kind = as(Carries::greeting)});
      c.work().greeting_due = false;
    }
  }
  if (c.work().hello_reply_due && fits(hello_reply_frame_bytes)) {
    encode(out, HelloReplyFrame{c.attempt, c.local_key, engine_.our_offer(), datagram_bytes_});
    carried.push_back({.kind = as(Carries::hello_reply)});
    c.work().hello_reply_due = false;
  }
  if (c.work().accept_due && fits(1)) {
    encode(out, AcceptFrame{});
    carried.push_back({.kind = as(Carries::accept)});
    c.work().accept_due = false;
  }
  if (c.work().ping_due && fits(1)) {
    encode(out, PingFrame{});
    c.work().ping_due = false;
  }
  if (c.work().incoming.due() && fits(c.work().incoming.frame_bytes()))
    carried.push_back(c.work().incoming.take(out, as(Carries::message_ack)));
  while (c.work().served.reply_due() && fits(rma_end_frame_bytes))
    carried.push_back(c.work().served.take_reply(out, as(Carries::rma_end)));
  while (hints_due(c) && fits(mailbox_hint_frame_bytes)) {
    const MailboxHintFrame hint = c.work().hints->take();
    encode(out, hint);
    carried.push_back({.kind = as(Carries::mailbox_hint), .b = hint.number});
  }
  while (c.work().rma.request_due() && fits(rma_read_frame_bytes))
    carried.push_back(c.work().rma.take_request(out, as(Carries::read_request)));
}

void PacketWriter::add_messages(Connection& c, wire::Writer& out, size_t size_max, CarriedFrames& carried) {
  while (c.work().messages.sendable() && out.position() + c.work().messages.next_frame_bytes() <= size_max) {
    carried.push_back(c.work().messages.take(
        out, as(Carries::message), [&](const MessageOwner& owner, Status status) { engine_.message_ended(c, owner, status); }));
  }
}

void PacketWriter::add_bulk(Connection& c, wire::Writer& out, size_t size_max, CarriedFrames& carried) {
  for (unsigned side = 0; side < 2; ++side) {
    c.work().served_first = !c.work().served_first;
    if (c.work().served_first) {
      while (c.work().served.chunk_due() && out.position() + c.work().served.next_chunk_frame_bytes() <= size_max) {
        const auto chunk = c.work().served.take_chunk(out, as(Carries::read_chunk), engine_.target());
        if (chunk) carried.push_back(*chunk);
      }
    } else {
      while (c.work().rma.chunk_due() && out.position() + c.work().rma.next_chunk_frame_bytes() <= size_max) {
        carried.push_back(c.work().rma.take_chunk(out, as(Carries::write_chunk)));
      }
    }
  }
  c.work().served_first = !c.work().served_first;
}

}  // namespace ccixfer::datagram
