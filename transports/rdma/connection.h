// What the RDMA transport knows of one connection, beside what every transport does.
#pragma once
#include <memory>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/wire/rma_frames.h"
#include "transports/connection/connection.h"
#include "transports/connection/fenced_messages.h"
#include "transports/connection/rma_initiator.h"
#include "transports/rdma/credits.h"
#include "transports/rdma/rdma_net.h"
#include "transports/rdma/rma_in.h"
#include "transports/rdma/secured.h"

namespace ccixfer::rdma {

using connection::RmaInitiator;
using connection::State;
using reliability::MessageBytes;
using reliability::MessageOwner;
using reliability::MessageReceiver;
using reliability::MessageSender;

// It is one struct because it is one entry of the engine's table: it owns the machines of a connection, which do not know one
// another, and the one pair that they share.
struct Connection final : connection::Connection {
  using Message = MessageBytes;

  PairId pair = 0;         // 0: it is closed
  bool withdrawn = false;  // its pair was closed, as memory had to be taken away from it
  bool blocked = false;    // the net takes nothing until it says so
  bool ack_held = false;   // an acknowledgement waits one turn for an answer to ride with
  bool probe_due = false;
  bool probe_answer_due = false;
  bool waits_for_staging = false;
  uint32_t pieces = 0;   // of the peer's operations, that our card has
  uint32_t exposed = 0;  // operations of ours whose memory the peer's card may use
  uint32_t burst = 0;    // messages issued since there was none on its way
  Instant hello_at{};    // dialler: when it went out

  Credits credits;
  MessageSender messages;
  connection::FencedMessages<MessageBytes> fenced;
  MessageReceiver incoming;
  RmaInitiator rma;
  RmaIn served;
  std::unique_ptr<RingBuffer<wire::MailboxHint>> hints;  // to be sent; from the first one on
  uint64_t received_bytes = 0;
  uint64_t delivered_bytes = 0;

  std::unique_ptr<std::vector<std::byte>> greeting;  // encoded frames of the handshake, and bye, that are to go out
  std::unique_ptr<std::vector<std::byte>> unsent;    // a packet that the net had no room for, sealed or not
  std::unique_ptr<Secured> secured;                  // its ends prove who they are: from the first frame of the handshake on

  // What goes out is sealed, and what comes must be.
  [[nodiscard]] bool is_sealed() const { return secured != nullptr && secured->has_keys(); }
  [[nodiscard]] bool proof_due() const { return secured != nullptr && secured->has_output(); }
};

}  // namespace ccixfer::rdma
