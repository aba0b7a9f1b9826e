// The one interface between the core and a network. tcp and sim implement it through transports/stream; the routing
// transport implements it over other endpoints. Argument checks and event bookkeeping are the core's (core/cci), so a
// transport may assume sane arguments from above and must distrust every byte from below.
//
// Threading: all calls from one thread. A transport makes progress only inside turn(); callbacks to the sink come only
// from inside turn() (never from dial, send, rma ...), and the sink only enqueues.
// Source: CCI §IV.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/base/status.h"
#include "core/base/time.h"
#include "core/ports/fill_progress.h"
#include "core/ports/memory_registration.h"
#include "core/ports/operation_result.h"
#include "core/ports/peer_identity.h"
#include "core/ports/rma_target.h"

namespace ccixfer::ports {

inline constexpr uint32_t connect_data_bytes_max = 1024;  // CCI: connect data
inline constexpr uint32_t max_send_bytes_floor = 1408;    // every transport offers at least this

enum class Attribute : uint8_t {
  reliable_ordered = 0,
  reliable_unordered = 1,
  unreliable = 2,
  multicast_send = 3,
  multicast_receive = 4
};

// Who dials: carried in the transport's HELLO, so that one listening endpoint can serve applications, routed hops and routers.
enum class Role : uint8_t { application = 0, hop = 1, router = 2, admin = 3 };

// Names one connection of one transport; generation 0 is 'none'. A stale id is answered Status::not_found, never a crash.
struct ConnectionId {
  uint32_t index = 0;
  uint32_t generation = 0;
  [[nodiscard]] explicit operator bool() const { return generation != 0; }
  [[nodiscard]] uint64_t packed() const { return (uint64_t{generation} << 32) | index; }
  static ConnectionId of(uint64_t packed) { return {static_cast<uint32_t>(packed), static_cast<uint32_t>(packed >> 32)}; }
  friend bool operator==(const ConnectionId&, const ConnectionId&) = default;
};

struct DialRequest {
  std::string_view uri;  // native (tcp://HOST:PORT) or routed (cci://AS:SUBNET:NODE:EP)
  Role role = Role::application;
  Attribute attribute = Attribute::reliable_ordered;
  Bytes data;                  // at most connect_data_bytes_max; copied
  Duration timeout = forever;  // until on_connected
  // Of a transport that dials_ahead(): all that needs no data is done, and then the connection waits for Transport::ask().
  bool ahead = false;
};

struct ConnectionLimits {
  uint32_t max_send_bytes = 0;  // the minimum of both ends, and of every hop
};

// A round trip that began and ended at one time, since whoever turns us did so twice without looking at the clock: as good as none.
inline constexpr Duration round_trip_min = std::chrono::microseconds(1);

// One hop of a connection, nearest first, for people and for the `session` event.
struct HopInfo {
  std::string transport;             // "tcp"
  std::string node;                  // the native URI dialled; of who dialled us what the network knows of it
  uint32_t as = 0, subnet = 0;       // 0:0 when not routed
  Duration round_trip{0};            // from the dialler of this hop to the end of the path, at connect time
  uint64_t rate_bits_per_s = 0;      // of its subnet, as a router's configuration says; 0: unknown
  uint32_t fragment_bytes = 0;       // RMA is cut so over the whole path; 0: it is not cut
  std::string peer = {};             // who answers there: PeerIdentity::proved, as the dialler of this hop knows it
  std::string_view protection = {};  // of what this hop carries, a constant: "aes-256-gcm"; "": none
};

// What the network knows of the way on which a connection sends. The counts grow, from its beginning on.
struct PathFigures {
  uint64_t sent_packets = 0;     // those that were sent again included
  uint64_t resent_packets = 0;   // taken for lost
  Duration round_trip{0};        // now, the wait in queues included
  Duration round_trip_least{0};  // that was ever seen
  friend PathFigures operator+(const PathFigures& a, const PathFigures& b) {
    return {a.sent_packets + b.sent_packets, a.resent_packets + b.resent_packets, a.round_trip + b.round_trip,
            a.round_trip_least + b.round_trip_least};
  }
};

struct RmaRequest {
  bool write = true;
  RemoteRef remote;
  LocalRegion local;         // where `source` or `destination` is registered
  Bytes source;              // write: local memory, readable until completion
  MutableBytes destination;  // read: local memory, writable until completion
  Bytes completion_message;  // delivered to the peer as a message after the data, never after a failure; copied
  bool has_completion_message = false;
  // supports_cut_through() only, else ignored; until completion. Read: `placed_bytes` is counted as the destination fills. Write:
  // of the source no more is sent than is ready; when it has failed, the operation ends early, as cancelled.
  FillProgress* fill = nullptr;
  bool fence = false;             // earlier operations of this connection complete at the target before this and later ones
  bool buffer_is_posted = false;  // a put for which the target gave credit
  bool source_is_file = false;    // write: the source's pages are a file's (core/memory/file_view.h), never used for anything else
  bool local_completion = false;  // write: on_local_completion() as soon as the source is needed no more. It is then not lent
                                  // further (ConstIoSpan::lent), which costs a copy where that is possible
};

// The core's side: what happened. `token` is the one given with the operation.
class TransportSink {
 public:
  virtual ~TransportSink() = default;
  virtual void on_connect_request(ConnectionId request, Role role, Attribute attribute, Bytes data) = 0;
  // End of dial: success, refused, timed_out, no_route, unreachable, version, not_found. Unless success the id is dead afterwards.
  virtual void on_connected(ConnectionId connection, Status status, ConnectionLimits limits, std::string_view reason) = 0;
  // End of accept: the peer's acknowledgement of our acceptance arrived (or it did not).
  virtual void on_accepted(ConnectionId connection, Status status, ConnectionLimits limits) = 0;
  // A message of `length_bytes` is arriving: memory to place it in, 8-byte aligned; data()==nullptr: no receive buffer free (then
  // the message is discarded and answered receiver_not_ready). At most one open per connection.
  virtual MutableBytes on_message_begin(ConnectionId connection, uint32_t length_bytes) = 0;
  virtual void on_message_end(ConnectionId connection, bool complete) = 0;
  virtual void on_completion(ConnectionId connection, uint64_t token, OperationResult ending) = 0;
  // Of a write that asked for it: its source is the application's again, whatever becomes of the operation. At most once, before
  // its on_completion; a transport that learns no earlier leaves it out.
  virtual void on_local_completion(ConnectionId connection, uint64_t token) {
    static_cast<void>(connection), static_cast<void>(token);
  }
  // A buffer for this epoch is posted in a mailbox of the peer's that had none for a put of ours. It may come twice, or be lost.
  virtual void on_mailbox_ready(ConnectionId connection, uint64_t mailbox, uint64_t epoch) {
    static_cast<void>(connection), static_cast<void>(mailbox), static_cast<void>(epoch);
  }
  // The connection is gone: every operation in flight has been completed with an error before this. The id is dead afterwards.
  virtual void on_disconnected(ConnectionId connection, Status status, std::string_view reason) = 0;
  virtual void on_keepalive_timeout(ConnectionId connection) = 0;
  // A router of the path is about to stop: the connection still works, but not for long. At most once a connection.
  virtual void on_draining(ConnectionId connection) { static_cast<void>(connection); }
  // What the transport is bound to is gone from this host. Its connections end as they find out; it may come back.
  virtual void on_device_failed(std::string_view reason) { static_cast<void>(reason); }
};

struct TransportOptions {
  Duration keepalive =
      std::chrono::seconds(5);  // silence after which a probe goes out; three unanswered: the connection is lost. 0: off
  uint32_t connections_max = 16384;
  uint32_t pending_requests_max = 1024;  // connect requests not yet decided, and connections whose HELLO is not complete
  Duration handshake_timeout = std::chrono::seconds(10);
  uint32_t sends_in_flight_max = 256;  // per connection; negotiated
  uint32_t rmas_in_flight_max = 256;   // per connection; more: Status::no_buffers
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Before the first turn. `sink` and `target` outlive the transport.
  virtual void bind(TransportSink& sink, RmaTarget& target) = 0;
  [[nodiscard]] virtual std::string uri() const = 0;  // what a peer dials; "" when not listening
  [[nodiscard]] virtual uint32_t max_send_bytes() const = 0;

  [[nodiscard]] virtual Result<ConnectionId> dial(const DialRequest& request) = 0;
  [[nodiscard]] virtual bool dials_ahead() const { return false; }
  // Of a dial ahead, once: what the peer is asked. not_found: it has ended; invalid: it was no dial ahead, or the data are too
  // long.
  [[nodiscard]] virtual Status ask(ConnectionId dialled, Bytes data) {
    return static_cast<void>(dialled), static_cast<void>(data), Status::not_implemented;
  }
  [[nodiscard]] virtual Status accept(ConnectionId request) = 0;
  [[nodiscard]] virtual Status reject(ConnectionId request, std::string_view reason) = 0;
  // Orderly: what was sent before is delivered, then the peer learns of it. No on_disconnected comes for our own call, but every
  // operation in flight still gets its on_completion (in later turns: how it ended, or disconnected) and an open message its
  // on_message_end. A request that was not decided, or a dial that has not ended, is just dropped.
  virtual void disconnect(ConnectionId connection) = 0;
  // The same at once, for a peer that does not let anything end: what was sent need not arrive. Also after a disconnect.
  virtual void abort(ConnectionId connection) { disconnect(connection); }

  // Copies the parts before it returns. no_buffers: too many in flight (try again after a completion). Completion means: delivered
  // to the peer's endpoint. receiver_not_ready is retried inside until the send timeout of the connection.
  [[nodiscard]] virtual Status send(ConnectionId connection, std::span<const Bytes> parts, uint64_t token) = 0;
  [[nodiscard]] virtual Status rma(ConnectionId connection, const RmaRequest& request, uint64_t token) = 0;

  // Memory that operations of this end and of peers may use. The core registers each region once, before any operation names it;
  // parts of a region have its key. `key`: none where the network needs no keys. no_memory: the network takes no more of it. The
  // transport forgets what is still registered when it is destroyed.
  [[nodiscard]] virtual Status register_memory(MutableBytes memory, MemoryAccess access, MemoryKey& key) {
    return static_cast<void>(memory), static_cast<void>(access), static_cast<void>(key), Status::success;
  }
  // When it returns, nothing of this transport reads or writes the memory any more. No operation of this end names the key then.
  virtual void deregister_memory(MemoryKey key) { static_cast<void>(key); }

  // Whether it looks at RmaRequest::fill and RmaTarget::read_waits. If not, only memory that is complete may be sent.
  [[nodiscard]] virtual bool supports_cut_through() const { return false; }
  // Of the arrivals that it looks at, those with a splice pipe that `takes` says yes to: reads fill it, and what is sent leaves
  // from it. nullptr: it has none.
  [[nodiscard]] virtual std::unique_ptr<SplicePipe> make_splice_pipe() { return nullptr; }
  [[nodiscard]] virtual bool takes(const SplicePipe& splice_pipe) const { return static_cast<void>(splice_pipe), false; }
  // More of what this connection waits for has arrived, or failed, or was revoked. It is never found out otherwise.
  virtual void resume(ConnectionId /*connection*/) {}

  // Tells the peer (on_mailbox_ready), which puts to this mailbox over this connection. As good as it goes: of many that wait, or
  // with the connection, it may be lost.
  virtual void hint(ConnectionId connection, uint64_t mailbox, uint64_t epoch) {
    static_cast<void>(connection), static_cast<void>(mailbox), static_cast<void>(epoch);
  }

  virtual void set_send_timeout(ConnectionId connection, Duration timeout) = 0;  // forever: none
  virtual void set_keepalive(ConnectionId connection, Duration timeout) = 0;     // zero: off
  [[nodiscard]] virtual std::vector<HopInfo> hops(ConnectionId connection) const = 0;
  // Who the peer is: from on_connect_request or on_connected on, for as long as the id means something. The core asks at those two
  // and hands the answer up with its events.
  [[nodiscard]] virtual PeerIdentity peer(ConnectionId connection) const { return static_cast<void>(connection), PeerIdentity{}; }
  // Bytes of this connection that the peer's side of the network has: the count grows for as long as the peer takes something,
  // however slowly. nullopt: the transport does not know.
  [[nodiscard]] virtual std::optional<uint64_t> delivered_bytes(ConnectionId connection) const {
    return static_cast<void>(connection), std::nullopt;
  }
  // Bytes that came over this connection, of what has not ended too. nullopt: the transport does not know.
  [[nodiscard]] virtual std::optional<uint64_t> received_bytes(ConnectionId connection) const {
    return static_cast<void>(connection), std::nullopt;
  }
  // To the peer itself: over routers nobody knows. nullopt: the transport does not know.
  [[nodiscard]] virtual std::optional<PathFigures> path_figures(ConnectionId connection) const {
    return static_cast<void>(connection), std::nullopt;
  }

  // All progress is made here: reads, writes, timers. `now` never goes backwards.
  virtual void turn(Instant now) = 0;
  [[nodiscard]] virtual Instant next_deadline() const = 0;
  // Readable when a turn has something to do; -1 under simulation (the world turns whom it concerns). A loop that made the
  // transport's network with a waker of its own (core/host/waker.h) waits there instead.
  [[nodiscard]] virtual int os_handle() const = 0;
  // From now until the next turn the handle is readable, besides, once `when` has come. Needs no turn.
  virtual void arm(Instant when) { static_cast<void>(when); }
};

}  // namespace ccixfer::ports
