// All that the engine knows of one connection.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/ports/transport.h"
#include "core/wire/connection_frames.h"
#include "transports/stream/out_batch.h"
#include "transports/stream/pace.h"
#include "transports/stream/rma_initiator.h"
#include "transports/stream/rma_responder.h"
#include "transports/stream/state.h"
#include "transports/stream/stream_net.h"

namespace ccixfer::stream {

enum class Payload : uint8_t { none, message, dropped, write, read };

struct Receiving {
  std::vector<std::byte> pending;  // the beginning of a header
  Payload payload = Payload::none;
  uint64_t rest_bytes = 0;  // of the payload
  MutableBytes message;     // the endpoint's memory
  size_t message_at = 0;
  uint32_t message_check = 0;
  bool refused = false;  // dropped, and for want of a buffer
  uint32_t slot = 0;     // write, read
  bool through = false;  // the last payload of a read went into a conduit: no more than a header is read before the next one
  bool within = false;   // the last read of which a payload came is not complete
};

struct Fenced {  // a message that waits for a fence
  uint64_t token = 0;
  MessageBytes bytes;
  Duration timeout = forever;
  uint64_t operations_before = 0;  // RMAs issued before it
};

enum class Keepalive : uint8_t { off, lose, notify };

struct Connection {
  ports::ConnectionId id;
  StreamId stream = 0;
  State state = State::gone;
  bool dead = false;  // the core was told of its end, or told us: its id means nothing any more
  bool readable = false;
  bool broken = false;     // sending failed: it ends once all that came was read
  bool blocked = false;    // the network took no more
  bool queued = false;     // in the ready list
  bool cancelled = false;  // disconnect() before there was a connection
  uint32_t burst = 0;      // messages issued since there was none on its way
  bool ack_held = false;   // an acknowledgement waits one turn for an answer to ride with
  bool left = false;       // disconnect() of an established one, not yet acted upon
  bool unreliable = false;

  // Handshake.
  std::string uri;  // dialled; of an accepted one the peer's, for people
  ports::Role role = ports::Role::application;
  ports::Attribute attribute = ports::Attribute::reliable_ordered;
  std::vector<std::byte> connect_data;
  uint32_t max_send_bytes = 0;
  Instant hello_at{};
  Duration round_trip{0};

  Instant accepted_at{};

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
  bool probe_due = false;
  bool probe_answer_due = false;

  Duration send_timeout = forever;
  MessageSender messages;
  RingBuffer<Fenced> fenced;
  MessageReceiver incoming;
  RmaInitiator rma;
  RmaResponder served;
  RingBuffer<uint32_t> writes;          // slots with a chunk to send, in order
  RingBuffer<uint32_t> waiting_writes;  // slots whose next chunk has not arrived yet, until resume()
  RingBuffer<uint32_t> read_requests;   // slots whose rma_read is to be sent
  RingBuffer<wire::MailboxHint> hints;  // to be sent
  // What the network took so far, and how far memory of ours was lent among it: our own writes (the peer's reads: `served`).
  bool lends = false;
  uint64_t given_bytes = 0;
  uint64_t received_bytes = 0;
  uint64_t lent_until = 0;
  // Somebody waits for memory that the peer's reads lent: since when, and the last progress.
  Instant owed_since = never;
  Instant owed_progress_at{};
  uint64_t owed_acknowledged = 0;
  bool served_next = false;  // whose chunk is next, a write of ours or a read of the peer's

  Receiving rx;
  Pace going;
  std::vector<std::byte> handshake_out;  // encoded frames of the handshake, and bye
  std::unique_ptr<OutBatch> batch;
  bool bye_queued = false;
};

}  // namespace ccixfer::stream
