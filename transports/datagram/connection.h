// All that the engine knows of one connection, and the life of one.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/ports/transport.h"
#include "core/reliability/congestion.h"
#include "core/reliability/pacer.h"
#include "core/reliability/receive_ledger.h"
#include "core/reliability/send_ledger.h"
#include "transports/datagram/datagram_net.h"
#include "transports/datagram/hints.h"
#include "transports/datagram/messages.h"
#include "transports/datagram/rma_in.h"
#include "transports/datagram/rma_out.h"

namespace ccixfer::datagram {

enum class State : uint8_t {
  resolving,        // dialler: the network looks the name up
  hello_sent,       // dialler: hellos are out
  awaiting_accept,  // dialler: hello_reply came; the peer's application decides
  requested,        // acceptor: our application decides
  accepting,        // acceptor: accept is out; its acknowledgement, or anything that only an open end sends, is awaited
  open,
  closing,   // our application disconnected: what was sent before is being delivered, then bye goes out
  draining,  // over: reject or bye goes out until it is acknowledged; what comes is thrown away
  gone,
};
[[nodiscard]] bool may_follow(State from, State to);
[[nodiscard]] const char* to_string(State state);

// What a packet carried: the kinds of reliability::Carried.
enum class Carries : uint8_t {
  ack,  // b: the largest number told
  hello_reply,
  accept,
  farewell,
  message,         // a: flight, b: sequence
  message_ack,     // b: version
  write_fragment,  // b: operation, c: index
  read_request,    // b: operation
  read_fragment,   // b: operation, c: index
  rma_end,         // b: operation
  mailbox_hint,    // b: mailbox, c: epoch
};

struct Fenced {  // a message that waits for a fence
  uint64_t token = 0;
  std::vector<std::byte> bytes;
  Duration timeout = forever;
  uint64_t operations_before = 0;  // RMAs issued before it
};

enum class Keepalive : uint8_t { off, lose, notify };

struct Connection {
  ports::ConnectionId id;
  State state = State::gone;
  bool dead = false;  // the core was told of its end, or told us: its id means nothing any more
  bool dialler = false;
  bool queued = false;     // in the ready list
  bool cancelled = false;  // disconnect() before there was a connection
  bool left = false;       // disconnect() of an established one, not yet acted upon

  // The two ends.
  Address address;
  uint64_t local_key = 0;
  uint32_t remote_index = 0;
  uint64_t remote_key = 0;

  // Handshake.
  std::string uri;  // dialled
  uint64_t query = 0;
  ports::Role role = ports::Role::application;
  ports::Attribute attribute = ports::Attribute::reliable_ordered;
  std::vector<std::byte> connect_data;
  std::optional<Cookie> cookie;
  uint32_t attempt = 0;  // dialler: hellos sent; acceptor: the one that it answers
  std::array<Instant, hello_attempts_remembered> hello_at{};
  Instant next_hello = never;
  Duration hello_pause = hello_pause_first;
  Instant silence_ends = never;  // dialler: nobody answered by then
  Duration round_trip{0};

  // What both ends agreed on.
  uint32_t datagram_bytes = 0;
  uint32_t max_send_bytes = 0;

  // The state's own time limit; it runs from the first turn after it was set.
  Duration step_timeout = forever;
  bool step_unstamped = false;
  Instant step_deadline = never;

  Keepalive keepalive_mode = Keepalive::off;
  Duration keepalive{0};
  Instant last_received{};
  Instant last_probe{};
  bool keepalive_unstamped = false;  // set_keepalive: it counts from the next turn on, as the last one may be long ago
  uint32_t probes = 0;

  // Packets.
  reliability::SendLedger sent;
  reliability::ReceiveLedger received;
  reliability::RttEstimator rtt;
  std::unique_ptr<reliability::CongestionControl> congestion;
  reliability::Pacer pacer{0};
  uint32_t probe_credit = 0;  // datagrams that go out whatever the window
  Instant pace_at = never;

  // What is to go out.
  bool hello_reply_due = false;
  bool accept_due = false;
  bool ping_due = false;
  bool farewell_due = false;
  bool farewell_is_reject = false;
  Status farewell_status = Status::disconnected;
  std::string farewell_reason;
  bool bulk_first = false;  // whose turn it is in the next packet: RMA's, or the messages'
  bool served_first = false;

  Duration send_timeout = forever;
  OutMessages messages;
  RingBuffer<Fenced> fenced;
  InMessages incoming;
  RmaOut rma;
  RmaIn served;
  HintsOut hints;
  HintsIn peer_hints;
};

}  // namespace ccixfer::datagram
