// The routing messages, which travel as ordinary messages on connections of Role::hop, Role::router
// and Role::admin. Pure codecs. Every message begins with kind u8, flags u8, reserved u16 (sent 0,
// ignored). A decoder takes the whole message, distrusts every byte and answers nullopt for anything
// malformed, too long or left over. Encoders append to a vector.
// Bounds: every message but `message` fits into max_send_bytes_floor. All of a connect_request but
// the connect data fits into 256 bytes, when the names are of common length.
// Source: routing §VII.C; routing/transport/README.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/status.h"
#include "core/base/time.h"
#include "core/ports/transport.h"
#include "routing/map/address.h"

namespace ccixfer::routing {

// Why a connection ended, when one of its ends closed it and nothing was wrong.
inline constexpr std::string_view words_of_end = "the peer disconnected";
// How a router begins the reason with which it rejects a connection of a peer that it grants nothing. No other router nearby would
// know better, and no further attempt ends otherwise until somebody changes a configuration.
inline constexpr std::string_view words_of_no_grant = "not authorised: ";

inline constexpr uint8_t hops_max = 8;            // routers a request may cross
inline constexpr uint8_t classes_max = hops_max;  // buffer classes: routers that the data has crossed
inline constexpr size_t destination_bytes_max = 280;
inline constexpr size_t reason_bytes_max = 200;
inline constexpr size_t hop_node_bytes_max = 76;  // longer node names are cut: for people
inline constexpr size_t hop_peer_bytes_max = 18;  // and who answers there: cx1 and three groups of an id
inline constexpr size_t hop_transport_bytes_max = 8;
inline constexpr size_t message_header_bytes = 16;  // before the payload of a routed message
// How many bytes of the application the longest message of a hop can carry.
[[nodiscard]] constexpr uint32_t payload_bytes_max(uint32_t hop_message_bytes) {
  return hop_message_bytes > message_header_bytes ? hop_message_bytes - static_cast<uint32_t>(message_header_bytes) : 0;
}
inline constexpr uint32_t messages_in_flight_max = 64;   // per routed connection and direction, end to end
inline constexpr uint32_t fragments_per_side_max = 256;  // of one routed connection, both directions and kinds, at a router
inline constexpr uint32_t fragment_bytes_floor = 4096;

enum class MessageKind : uint8_t {
  connect_request = 1,
  connect_reply = 2,
  connect_ack = 3,
  message = 4,
  message_ack = 5,
  write_request = 6,
  fragment_ack = 7,
  fragment_released = 8,
  read_request = 9,
  read_reply = 10,
  bye = 11,
  keepalive = 12,
  keepalive_ack = 13,
  // The sender's application watches the far end itself: no hop beyond ends the connection for its
  // silence.
  end_to_end_keepalive = 14,
  draining = 15,         // from a router, to both ends: it stops soon
  connect_pending = 16,  // from a router, to the initiator: the hop that it asked is silent yet
  mailbox_hint = 17,
  // From a router to the next one: what it holds of this connection stands still, and others wait for
  // the buffers.
  others_wait = 18,
  router_hello = 32,
  record = 33,
  map_request = 48,
  map_record = 49,
  map_end = 50,
};
// nullopt: empty, or of no known kind.
[[nodiscard]] std::optional<MessageKind> kind_of(Bytes message);

struct ConnectRequest {
  std::string destination;                      // cci://
  SubnetId source;                              // where the connection begins
  ports::Role role = ports::Role::application;  // end to end
  ports::Attribute attribute = ports::Attribute::reliable_ordered;
  uint8_t crossed = 0;          // routers so far; 0: it comes from the initiator
  uint32_t max_send_bytes = 0;  // minima so far
  uint32_t fragment_bytes = 0;
  Duration timeout = forever;  // what is left of it
  std::vector<std::byte> data;
};
void encode(const ConnectRequest& request, std::vector<std::byte>& out);
[[nodiscard]] std::optional<ConnectRequest> decode_connect_request(Bytes message);

struct ConnectReply {
  Status status = Status::error;
  std::string reason;
  uint32_t max_send_bytes = 0;
  uint32_t fragment_bytes = 0;
  std::vector<ports::HopInfo> hops;  // nearest first; without their fragment_bytes
  uint64_t rate_bits_per_s = 0;      // of the hop that the reply travels on; whole Mb/s on the wire, 0: unknown
};
void encode(const ConnectReply& reply, std::vector<std::byte>& out);
[[nodiscard]] std::optional<ConnectReply> decode_connect_reply(Bytes message);

// `message`: the header goes out before the payload, which is not copied here.
void encode_message_header(uint64_t id, std::vector<std::byte>& out);
struct RoutedMessage {
  uint64_t id = 0;
  Bytes payload;  // a view
};
[[nodiscard]] std::optional<RoutedMessage> decode_message(Bytes message);

// The end-to-end answers; passed on unchanged.
// To messages. `next` is the first one that the far end's endpoint does not have. The status is
// success, or says why that one and all after it are refused: receiver_not_ready, disconnected.
struct MessageAck {
  uint64_t next = 0;
  Status status = Status::error;
};
void encode(const MessageAck& ack, std::vector<std::byte>& out);
[[nodiscard]] std::optional<MessageAck> decode_message_ack(Bytes message);
// To a fragment of a write.
struct FragmentAck {
  uint64_t cookie = 0;
  ports::OperationResult ending;
};
void encode(const FragmentAck& ack, std::vector<std::byte>& out);
[[nodiscard]] std::optional<FragmentAck> decode_fragment_ack(Bytes message);

// To whoever puts, end to end: a buffer is posted where there was none.
struct MailboxHint {
  uint64_t mailbox = 0;
  uint64_t epoch = 0;
};
void encode(const MailboxHint& hint, std::vector<std::byte>& out);
[[nodiscard]] std::optional<MailboxHint> decode_mailbox_hint(Bytes message);

// write_request: one fragment waits behind `exposed` at the asker; where it shall go is `remote`.
// read_request: `remote` and `length_bytes` of one fragment; `exposed` and `data_class` unused.
// read_reply: the fragment that was asked for waits behind `exposed`, or it failed: `ending`.
struct FragmentMessage {
  MessageKind kind = MessageKind::write_request;
  uint64_t cookie = 0;
  uint32_t length_bytes = 0;
  uint8_t data_class = 0;                          // routers that the data has crossed
  ports::OperationResult ending{Status::success};  // read_reply
  ports::Handle exposed;
  ports::RemoteRef remote;
};
void encode(const FragmentMessage& fragment, std::vector<std::byte>& out);
[[nodiscard]] std::optional<FragmentMessage> decode_fragment(Bytes message);

// The memory behind a handle is free: the reader has what it wanted. On this hop only.
struct FragmentReleased {
  uint64_t cookie = 0;
  bool of_read = false;  // it was exposed by a read_reply, not by a write_request
};
void encode(const FragmentReleased& released, std::vector<std::byte>& out);
[[nodiscard]] std::optional<FragmentReleased> decode_fragment_released(Bytes message);

struct Bye {
  Status status = Status::disconnected;
  std::string reason;
};
void encode(const Bye& bye, std::vector<std::byte>& out);
[[nodiscard]] std::optional<Bye> decode_bye(Bytes message);

// Says which hop a connect waits for. Each router passes it on, so what comes last is of the farthest hop. Sent only while a
// connection is made.
struct ConnectPending {
  std::string node;
  bool asked = false;  // the hop has the request and has not answered; false: there is no connection to it yet
  friend bool operator==(const ConnectPending&, const ConnectPending&) = default;
};
void encode(const ConnectPending& pending, std::vector<std::byte>& out);
[[nodiscard]] std::optional<ConnectPending> decode_connect_pending(Bytes message);
[[nodiscard]] std::string words_of(const ConnectPending& pending);  // for the reason of a connect that timed out

// Of the kinds that have no content: connect_ack, keepalive, keepalive_ack, draining,
// end_to_end_keepalive, others_wait, map_request, map_end.
void encode_plain(MessageKind kind, std::vector<std::byte>& out);

// On a connection of Role::admin what `ccixfer ping` sends: zeros, as no routing message is. It asks for nothing.
inline constexpr size_t ping_message_bytes = 64;
[[nodiscard]] bool is_ping(Bytes message);

// First on a connection of Role::router, both ways. `uri` is the sender's device on this subnet.
struct RouterHello {
  uint64_t router = 0;
  SubnetId subnet;
  std::string uri;
};
void encode(const RouterHello& hello, std::vector<std::byte>& out);
[[nodiscard]] std::optional<RouterHello> decode_router_hello(Bytes message);

// record, map_record: the record's own bytes (routing/map/record.h) after the four of the header.
void encode_record_message(MessageKind kind, Bytes record, std::vector<std::byte>& out);
[[nodiscard]] Bytes record_of(Bytes message);

}  // namespace ccixfer::routing
