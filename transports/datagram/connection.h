// What the datagram transport knows of one connection, beside what every transport does.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/ports/transport.h"
#include "core/reliability/congestion.h"
#include "core/reliability/pacer.h"
#include "core/reliability/path_mtu.h"
#include "core/reliability/receive_ledger.h"
#include "core/reliability/send_ledger.h"
#include "transports/connection/connection.h"
#include "transports/connection/fenced_messages.h"
#include "transports/datagram/datagram_net.h"
#include "transports/datagram/hints.h"
#include "transports/datagram/messages.h"
#include "transports/datagram/path_check.h"
#include "transports/datagram/rma_in.h"
#include "transports/datagram/rma_out.h"
#include "transports/datagram/secured.h"

namespace ccixfer::datagram {

using connection::State;

// What a packet carried: the kinds of reliability::Carried.
enum class Carries : uint8_t {
  ack,  // b: the largest number told
  hello_reply,
  accept,
  end_notice,
  message,       // a: flight, b: sequence, c: part
  message_ack,   // b: version
  write_chunk,   // a: part, b: operation, c: index
  read_request,  // b: operation
  read_chunk,    // a: part, b: operation, c: index
  rma_end,       // b: operation
  mailbox_hint,  // b: mailbox, c: epoch
  greeting,
  path_probe,  // and nothing else
};

struct Dialling {
  uint64_t query = 0;  // the network looks the name up; 0: no more
  std::optional<Cookie> cookie;
  std::array<Instant, hello_attempts_remembered> hello_at{};
  Instant next_hello = never;
  Duration hello_pause = hello_pause_first;
  Instant silence_ends = never;  // nobody answered by then
};

// What is told to the peer at the end.
struct Farewell {
  bool is_reject = false;
  Status status = Status::disconnected;
  std::string reason;
};

// It is one struct because it is one entry of the engine's table: it owns the machines of a connection, which do not know one
// another, and a packet carries something of each.
struct Connection final : connection::Connection {
  using Message = std::vector<std::byte>;

  // The two ends.
  Address address;  // of the peer; it may change
  uint64_t local_key = 0;
  uint32_t remote_index = 0;
  uint32_t attempt = 0;  // dialler: hellos sent; acceptor: the one that it answers
  uint64_t remote_key = 0;

  // Handshake.
  std::unique_ptr<Dialling> dialling;  // of a dial that nobody has answered
  std::unique_ptr<Secured> secured;    // its ends prove who they are
  std::unique_ptr<PathCheck> check;    // whether the peer is elsewhere; nullptr nearly always

  // Packets, small as each connection has them.
  uint16_t datagram_bytes = 0;    // the longest, on which both ends agreed
  uint16_t packet_bytes = 0;      // the longest that content may have now
  uint8_t probe_credit = 0;       // datagrams that go out whatever the window
  bool greeting_due : 1 = false;  // what is to go out: this, and what follows
  bool hello_reply_due : 1 = false;
  bool accept_due : 1 = false;
  bool ping_due : 1 = false;
  bool short_probe_due : 1 = false;  // a packet that any path carries, whatever the window
  bool end_notice_due : 1 = false;
  bool bulk_first : 1 = false;  // whose turn it is in the next packet: RMA's, or the messages'
  bool served_first : 1 = false;
  std::unique_ptr<reliability::PathMtu> path;  // where it is to be found out how long that is
  reliability::SendLedger sent;
  reliability::ReceiveLedger received;
  reliability::RttEstimator rtt;
  std::unique_ptr<reliability::CongestionControl> congestion;
  reliability::Pacer pacer{0, 0};
  Instant pace_at = never;

  std::unique_ptr<Farewell> farewell;  // once the end is to be told

  OutMessages messages;
  connection::FencedMessages<Message> fenced;
  InMessages incoming;
  RmaOut rma;
  RmaIn served;
  std::unique_ptr<HintsOut> hints;  // from the first one on
  std::unique_ptr<HintsIn> peer_hints;

  // What goes out is sealed, and what comes must be.
  [[nodiscard]] bool is_sealed() const { return secured != nullptr && secured->has_keys(); }
  // The peer has named its end, and understands what frames say.
  [[nodiscard]] bool can_be_told() const { return remote_key != 0 && (secured == nullptr || secured->has_keys()); }
};

}  // namespace ccixfer::datagram
