// What a transport asks of the memory at the target of an RMA. Implemented by core/cci (regions) with core/rvma
// (mailboxes); one object serves every transport of an endpoint, the routed ones included.
//
// Contract: the transport brackets every fragment with begin/end and asks for the memory again at every call: it holds a
// Ticket between turns, never an address. A revoked ticket (deregistered region, closed mailbox) gives an empty span: the
// transport then discards the bytes and reports what end_write answers. Single-threaded: called within turn() only.
// Source: core/README.md 'ports'; RVMA §III.B; core/rvma/README.md.
#pragma once
#include <cstdint>
#include <optional>

#include "core/base/bytes.h"
#include "core/base/status.h"
#include "core/ports/fill_progress.h"
#include "core/ports/handle.h"
#include "core/ports/operation_result.h"

namespace ccixfer::ports {

// Which RVMA operation a write to a mailbox belongs to. `source` is the initiator's random incarnation (one per end-to-end
// connection, stable through routers); (source, operation) names the put; fragments of one put share both.
struct PutOperation {
  static constexpr uint64_t any_epoch = ~uint64_t{0};
  uint64_t source = 0;
  uint64_t operation = 0;
  uint64_t epoch = any_epoch;      // expected epoch; mismatch: mailbox_stale, or mailbox_empty when it is yet to come
  uint64_t base_offset_bytes = 0;  // where the put starts in the buffer
  uint64_t total_bytes = 0;        // whole length of the put; 0: this fragment is the whole put
};

struct RemoteRef {
  Handle handle;
  uint64_t offset_bytes = 0;  // of this fragment, absolute in the region or in the mailbox's buffer
  PutOperation put;           // meaningful for mailboxes only
};

struct Ticket {
  uint32_t index = 0;
  uint32_t generation = 0;
};

struct Admission {
  Status status = Status::error;  // success: the ticket holds until end_*
  Ticket ticket;
  bool already_placed = false;  // a duplicate of a placed fragment: discard the bytes and acknowledge ending(), no end_write
  uint64_t detail = OperationResult::none;
  [[nodiscard]] OperationResult ending() const { return {status, detail}; }  // what to answer, if there is no end_write
};

// A buffer is posted where there was none when a put of this connection was refused for it.
struct Hint {
  uint64_t connection = 0;  // as given to begin_write
  uint64_t mailbox = 0;     // the number that the put was sent to
  uint64_t epoch = 0;       // of the buffer
};

// Whoever lends memory of reads, see RmaTarget::lend.
class Lender {
 public:
  virtual void settle() = 0;  // end_read now what the network refers to no more
  // Its owner takes this memory back, and a write of a peer's may be placing bytes there: when it returns, the network writes
  // nothing there any more. For networks whose cards write by themselves; who places bytes only within its turn has nothing to do.
  virtual void withdraw(Bytes memory) { static_cast<void>(memory); }

 protected:
  ~Lender() = default;
};

class RmaTarget {
 public:
  virtual ~RmaTarget() = default;

  // `connection` identifies the connection that places (a dead connection's fragments become absent once it is off the
  // buffer). Range, access, key and generation are checked here, before a byte is placed.
  virtual Admission begin_write(uint64_t connection, const RemoteRef& target, uint64_t length_bytes) = 0;
  // Memory for bytes [at, ...) of the fragment; at most the fragment's remainder. Empty: revoked, discard them. A network's card
  // may go on writing there after the turn until end_write: a mailbox's buffer is not given back before, and a region with the
  // help of Lender::withdraw().
  virtual MutableBytes write_span(Ticket ticket, uint64_t at_bytes) = 0;
  // All bytes placed (`complete`) or the connection broke in the middle. The answer is what to acknowledge. Status::withheld, here
  // and in an admission: the target answers nothing. A transport that must free a slot of the peer's says that much and no more.
  virtual OperationResult end_write(Ticket ticket, bool complete) = 0;

  virtual Admission begin_read(uint64_t connection, const RemoteRef& target, uint64_t length_bytes) = 0;
  virtual Bytes read_span(Ticket ticket, uint64_t at_bytes) = 0;  // empty: revoked
  virtual void end_read(Ticket ticket) = 0;
  // Bytes of this read are about to go to a network by reference: until end_read it may read them from the memory. false: they must
  // be copied.
  virtual bool lend(Ticket /*ticket*/) { return false; }
  virtual void set_lender(Lender* /*lender*/) {}  // asked when an owner takes memory back; nullptr: no more
  // Lent, and revoked: its owner waits for end_read, which comes as soon as the network refers to nothing of it any more.
  [[nodiscard]] virtual bool wanted_back(Ticket /*ticket*/) const { return false; }
  // How often that has happened to any ticket: whoever lends looks at his own when it has changed.
  [[nodiscard]] virtual uint64_t wants() const { return 0; }
  // The region is still being filled (core/ports/fill_progress.h), and bytes [at, at + size) are not all there: not revoked, not
  // yet. The transport sends something else, and asks again after its resume().
  [[nodiscard]] virtual bool read_waits(Ticket /*ticket*/, uint64_t /*at_bytes*/, uint64_t /*size_bytes*/) const { return false; }
  // Of such a region when it may have bytes in a splice pipe: they are of the read's whole range, which is the region's. Else
  // nullptr.
  [[nodiscard]] virtual const FillProgress* fill_of(Ticket /*ticket*/) const { return nullptr; }
  // For connections of this transport, once each, after a mailbox_empty; they arise between turns, as the owner posts.
  [[nodiscard]] virtual bool hint_waits() const { return false; }
  virtual std::optional<Hint> next_hint() { return std::nullopt; }
};

}  // namespace ccixfer::ports
