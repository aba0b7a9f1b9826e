// CCI's endpoint: connections, messages, RMA and events over any one Transport. All argument checks are here, so every
// transport has the same ones. Events are taken with get_event(); an event that holds a receive buffer returns it when
// destroyed, in any order, also after the endpoint. Single-threaded; BLOCKING and foreign threads: core/facade.
// Source: CCI §III-§IV. Deviation: a peer's disconnect is an event (beyond CCI); contexts are 64-bit values.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/counters.h"
#include "core/cci/memory_table.h"
#include "core/ports/transport.h"

namespace ccixfer::cci {

using ports::Attribute;
using ports::Handle;
using Connection = ports::ConnectionId;

enum class EventType : uint8_t {
  send,     // a send or an RMA of ours ended: status, context
  receive,  // a message: data()
  connect,  // our connect ended: status success, refused, timed_out, no_route, unreachable, version; connection none unless success
  connect_request,  // a peer wants a connection: accept() or reject() it once, then let go of the event
  accept,           // our accept ended
  disconnected,     // the peer or the network ended the connection (beyond CCI)
  keepalive_timed_out,
  device_failed,  // what the endpoint is bound to is gone from this host (device_dead, reason): no connection, context 0
  draining,       // a router of the path stops soon: whoever needs the connection opens another one meanwhile (beyond CCI)
  // A buffer is posted in a mailbox() of the peer's that had none when it refused a put of ours as mailbox_empty, if its owner
  // gives hints: for the epoch that ending() tells. A hint may come before the refusal's own event, come twice, or be lost.
  mailbox_ready,
  local_completion,  // of a write of ours that asked for it: its memory may be used again; how it ends is told by `send`
};

class EventStore;  // the endpoint's receive buffers and undecided requests, shared with the events that hold one

class Event {
 public:
  Event() = default;
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;
  ~Event();

  EventType type = EventType::send;
  Status status = Status::success;
  Connection connection;
  uint64_t context = 0;                               // of the operation (send, local_completion, connect), else of the connection
  uint64_t waiter = 0;                                // of the operation: a blocking call of core/facade waits for it; 0: none
  ports::Role role = ports::Role::application;        // connect_request
  Attribute attribute = Attribute::reliable_ordered;  // connect_request
  std::string reason;                                 // connect (refused ...), disconnected: the peer's or the transport's words
  [[nodiscard]] Bytes data() const;                   // receive: the message, 8-byte aligned; connect_request: connect data
  // send, of an RMA: what the target said besides the status (core/ports/operation_result.h): epoch() of a put, buffer_bytes() of
  // what was too long. An epoch is known when the put's own bytes are placed; it need not be complete.
  [[nodiscard]] ports::OperationResult ending() const { return {status, detail_}; }
  uint64_t mailbox = 0;  // mailbox_ready: its number
  // connect_request, and a connect that succeeded: who the peer is by what we know ourselves. Of the far end of a route nothing is
  // known. Other events leave it out.
  [[nodiscard]] const ports::PeerIdentity& peer() const;

 private:
  friend class Endpoint;
  void set_peer(ports::PeerIdentity peer);
  std::shared_ptr<EventStore> store_;
  std::unique_ptr<const ports::PeerIdentity> peer_;  // nullptr: nothing is known
  void release();
  uint32_t buffer_ = 0;
  uint32_t size_ = 0;
  uint64_t detail_ = ports::OperationResult::none;
  uint64_t request_ = 0;  // 0: it holds a receive buffer, if it holds anything
};

// Takes the messages of some connections instead of receive buffers and events: a transport made of endpoints places them straight
// where its own user wants them, so that a message without room up there is refused down here. Called from inside turn().
class MessageTaker {
 public:
  virtual ~MessageTaker() = default;
  // nullopt: not one of its connections. data()==nullptr: no room (receiver_not_ready).
  virtual std::optional<MutableBytes> message_begins(Connection connection, uint32_t length_bytes) = 0;
  virtual void message_ends(Connection connection, bool complete) = 0;  // of one that began; not after our own disconnect()
};

struct EndpointOptions {
  uint32_t receive_buffers = 1024;
  uint32_t send_operations_max = 65536;  // sends, RMAs and connects in flight
  uint32_t send_share = 0;               // see set_send_share()
  Duration send_timeout = forever;       // of new connections
  Duration keepalive{0};                 // of new connections; zero: the transport's own, which loses a dead one
};

// CCI's RMA alignment: what addresses, offsets and lengths are multiples of, for best speed. Nothing is refused for it.
struct RmaAlignment {
  uint32_t local_address_bytes = 1;
  uint32_t remote_offset_bytes = 1;
  uint32_t length_bytes = 1;
};

struct SendOptions {
  uint64_t context = 0;
  bool silent = false;   // no completion event on success; a failure is never silent
  bool no_copy = false;  // the memory stays readable until the end: leave to keep a reference. Every transport of ours copies: its
                         // messages are at most some kilobytes, and larger things go by RMA.
  uint64_t waiter = 0;
};

struct ConnectOptions {
  ports::Role role = ports::Role::application;
  Attribute attribute = Attribute::reliable_ordered;
  Bytes data{};
  Duration timeout = forever;
  uint64_t context = 0;  // of the connection, and of the connect event
  uint64_t waiter = 0;
  bool ahead = false;  // Endpoint::dials_ahead(): the connection is made as far as that needs no data; ask() gives them
};

struct RmaOptions {
  bool write = true;
  Handle local{};  // a region of this endpoint's MemoryTable
  uint64_t local_offset_bytes = 0;
  ports::RemoteRef remote{};  // handle, offset; and for mailboxes which put this is (put.source 0: named by the endpoint)
  uint64_t length_bytes = 0;
  bool fence = false;
  bool silent = false;  // no completion event on success; a failure is never silent
  // A write: besides, an event as soon as its memory may be used again, before the target has answered: the network, or the next
  // router, has the bytes. Exactly one before the end of what succeeds; of what fails at most one. With `silent` it is the only
  // event of a success. It counts among send_operations_max as well.
  bool local_completion = false;
  // A put: the target said that the buffer it is for is posted (credit), so that its fragments on a route need not wait for the
  // first one's admission. When that is wrong, a refused put may leave bytes in the buffer, and hold it until it is aborted.
  bool buffer_is_posted = false;
  // The local memory of a write is a view of a file (core/memory/file_view.h): a transport may refer to its pages for as long as it
  // likes, even to a peer on this host, because they are never used for anything else.
  bool source_is_file = false;
  std::optional<Bytes> completion_message{};
  uint64_t context = 0;
  uint64_t waiter = 0;
  ports::FillProgress* fill = nullptr;  // see ports::RmaRequest; where supports_cut_through()
};

// It is one class because it is the whole of CCI's interface for one endpoint, and its users know no other; the parts that do the
// work are in Impl.
class Endpoint {
 public:
  Endpoint(const EndpointOptions& options, std::unique_ptr<ports::Transport> transport, std::shared_ptr<MemoryTable> memory,
           Counters& counters);
  ~Endpoint();  // ends everything of it, also with operations in flight
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  [[nodiscard]] std::string uri() const;
  [[nodiscard]] uint32_t max_send_bytes() const;  // what its transport offers; a connection's may be less
  [[nodiscard]] MemoryTable& memory();
  [[nodiscard]] rvma::MailboxTable& mailboxes();

  // Does not block: the end is a `connect` event, unless disconnect() was called before: then there is none. A malformed URI or
  // oversize data is an error at once (ErrorKind::usage). The connection takes no operation before that event.
  [[nodiscard]] Result<Connection> connect(std::string_view uri, const ConnectOptions& options);
  // Whether its transport can begin a connection before it is known what the peer is asked for (ConnectOptions::ahead; beyond CCI).
  [[nodiscard]] bool dials_ahead() const;
  // What such a connection asks for, once. not_found: it has ended, and its `connect` event says why; invalid: as connect().
  [[nodiscard]] Status ask(Connection connection, Bytes data);
  // Once: the end is an `accept` event. invalid: not a request of this endpoint, or decided already; not_found: the peer has gone.
  // A request event that is destroyed undecided is rejected. Who accepts need not wait for that event before it sends over the
  // request's connection: what it sends follows the acceptance (beyond CCI). If the accept fails it ends before the event.
  [[nodiscard]] Status accept(Event& request, uint64_t context);
  [[nodiscard]] Status reject(Event& request, std::string_view reason = {});
  void disconnect(Connection connection);  // operations in flight still end with their events; no `disconnected` event
  void abort(Connection connection);       // the same at once: nothing of what was sent need arrive
  // What of all that was sent has reached the peer's side of the network, and grows while the peer takes something. nullopt: there
  // is no such connection, or its transport does not know.
  [[nodiscard]] std::optional<uint64_t> delivered_bytes(Connection connection) const;
  [[nodiscard]] std::optional<uint64_t> received_bytes(Connection connection) const;  // and what came, whether or not it has ended
  [[nodiscard]] std::optional<ports::PathFigures> path_figures(Connection connection) const;  // nullopt: the same
  [[nodiscard]] uint32_t max_send_bytes(Connection connection) const;                         // 0: no such connection
  [[nodiscard]] std::vector<ports::HopInfo> hops(Connection connection) const;
  [[nodiscard]] ports::PeerIdentity peer(Connection connection) const;  // as its event said

  // Options of a connection. forever: no send timeout; zero: no keepalive, which it also is after its one event. not_found: no such
  // connection; invalid: a send timeout that is not positive, a negative keepalive. The getters: nullopt for no such connection.
  Status set_send_timeout(Connection connection, Duration timeout);  // of sends that are issued from now on
  Status set_keepalive(Connection connection, Duration timeout);     // instead of losing the connection: one event
  void set_context(Connection connection, uint64_t context);
  [[nodiscard]] std::optional<Duration> send_timeout(Connection connection) const;
  [[nodiscard]] std::optional<Duration> keepalive(Connection connection) const;
  // Options of the endpoint. The two timeouts are for connections that are established from now on. Fewer buffers than are in use:
  // the next ones wait until enough came back. invalid: as above, or no buffer at all.
  Status set_send_timeout(Duration timeout);
  Status set_keepalive(Duration timeout);
  Status set_receive_buffers(uint32_t buffers);
  Status set_send_buffers(uint32_t operations);
  // Before its first connection. When half of send_operations_max are in flight, a connection that has so many takes no further one
  // (no_buffers): connections whose peers answer nothing leave room for all the others, and for connects. 0: each takes what there
  // is, which is right for who trusts its peers.
  void set_send_share(uint32_t operations);
  [[nodiscard]] Duration send_timeout() const;
  [[nodiscard]] Duration keepalive() const;
  [[nodiscard]] uint32_t receive_buffers() const;
  [[nodiscard]] uint32_t send_buffers() const;
  [[nodiscard]] static RmaAlignment rma_alignment() { return {}; }

  // message_size: larger than max_send_bytes; no_buffers: send_operations_max in flight (an operation counts until its event was
  // taken), the connection's share of them, or the transport's bound; not_found: no such connection; again: it is not established
  // yet, and if it was accepted here, its transport takes nothing before it is; invalid: null memory.
  [[nodiscard]] Status send(Connection connection, std::span<const Bytes> parts, uint64_t context, bool silent = false);
  [[nodiscard]] Status send(Connection connection, Bytes message, uint64_t context, bool silent = false);
  [[nodiscard]] Status send(Connection connection, std::span<const Bytes> parts, const SendOptions& options);
  // Besides, at once: invalid: length 0, a read's local_completion, or an unreliable connection; rma_handle, range, rma_op: the
  // local region, or a remote handle that cannot be one. What the target finds comes as the event's status. A read from a mailbox
  // is RVMA's get. What a mailbox refuses without an answer ends as timed_out at the connection's send timeout (forever: with the
  // connection).
  [[nodiscard]] Status rma(Connection connection, const RmaOptions& options);
  [[nodiscard]] bool supports_cut_through() const;  // of its transport: memory that is still being filled may be sent, or be read
  // Of its transport, see there: for arrivals whose bytes need not come into memory.
  [[nodiscard]] std::unique_ptr<ports::SplicePipe> make_splice_pipe();
  [[nodiscard]] bool takes(const ports::SplicePipe& splice_pipe) const;
  void resume(Connection connection);  // more of it has come, or none will

  // Never blocks, O(1). The queue is bounded by operations, receive buffers and connections; whoever drives the endpoint empties it
  // after each turn, so queued events are neither in next_deadline() nor in os_handle().
  [[nodiscard]] std::optional<Event> get_event();
  // The same as a status. again: there is none; no_buffers: besides, the application holds every receive buffer.
  [[nodiscard]] Status get_event(Event& event);
  void turn(Instant now);
  void set_message_taker(MessageTaker* taker);  // outlives the endpoint
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] int os_handle() const;
  // Before waiting for the OS handle: it then becomes readable when a turn has something to do, whatever happened since the last
  // one, and once `wake_at` has come. again: an event is waiting to be taken, do not wait.
  [[nodiscard]] Status arm_os_handle(Instant wake_at = never);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::cci
