// What the RDMA transport needs of a network whose cards read and write memory of other hosts: verbs implements it with libibverbs
// and librdmacm, sim with a simulated card. Names are this network's own (verbs://HOST:PORT, sim-rdma://NODE:PORT).
//
// A pair is one end of a reliable connection between two cards (a queue pair). What is posted on one pair is carried out in the
// order in which it was posted, each once: a send that follows a write is received after the written bytes are in the peer's
// memory. A read is the exception, as on every card: what is posted behind it does not wait for it.
//
// Contract: nonblocking; single-threaded; events come only from within poll(). Memory of work in flight is the card's: the caller
// keeps it valid until the work has completed or its pair is closed. The net trusts nothing that the peer's card says.
// Units: bytes. Source: the InfiniBand specification, chapters 9 to 11, in the words of ibv_post_send(3) and rdma_cm(7).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/base/status.h"
#include "core/base/time.h"

namespace ccixfer::rdma {

using PairId = uint64_t;  // never used again within a net; 0: none

// What a card may do with memory. It may always read it for this end.
struct Access {
  bool local_write = false;   // reads of ours place bytes there
  bool remote_read = false;   // peers that know the remote key
  bool remote_write = false;  // these too; a net adds local_write where its cards demand it
};

// Of registered memory. The local key names it in work of ours, and the remote key in work of a peer, together with an address in
// it: the address that the memory has in its own process.
struct Registration {
  uint64_t id = 0;  // of the net's own making, never used again: what deregister() takes. 0: none
  uint32_t local_key = 0;
  uint32_t remote_key = 0;
};

// One piece of memory on each side. `local` lies in the memory of `local_key`, wholly.
struct Work {
  uint64_t tag = 0;  // the caller's, told with the completion
  MutableBytes local;
  uint32_t local_key = 0;
  uint64_t remote_address = 0;
  uint32_t remote_key = 0;
};

enum class WorkStatus : uint8_t {
  success,
  remote_access,  // the peer's card refused it: wrong key, range or rights. The pair is broken by that
  local_access,   // our own card did: a bug of the caller's. The pair is broken
  flushed,        // the pair broke, or the peer's card does not answer: how many of the bytes were moved is not known
};
[[nodiscard]] std::string_view to_string(WorkStatus status);

// All calls of the net may be made from within these.
class RdmaEvents {
 public:
  virtual ~RdmaEvents() = default;
  // A peer dials: accept() or close() it, now or later. `peer`: its address, as a URI of this network.
  virtual void requested(PairId pair, std::string_view peer) = 0;
  // Of a dial, or after accept(): from now on work may be posted. What the peer has sent comes after it, never before.
  virtual void connected(PairId pair) = 0;
  // The dial failed (not_found, unreachable, refused, timed_out), or the pair is broken (disconnected: the peer has closed it, or
  // an error of either card; timed_out: the peer's card does not answer). Before it all that was received and every completion has
  // been told; the card touches no memory for this pair any more, and the id is dead: it needs no close().
  virtual void closed(PairId pair, Status status, std::string_view reason) = 0;
  // One send of the peer. The bytes are valid during the call only, then the slot is posted again.
  virtual void received(PairId pair, Bytes bytes) = 0;
  // Of post_read and post_write: once for each, in the order of posting, unless the pair was closed by us before. After it the card
  // does not touch the local memory for this work any more.
  virtual void completed(PairId pair, uint64_t tag, WorkStatus status) = 0;
  // post_* answered false before, and may be tried again.
  virtual void sendable(PairId pair) = 0;
  // The card or its port is gone from this host. Each pair is told `closed` besides.
  virtual void device_failed(std::string_view reason) = 0;
};

class RdmaNet {
 public:
  virtual ~RdmaNet() = default;
  [[nodiscard]] virtual std::string_view scheme() const = 0;            // "verbs", "sim-rdma"
  [[nodiscard]] virtual std::string uri() const = 0;                    // what a peer dials; "" when nobody may dial this end
  [[nodiscard]] virtual uint32_t send_bytes_max() const = 0;            // of one send, either way; at least send_bytes_floor
  [[nodiscard]] virtual uint32_t receives_max() const = 0;              // slots of the shared receive queue, of all pairs together
  [[nodiscard]] virtual uint32_t work_bytes_max() const = 0;            // of one post_read or post_write; at least 1 MiB
  [[nodiscard]] virtual uint32_t reads_max(PairId pair) const = 0;      // of ours under way at a time; at least 1. More wait, and
                                                                        // whatever is posted behind them with them
  [[nodiscard]] virtual Result<PairId> dial(std::string_view uri) = 0;  // usage: malformed
  virtual void accept(PairId requested) = 0;
  // At once, from whatever state; the peer is told if it can be. When it returns, the card reads and writes no memory for this pair
  // any more, on either side's behalf, and no event of the pair follows. Sends that have not left are lost (unsent() says how
  // many).
  virtual void close(PairId pair) = 0;

  // The parts as one send of 1 to send_bytes_max() bytes, copied before it returns. Into a receive slot of the peer's, for which
  // the peer's card is waited for, if it has none at the moment. false: no room (sendable() follows), or the pair is about to be
  // closed.
  [[nodiscard]] virtual bool post_send(PairId pair, std::span<const Bytes> parts) = 0;
  // From the peer's memory into ours, and from ours into the peer's. Never empty, at most work_bytes_max(). false: as above.
  [[nodiscard]] virtual bool post_read(PairId pair, const Work& work) = 0;
  [[nodiscard]] virtual bool post_write(PairId pair, const Work& work) = 0;
  // Sends that the peer's card has not confirmed. When it falls to 0, sendable() is told, whether post_* has answered false or not.
  [[nodiscard]] virtual uint32_t unsent(PairId pair) const = 0;
  // Waits for one piece of work, without events: for when its memory is wanted back this instant. true: the card is done with it
  // (its completion comes in a later poll all the same). false: not within `limit`. This and flush() may block, for so long at
  // most.
  [[nodiscard]] virtual bool await(PairId pair, uint64_t tag, Duration limit) = 0;

  // The same for what was sent: waits until nothing of the pair is unsent(). For the last words of a transport that is being
  // destroyed.
  [[nodiscard]] virtual bool flush(PairId pair, Duration limit) = 0;

  // no_memory: the card takes no more of it, or cannot take this memory.
  [[nodiscard]] virtual Status register_memory(MutableBytes memory, Access access, Registration& registration) = 0;
  // When it returns, neither this card nor any peer reads or writes the memory by these keys: a peer that tries is refused
  // (remote_access). No work of ours that names the local key is in flight, which is the caller's to see to.
  virtual void deregister(uint64_t id) = 0;

  virtual void poll(Instant now, RdmaEvents& events) = 0;
  virtual void set_deadline(Instant at) = 0;        // turn again at `at` at the latest
  [[nodiscard]] virtual int os_handle() const = 0;  // readable when poll() has something to tell
};

inline constexpr uint32_t send_bytes_floor = 4096;

}  // namespace ccixfer::rdma
