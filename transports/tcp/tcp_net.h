// Byte streams over TCP sockets: nonblocking, watched by a waker (core/host/waker.h) which several networks may share; without one
// that is given, a net has a waker of its own, whose descriptor is the OS handle. Sockets: TCP_NODELAY, TCP_NOTSENT_LOWAT (so
// that a message never waits behind many megabytes of the kernel's), buffers left to the kernel's tuning.
// Events are edge-triggered; nothing is polled for that has not changed. Names: tcp://HOST:PORT. Numeric addresses are dialled at
// once; names are resolved by threads of their own (inet::Resolver), and their addresses tried in order, each for address_time if
// it answers nothing. Out of descriptors: accepting pauses until a stream closes or accept_retry passed; the others go on. Lent
// memory of 64 KiB and more goes into the socket by reference (ZeroCopyPipe) where the options say so; a stream that is closed with
// such bytes unsent is reset. The process ignores SIGPIPE from the first net on, unless it handles it. Errors: create:
// ErrorKind::network (address in use, no such interface ...), usage (a host or port that cannot be; a `listener` that does not
// listen at TCP). Single-threaded but for the resolver inside. Source: ARCHITECTURE.md 'One process'; transports/tcp/README.md.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/host/waker.h"
#include "transports/stream/stream_net.h"

namespace ccixfer::tcp {

inline constexpr Duration accept_retry = std::chrono::milliseconds(100);
// What may wait in the kernel to be sent, to another host: a message waits behind it (0.8 ms at 10 Gb/s), and with less the sender
// is woken for every few packets. On one host bytes wait for the peer's processor only, and nothing is gained by a bound (through a
// router: 0.75 instead of 0.95 of the rate with 256 KiB).
inline constexpr int notsent_lowat_bytes = 1 << 20;
// Of an address of a name that answers nothing, while another one is left: a first packet that is lost is sent again within it.
inline constexpr Duration address_time = std::chrono::milliseconds(1500);
inline constexpr int accepts_per_poll_max = 64;
// Polls in a row that try the stream which had bytes last, and ask for no other: a wait of some microseconds for those.
inline constexpr uint32_t guesses_in_a_row_max = 16;

// To whom lent memory goes by reference. A peer on this machine, in whatever container, gets copies: the pages that its socket and
// its splice pipes hold would still be ours, and be sent on as they are then. (And the copy is what brings the bytes into the cache
// from which the peer reads them: 4 MiB RMA writes over loopback had 0.75 of the rate without it.)
enum class ByReference : uint8_t { never, to_other_machines, always };

struct TcpNetOptions {
  std::string listen_host = "0.0.0.0";  // an address; "::" listens for IPv4 too; a name is resolved once, blocking
  uint16_t port = 0;                    // 0: any free one
  std::string interface_name;           // listen and dial over this interface only; "": any
  int backlog = 1024;
  bool listen = true;
  int listener = -1;  // a socket that listens already, of which this net has a duplicate; -1: it opens one at listen_host and port
  ByReference by_reference = ByReference::to_other_machines;
  std::shared_ptr<host::Waker> waker = nullptr;  // nullptr: one of its own, for the OS handle
};

class TcpNet final : public stream::StreamNet {
 public:
  [[nodiscard]] static Result<std::unique_ptr<TcpNet>> create(const TcpNetOptions& options);
  ~TcpNet() override;
  TcpNet(const TcpNet&) = delete;
  TcpNet& operator=(const TcpNet&) = delete;

  // Every address under which the listener can be dialled; loopback only if there is no other.
  [[nodiscard]] std::vector<std::string> uris() const;

  [[nodiscard]] std::string_view scheme() const override { return "tcp"; }
  [[nodiscard]] std::string uri() const override;
  [[nodiscard]] Result<stream::StreamId> dial(std::string_view uri) override;
  void close(stream::StreamId id) override;
  void pause_accept(bool paused) override;
  [[nodiscard]] bool accept_starves() const override;
  int64_t recv(stream::StreamId id, std::span<const stream::IoSpan> into) override;
  [[nodiscard]] bool nothing_to_read(stream::StreamId id) const override;
  int64_t send(stream::StreamId id, std::span<const stream::ConstIoSpan> from) override;
  int64_t recv_to(stream::StreamId id, ports::SplicePipe& splice_pipe, size_t size) override;
  [[nodiscard]] uint64_t waiting_bytes(stream::StreamId id) const override;
  [[nodiscard]] std::optional<ports::PathFigures> path_figures(stream::StreamId id) const override;
  [[nodiscard]] std::unique_ptr<ports::SplicePipe> make_splice_pipe() override;
  [[nodiscard]] bool takes(const ports::SplicePipe& splice_pipe) const override;
  [[nodiscard]] wire::HostIdentity machine() const override;
  void peer_is_elsewhere(stream::StreamId id) override;
  [[nodiscard]] bool lends(stream::StreamId id) const override;
  [[nodiscard]] uint64_t unacknowledged_bytes(stream::StreamId id) const override;
  [[nodiscard]] std::unique_ptr<stream::LooseStream> release(stream::StreamId id) override;
  [[nodiscard]] stream::StreamId adopt(std::unique_ptr<stream::LooseStream> stream) override;
  void poll(Instant now, const std::function<void(const stream::StreamEvent&)>& event) override;
  void set_deadline(Instant at) override;
  [[nodiscard]] int os_handle() const override;

 private:
  struct Impl;
  explicit TcpNet(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::tcp
