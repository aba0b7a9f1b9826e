// What the stream transport needs of a network of byte streams: tcp implements it with sockets and its own epoll
// descriptor, sim with a seeded world. Names are this network's own (HOST:PORT for tcp).
// Contract: nonblocking; readiness is edge-like: after recv or send said `again`, an event follows when that changes. Events are
// gathered by poll(). Single-threaded.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/base/status.h"
#include "core/base/time.h"
#include "core/ports/splice_pipe.h"
#include "core/ports/transport.h"
#include "core/wire/connection_frames.h"
#include "transports/stream/moved_connection.h"

namespace ccixfer::stream {

using StreamId = uint64_t;  // never reused within a net; 0: none

enum class StreamEventType : uint8_t {
  accepted,   // a new inbound stream `id`
  connected,  // our dial succeeded
  failed,     // our dial failed, or the stream broke (reset, unreachable): `reason`
  readable,
  writable,
  device_failed,  // of the whole net, no stream: what it is bound to is gone from this host: `reason`
};
struct StreamEvent {
  StreamEventType type;
  StreamId id;
  Status status = Status::success;  // failed: refused, unreachable, timed_out, not_found (name), disconnected
  std::string reason;               // accepted: the peer's address, for people; may be empty
};

inline constexpr int64_t io_again = -1;   // nothing now
inline constexpr int64_t io_closed = -2;  // orderly end of the peer's direction (recv) or broken (send)
inline constexpr int64_t io_error = -3;   // broken; a `failed` event need not follow
inline constexpr int64_t io_full = -4;    // recv_to: the splice pipe has no room, or cannot take these bytes: recv them

struct IoSpan {
  std::byte* data;
  size_t size;
};
struct ConstIoSpan {
  const std::byte* data;
  size_t size;
  // It stays as it is until the peer's network has acknowledged it (unacknowledged_bytes), even beyond the call (memory of an RMA):
  // the network may refer to it instead of copying, if the peer is elsewhere (peer_is_elsewhere).
  bool lent = false;
  ports::SplicePipe* splice_pipe = nullptr;  // set: the first `size` bytes in it are sent instead of `data`, and leave it
  bool more = false;     // of the last span: further bytes follow at once, so the network need not send a packet that is not full
  bool is_file = false;  // lent even to a peer on this host: the pages of a file are never used for anything else
};

class StreamNet {
 public:
  virtual ~StreamNet() = default;
  [[nodiscard]] virtual std::string_view scheme() const = 0;              // "tcp", "sim"
  [[nodiscard]] virtual std::string uri() const = 0;                      // of the listener; "" when there is none
  [[nodiscard]] virtual Result<StreamId> dial(std::string_view uri) = 0;  // usage: malformed
  virtual void close(StreamId id) = 0;         // abortive if bytes are unread; else orderly. The id is dead
  virtual void pause_accept(bool paused) = 0;  // back-pressure: the backlog holds what comes
  // Accepting pauses by itself, for want of descriptors, though somebody waits in the backlog.
  [[nodiscard]] virtual bool accept_starves() const { return false; }
  virtual int64_t recv(StreamId id, std::span<const IoSpan> into) = 0;  // bytes > 0, or io_*
  // Whether recv would answer io_again until the stream is told readable again. false: not known.
  [[nodiscard]] virtual bool nothing_to_read(StreamId) const { return false; }
  virtual int64_t send(StreamId id, std::span<const ConstIoSpan> from) = 0;
  // Of what send() took, what the peer's side of the network has not acknowledged.
  [[nodiscard]] virtual uint64_t waiting_bytes(StreamId) const { return 0; }
  [[nodiscard]] virtual std::optional<ports::PathFigures> path_figures(StreamId) const { return std::nullopt; }
  // At most `size` bytes into a splice pipe that it takes: bytes > 0, or io_*. See ports::Transport for the other two.
  virtual int64_t recv_to(StreamId, ports::SplicePipe&, size_t /*size*/) { return io_full; }
  [[nodiscard]] virtual std::unique_ptr<ports::SplicePipe> make_splice_pipe() { return nullptr; }
  [[nodiscard]] virtual bool takes(const ports::SplicePipe&) const { return false; }
  // What the network has proved about the peer of a stream (ports::PeerIdentity::proved); "": nothing.
  [[nodiscard]] virtual std::string proved_peer(StreamId) const { return {}; }
  // The machine whose kernel carries these streams, as peers tell each other.
  [[nodiscard]] virtual wire::HostIdentity machine() const { return {}; }
  // The peer is known to be on another machine. Until then what is lent is copied: within one kernel what the peer has taken may
  // still be our own pages, and travel on from there, long after it told us that it has them.
  virtual void peer_is_elsewhere(StreamId) {}
  // Whether lent memory goes by reference over this stream.
  [[nodiscard]] virtual bool lends(StreamId) const { return false; }
  // Of what send() took, so many bytes at the end have not been acknowledged by the peer's network, and may be read from lent
  // memory until they are, or until the stream is closed (then it is reset). 0: no memory is referred to.
  [[nodiscard]] virtual uint64_t unacknowledged_bytes(StreamId) const { return 0; }
  // A stream leaves this net, open as it is; nullptr: it cannot. Its id is dead then.
  [[nodiscard]] virtual std::unique_ptr<LooseStream> release(StreamId) { return nullptr; }
  // A stream of a net of the same type becomes one of this net, as if it had been accepted here, without an event that tells so.
  // 0: it cannot, and the stream is closed.
  [[nodiscard]] virtual StreamId adopt(std::unique_ptr<LooseStream>) { return 0; }
  virtual void poll(Instant now, const std::function<void(const StreamEvent&)>& event) = 0;
  // Poll again at `at` at the latest.
  virtual void set_deadline(Instant at) = 0;
  [[nodiscard]] virtual int os_handle() const = 0;
};

}  // namespace ccixfer::stream
