#include "routing/transport/messages.h"

#include <algorithm>
#include <array>

#include "core/wire/cursor.h"
#include "core/wire/remote_ref.h"

namespace ccixfer::routing {
namespace {

constexpr size_t hops_listed_max = hops_max + 1;
constexpr uint8_t flag_of_read = 1;

wire::Writer begin(MessageKind kind, std::vector<std::byte>& out, uint8_t flags = 0) {
  wire::Writer writer(out);
  writer.u8(static_cast<uint8_t>(kind));
  writer.u8(flags);
  writer.u16(0);
  return writer;
}

// Reads the header; the flags are given back.
uint8_t begin(wire::Reader& in, MessageKind expected) {
  in.require(in.u8() == static_cast<uint8_t>(expected));
  const uint8_t flags = in.u8();
  in.skip(2);
  return flags;
}

Status status_of(wire::Reader& in) {
  const uint8_t value = in.u8();
  in.require(is_known_status(value));
  return in.ok() ? static_cast<Status>(value) : Status::error;
}

std::string_view cut(std::string_view text, size_t bytes_max) { return text.substr(0, bytes_max); }

// Durations on the wire: nanoseconds, 0 for `forever`.
void put_duration(wire::Writer& out, Duration value) {
  out.u64(value == forever ? 0 : static_cast<uint64_t>(std::max<int64_t>(value.count(), 1)));
}
Duration duration_of(wire::Reader& in) {
  const uint64_t value = in.u64();
  if (value == 0 || value >= static_cast<uint64_t>(forever.count())) return forever;
  return Duration(static_cast<int64_t>(value));
}

// Rates: whole Mb/s, rounded up, so that the longest reply fits into a message; 0: unknown.
constexpr uint64_t bits_of_rate_unit = 1'000'000;
void put_rate(wire::Writer& out, uint64_t rate_bits_per_s) {
  const uint64_t units = rate_bits_per_s / bits_of_rate_unit + (rate_bits_per_s % bits_of_rate_unit != 0 ? 1 : 0);
  out.u32(static_cast<uint32_t>(std::min<uint64_t>(units, UINT32_MAX)));
}
uint64_t rate_of(wire::Reader& in) { return uint64_t{in.u32()} * bits_of_rate_unit; }

// How a hop is protected, as a number; what this version does not know is shown as something.
constexpr std::array<std::string_view, 4> protections = {"", "aes-256-gcm", "chacha20-poly1305", "sealed"};
uint8_t number_of_protection(std::string_view name) {
  const auto found = std::find(protections.begin(), protections.end(), name);
  return static_cast<uint8_t>(found == protections.end() ? protections.size() - 1 : size_t(found - protections.begin()));
}

// Who answers at each hop and how it is protected, behind all hops. Where nothing is proved, it is left out.
void put_identities(wire::Writer& out, const std::vector<ports::HopInfo>& hops, size_t count) {
  const auto is_plain = [](const ports::HopInfo& hop) { return hop.peer.empty() && hop.protection.empty(); };
  if (std::all_of(hops.begin(), hops.end(), is_plain)) return;
  for (size_t i = 0; i < count; ++i) {
    out.u8(number_of_protection(hops[i].protection));
    out.text16(cut(hops[i].peer, hop_peer_bytes_max));
  }
}
void take_identities(wire::Reader& in, std::vector<ports::HopInfo>& hops) {
  for (ports::HopInfo& hop : hops) {
    hop.protection = protections[std::min<size_t>(in.u8(), protections.size() - 1)];
    hop.peer = in.text16(hop_peer_bytes_max);
  }
}

}  // namespace

bool is_ping(Bytes message) {
  return message.size() == ping_message_bytes &&
         std::all_of(message.begin(), message.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

std::optional<MessageKind> kind_of(Bytes message) {
  if (message.empty()) return std::nullopt;
  const auto value = std::to_integer<uint8_t>(message[0]);
  const bool known = (value >= 1 && value <= 18) || value == 32 || value == 33 || (value >= 48 && value <= 50);
  if (!known) return std::nullopt;
  return static_cast<MessageKind>(value);
}

void encode(const ConnectRequest& request, std::vector<std::byte>& out) {
  wire::Writer writer = begin(MessageKind::connect_request, out);
  writer.u8(static_cast<uint8_t>(request.role));
  writer.u8(static_cast<uint8_t>(request.attribute));
  writer.u8(request.crossed);
  writer.u8(0);
  writer.u32(request.source.as);
  writer.u32(request.source.subnet);
  writer.u32(request.max_send_bytes);
  writer.u32(request.fragment_bytes);
  put_duration(writer, request.timeout);
  writer.text16(request.destination);
  writer.bytes16(request.data);
}

std::optional<ConnectRequest> decode_connect_request(Bytes message) {
  wire::Reader in(message);
  begin(in, MessageKind::connect_request);
  ConnectRequest request;
  const uint8_t role = in.u8();
  const uint8_t attribute = in.u8();
  in.require(role <= static_cast<uint8_t>(ports::Role::admin) &&
             attribute <= static_cast<uint8_t>(ports::Attribute::multicast_receive));
  request.crossed = in.u8();
  in.skip(1);
  request.source.as = in.u32();
  request.source.subnet = in.u32();
  request.max_send_bytes = in.u32();
  request.fragment_bytes = in.u32();
  in.require(request.fragment_bytes >= fragment_bytes_floor && request.max_send_bytes > 0);
  request.timeout = duration_of(in);
  request.destination = in.text16(destination_bytes_max);
  const Bytes data = in.bytes16(ports::connect_data_bytes_max);
  if (!in.done()) return std::nullopt;
  request.role = static_cast<ports::Role>(role);
  request.attribute = static_cast<ports::Attribute>(attribute);
  request.data.assign(data.begin(), data.end());
  return request;
}

void encode(const ConnectReply& reply, std::vector<std::byte>& out) {
  wire::Writer writer = begin(MessageKind::connect_reply, out);
  writer.u8(static_cast<uint8_t>(reply.status));
  const size_t count = std::min(reply.hops.size(), hops_listed_max);
  writer.u8(static_cast<uint8_t>(count));
  writer.u16(0);
  writer.u32(reply.max_send_bytes);
  writer.u32(reply.fragment_bytes);
  put_rate(writer, reply.rate_bits_per_s);
  writer.text16(cut(reply.reason, reason_bytes_max));
  for (size_t i = 0; i < count; ++i) {
    const ports::HopInfo& hop = reply.hops[i];
    writer.u32(hop.as);
    writer.u32(hop.subnet);
    put_rate(writer, hop.rate_bits_per_s);
    writer.u64(static_cast<uint64_t>(std::max<int64_t>(hop.round_trip.count(), 0)));
    writer.text16(cut(hop.transport, hop_transport_bytes_max));
    writer.text16(cut(hop.node, hop_node_bytes_max));
  }
  put_identities(writer, reply.hops, count);
}

std::optional<ConnectReply> decode_connect_reply(Bytes message) {
  wire::Reader in(message);
  begin(in, MessageKind::connect_reply);
  ConnectReply reply;
  reply.status = status_of(in);
  const uint8_t count = in.u8();
  in.require(count <= hops_listed_max);
  in.skip(2);
  reply.max_send_bytes = in.u32();
  reply.fragment_bytes = in.u32();
  reply.rate_bits_per_s = rate_of(in);
  in.require(reply.status != Status::success || (reply.fragment_bytes >= fragment_bytes_floor && reply.max_send_bytes > 0));
  reply.reason = in.text16(reason_bytes_max);
  for (uint8_t i = 0; i < count && in.ok(); ++i) {
    ports::HopInfo hop;
    hop.as = in.u32();
    hop.subnet = in.u32();
    hop.rate_bits_per_s = rate_of(in);
    const uint64_t round_trip = in.u64();
    in.require(round_trip <= static_cast<uint64_t>(forever.count()));
    hop.round_trip = Duration(static_cast<int64_t>(round_trip));
    hop.transport = in.text16(hop_transport_bytes_max);
    hop.node = in.text16(hop_node_bytes_max);
    reply.hops.push_back(std::move(hop));
  }
  if (in.remaining() > 0) take_identities(in, reply.hops);
  if (!in.done()) return std::nullopt;
  return reply;
}

void encode_message_header(uint64_t id, std::vector<std::byte>& out) {
  wire::Writer writer = begin(MessageKind::message, out);
  writer.u32(0);  // the payload stays 8-byte aligned
  writer.u64(id);
}

std::optional<RoutedMessage> decode_message(Bytes message) {
  wire::Reader in(message);
  begin(in, MessageKind::message);
  in.skip(4);
  RoutedMessage routed;
  routed.id = in.u64();
  routed.payload = in.rest();
  if (!in.ok()) return std::nullopt;
  return routed;
}

void encode(const MessageAck& ack, std::vector<std::byte>& out) {
  wire::Writer writer = begin(MessageKind::message_ack, out);
  writer.u8(static_cast<uint8_t>(ack.status));
  writer.zeros(3);
  writer.u64(ack.next);
}

std::optional<MessageAck> decode_message_ack(Bytes message) {
  wire::Reader in(message);
  begin(in, MessageKind::message_ack);
  MessageAck ack;
  ack.status = status_of(in);
  in.skip(3);
  ack.next = in.u64();
  if (!in.done()) return std::nullopt;
  return ack;
}

void encode(const FragmentAck& ack, std::vector<std::byte>& out) {
  wire::Writer writer = begin(MessageKind::fragment_ack, out);
  writer.u8(static_cast<uint8_t>(ack.ending.status));
  writer.zeros(3);
  writer.u64(ack.cookie);
  writer.u64(ack.ending.detail);
}

std::optional<FragmentAck> decode_fragment_ack(Bytes message) {
  wire::Reader in(message);
  begin(in, MessageKind::fragment_ack);
  FragmentAck ack;
  ack.ending.status = status_of(in);
  in.skip(3);
  ack.cookie = in.u64();
  ack.ending.detail = in.u64();
  if (!in.done()) return std::nullopt;
  return ack;
}

void encode(const MailboxHint& hint, std::vector<std::byte>& out) {
  wire::Writer writer = begin(MessageKind::mailbox_hint, out);
  writer.u32(0);
  writer.u64(hint.mailbox);
  writer.u64(hint.epoch);
}

std::optional<MailboxHint> decode_mailbox_hint(Bytes message) {
  wire::Reader in(message);
  begin(in, MessageKind::mailbox_hint);
  in.skip(4);
  MailboxHint hint;
  hint.mailbox = in.u64();
  hint.epoch = in.u64();
  if (!in.done()) return std::nullopt;
  return hint;
}

void encode(const FragmentMessage& fragment, std::vector<std::byte>& out) {
  wire::Writer writer = begin(fragment.kind, out);
  writer.u8(static_cast<uint8_t>(fragment.ending.status));
  writer.u8(fragment.data_class);
  writer.u16(0);
  writer.u32(fragment.length_bytes);
  writer.u32(0);
  writer.u64(fragment.cookie);
  if (fragment.kind == MessageKind::read_reply) writer.u64(fragment.ending.detail);
  if (fragment.kind != MessageKind::read_request) wire::encode(writer, fragment.exposed);
  if (fragment.kind != MessageKind::read_reply) wire::encode(writer, fragment.remote);
}

std::optional<FragmentMessage> decode_fragment(Bytes message) {
  const auto kind = kind_of(message);
  if (kind != MessageKind::write_request && kind != MessageKind::read_request && kind != MessageKind::read_reply)
    return std::nullopt;
  wire::Reader in(message);
  begin(in, *kind);
  FragmentMessage fragment;
  fragment.kind = *kind;
  fragment.ending.status = status_of(in);
  fragment.data_class = in.u8();
  in.skip(2);
  fragment.length_bytes = in.u32();
  in.skip(4);
  fragment.cookie = in.u64();
  if (fragment.kind == MessageKind::read_reply) fragment.ending.detail = in.u64();
  if (fragment.kind != MessageKind::read_request) fragment.exposed = wire::decode_handle(in);
  if (fragment.kind != MessageKind::read_reply) fragment.remote = wire::decode_remote_ref(in);
  const bool has_data = fragment.kind != MessageKind::read_reply || fragment.ending.good();
  in.require(fragment.data_class < classes_max + 1 && (!has_data || fragment.length_bytes > 0));
  if (!in.done()) return std::nullopt;
  return fragment;
}

void encode(const FragmentReleased& released, std::vector<std::byte>& out) {
  wire::Writer writer = begin(MessageKind::fragment_released, out, released.of_read ? flag_of_read : 0);
  writer.u32(0);
  writer.u64(released.cookie);
}

std::optional<FragmentReleased> decode_fragment_released(Bytes message) {
  wire::Reader in(message);
  FragmentReleased released;
  released.of_read = (begin(in, MessageKind::fragment_released) & flag_of_read) != 0;
  in.skip(4);
  released.cookie = in.u64();
  if (!in.done()) return std::nullopt;
  return released;
}

void encode(const Bye& bye, std::vector<std::byte>& out) {
  wire::Writer writer = begin(MessageKind::bye, out);
  writer.u8(static_cast<uint8_t>(bye.status));
  writer.text16(cut(bye.reason, reason_bytes_max));
}

std::optional<Bye> decode_bye(Bytes message) {
  wire::Reader in(message);
  begin(in, MessageKind::bye);
  Bye bye;
  bye.status = status_of(in);
  bye.reason = in.text16(reason_bytes_max);
  if (!in.done()) return std::nullopt;
  return bye;
}

void encode(const ConnectPending& pending, std::vector<std::byte>& out) {
  wire::Writer writer = begin(MessageKind::connect_pending, out);
  writer.text16(cut(pending.node, hop_node_bytes_max));
  writer.u8(pending.asked ? 1 : 0);
}

std::optional<ConnectPending> decode_connect_pending(Bytes message) {
  wire::Reader in(message);
  begin(in, MessageKind::connect_pending);
  ConnectPending pending;
  pending.node = in.text16(hop_node_bytes_max);
  pending.asked = in.u8() != 0;
  if (!in.done()) return std::nullopt;
  return pending;
}

std::string words_of(const ConnectPending& pending) {
  return pending.node + " does not answer: " + (pending.asked ? "it has the request" : "no connection to it comes about");
}

void encode_plain(MessageKind kind, std::vector<std::byte>& out) { static_cast<void>(begin(kind, out)); }

void encode(const RouterHello& hello, std::vector<std::byte>& out) {
  wire::Writer writer = begin(MessageKind::router_hello, out);
  writer.u64(hello.router);
  writer.u32(hello.subnet.as);
  writer.u32(hello.subnet.subnet);
  writer.text16(cut(hello.uri, destination_bytes_max));
}

std::optional<RouterHello> decode_router_hello(Bytes message) {
  wire::Reader in(message);
  begin(in, MessageKind::router_hello);
  RouterHello hello;
  hello.router = in.u64();
  hello.subnet.as = in.u32();
  hello.subnet.subnet = in.u32();
  hello.uri = in.text16(destination_bytes_max);
  if (!in.done()) return std::nullopt;
  return hello;
}

void encode_record_message(MessageKind kind, Bytes record, std::vector<std::byte>& out) {
  wire::Writer writer = begin(kind, out);
  writer.bytes(record);
}

Bytes record_of(Bytes message) { return message.size() < 4 ? Bytes{} : message.subspan(4); }

}  // namespace ccixfer::routing
