// What a connection has while something is under way on it: the machines for packets, messages and RMA, and what is to go out. It
// is made when it is first needed, and released when the connection has been quiet for a while (Connection::work,
// Connection::rest). Private to this room.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ports/transport.h"
#include "core/reliability/congestion.h"
#include "core/reliability/pacer.h"
#include "core/reliability/path_mtu.h"
#include "core/reliability/receive_ledger.h"
#include "core/reliability/send_ledger.h"
#include "transports/connection/fenced_messages.h"
#include "transports/datagram/hints.h"
#include "transports/datagram/messages.h"
#include "transports/datagram/path_check.h"
#include "transports/datagram/rma_in.h"
#include "transports/datagram/rma_out.h"

namespace ccixfer::datagram {

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
  mailbox_hint,  // b: number
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

// It is one struct because a packet carries something of each machine, and the machines do not know one another.
struct Work {
  using Message = std::vector<std::byte>;

  std::unique_ptr<Dialling> dialling;  // of a dial that nobody has answered
  std::unique_ptr<PathCheck> check;    // whether the peer is elsewhere; nullptr nearly always
  std::unique_ptr<Farewell> farewell;  // once the end is to be told

  uint8_t probe_credit = 0;       // datagrams that go out whatever the window
  bool greeting_due : 1 = false;  // what is to go out: this, and what follows
  bool hello_reply_due : 1 = false;
  bool accept_due : 1 = false;
  bool ping_due : 1 = false;
  bool ping_alone_due : 1 = false;  // a packet that any path carries, whatever the window
  bool end_notice_due : 1 = false;
  bool bulk_first : 1 = false;  // whose turn it is in the next packet: RMA's, or the messages'
  bool served_first : 1 = false;

  reliability::SendLedger sent;
  reliability::ReceiveLedger received;
  std::unique_ptr<reliability::CongestionControl> congestion;
  reliability::Pacer pacer{0, 0};
  Instant pace_at = never;
  std::unique_ptr<reliability::PathMtu> path;  // where it is to be found out what the path carries

  OutMessages messages;
  connection::FencedMessages<Message> fenced;
  InMessages incoming;
  RmaOut rma;
  RmaIn served;
  std::unique_ptr<HintsOut> hints;  // from the first one on
  std::unique_ptr<HintsIn> peer_hints;

  Instant used_at = Instant::min();  // something else than keepalive went out or came in
  Instant rest_at = never;           // nothing is under way, and the connection rests then

  // Nothing is under way, in either direction.
  [[nodiscard]] bool is_quiet() const;
};

// What is left of that while a connection rests: from where each machine goes on.
struct Resting {
  uint64_t next_packet = 0;
  Instant path_search_at = never;  // PathMtu::raise_at
  uint64_t received_below = 0;     // of the peer's packets none below can be fresh
  OutMessages::Numbers messages;
  InMessages::Numbers incoming;
  uint64_t rma_generation = 0;                      // the highest of ours
  std::unique_ptr<RmaIn::Generations> generations;  // of the peer's; nullptr: it has had none
  uint64_t next_hint = 0;
  uint64_t next_peer_hint = 0;
};

// Of quiet work.
[[nodiscard]] Resting rest(const Work& work);
// Its machines are not open yet.
void go_on(Work& work, Resting& from);

}  // namespace ccixfer::datagram
