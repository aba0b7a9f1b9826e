// What the stream transport knows of one connection, beside what every transport does.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ports/transport.h"
#include "core/wire/connection_frames.h"
#include "transports/connection/connection.h"
#include "transports/connection/fenced_messages.h"
#include "transports/connection/rma_initiator.h"
#include "transports/stream/out_batch.h"
#include "transports/stream/pace.h"
#include "transports/stream/rma_responder.h"
#include "transports/stream/secured.h"
#include "transports/stream/stream_net.h"

namespace ccixfer::stream {

using connection::State;

using connection::RmaInitiator;
using reliability::copy_message;
using reliability::MessageBytes;
using reliability::MessageOwner;
using reliability::MessageReceiver;
using reliability::MessageSender;

enum class Payload : uint8_t { none, message, dropped, write, read };

struct Receiving {
  std::vector<std::byte> pending;  // the beginning of a header
  uint64_t rest_bytes = 0;         // of the payload
  MutableBytes message;            // the endpoint's memory, as long as the message
  uint32_t message_check = 0;
  uint32_t slot = 0;  // write, read
  Payload payload = Payload::none;
  bool refused = false;  // the message is dropped because there is no buffer for it
  bool through = false;  // the last payload of a read went into a splice pipe, so only the next header is read into memory
  bool within = false;   // the read to which the last payload belonged is not complete
};

// Kept while somebody waits for memory that was lent for the peer's reads.
struct Owed {
  Instant since{};
  Instant progress_at{};  // when the peer acknowledged something last
  uint64_t acknowledged_bytes = 0;
};

// It is one struct because it is one entry of the engine's table: it owns the machines of a connection, which do not know one
// another, and the one stream that they share.
struct Connection final : connection::Connection {
  using Message = MessageBytes;

  StreamId stream = 0;
  bool readable = false;
  bool broken = false;    // sending failed: it ends once all that came was read
  bool blocked = false;   // the network took no more
  bool ack_held = false;  // an acknowledgement waits one turn for an answer to ride with
  bool probe_due = false;
  bool probe_answer_due = false;
  bool bye_queued = false;
  bool lends = false;
  bool hello_due = false;    // the dialler's proof is done, and its hello is to go out
  bool served_next = false;  // whose turn the last chunk was: a read of the peer's; false: a write of ours
  uint32_t burst = 0;        // messages issued since there was none on its way
  Instant hello_at{};        // when the dialler's hello went out, or the acceptor's stream came

  MessageSender messages;
  connection::FencedMessages<MessageBytes> fenced;
  MessageReceiver incoming;
  RmaInitiator rma;
  RmaResponder served;
  std::unique_ptr<RingBuffer<wire::MailboxHint>> hints;  // to be sent; from the first one on
  uint64_t given_bytes = 0;                              // that the network took so far
  uint64_t received_bytes = 0;
  // Up to this byte of given_bytes the network may refer to memory that our own writes lent it. `served` knows the same of reads.
  uint64_t lent_until = 0;
  std::unique_ptr<Owed> owed;

  Receiving rx;
  Pace going;
  std::unique_ptr<std::vector<std::byte>> handshake_out;  // encoded frames of the handshake, and bye, that are to go out
  std::unique_ptr<OutBatch> batch;
  std::unique_ptr<Secured> secured;  // its ends prove who they are: from the first frame of the handshake on

  // Whether the connection keeps the hello that it was accepted with, unanswered: it is about to move to another transport, or has
  // just moved here. The hello stands in connect_data, which only a dialler needs otherwise, so that it costs other connections
  // nothing.
  [[nodiscard]] bool keeps_hello() const { return !dialler && connect_data != nullptr; }
  void keep_hello(std::vector<std::byte> hello) { connect_data = std::make_unique<std::vector<std::byte>>(std::move(hello)); }
  [[nodiscard]] std::vector<std::byte> take_hello() { return std::move(*std::exchange(connect_data, nullptr)); }

  // What goes out is sealed, and what comes must be.
  [[nodiscard]] bool is_sealed() const { return secured != nullptr && secured->has_keys(); }
};

}  // namespace ccixfer::stream
