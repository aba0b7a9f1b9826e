// Byte streams between processes of one host, through shared memory: the StreamNet of shm. Names are shm://NAME. Each stream has a
// sealed memfd with a ring for each direction, and a Unix socket, which passes the memory, wakes a peer that sleeps, and tells of
// its end. A pair that is busy makes no system call.
// Nonblocking, in a waker that several networks may share. What a hostile peer writes into its memory ends its own stream: an event
// `failed` with the reason, and Counter::shared_rings_rejected; nobody else notices.
// Who may meet: see Meets. Bounds: accepts_per_poll_max, streams_watched_max; a stream takes one descriptor and, once its rings
// were filled, 2 * ring_bytes of memory. Errors: create: network (the name is in use, no descriptors), usage (no name).
// Single-threaded but for what Closer closes. Source: transports/shm/README.md; unix(7), memfd_create(2).
#pragma once
#include <memory>
#include <string>

#include "core/base/counters.h"
#include "core/host/waker.h"
#include "transports/shm/closer.h"
#include "transports/stream/stream_net.h"

namespace ccixfer::shm {

inline constexpr int accepts_per_poll_max = 64;
inline constexpr Duration accept_retry = std::chrono::milliseconds(100);
inline constexpr Duration pass_retry = std::chrono::milliseconds(100);  // of memory to whoever waits for it
inline constexpr Duration dial_retry = std::chrono::milliseconds(5);    // the listener's backlog is full
// Streams that were in use lately: each poll looks into their rings. The others wake us.
inline constexpr size_t streams_watched_max = 16;
// How long a process looks on before it sleeps, if that was of use lately (linger.h): about what a peer takes to answer that sleeps
// itself and has to be woken. If it were less, two that sleep would never find out that they need not.
inline constexpr Duration linger_time = std::chrono::microseconds(20);
// Polls in a row that only look into rings, and do not ask the kernel.
inline constexpr uint32_t polls_without_kernel_max = 64;

// Whom this end lets in, and whom it trusts to be what it dialled. The kernel says of which user the process behind a socket is.
enum class Meets : uint8_t {
  own_user,  // processes of our user only: for connections that prove nothing
  anybody,   // for connections that prove who is at the other end
};

struct ShmNetOptions {
  std::string name;  // to listen at; "": a name that nobody has
  bool listen = true;
  Meets meets = Meets::own_user;
  int backlog = 1024;
  size_t ring_bytes = 256u << 10;                // of each direction of the streams that we accept; Segment: is_ring_size
  size_t closing_threads = Closer::threads_max;  // 0: what may block when it is closed stays open (tests)
  Counters* counters = nullptr;                  // outlives the net; nullptr: nobody counts
  std::shared_ptr<host::Waker> waker = nullptr;  // nullptr: one of its own, for the OS handle
};

class ShmNet final : public stream::StreamNet {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ShmNet>> create(const ShmNetOptions& options);
  ~ShmNet() override;
  ShmNet(const ShmNet&) = delete;
  ShmNet& operator=(const ShmNet&) = delete;

  [[nodiscard]] std::string_view scheme() const override { return "shm"; }
  [[nodiscard]] std::string uri() const override;
  [[nodiscard]] Result<stream::StreamId> dial(std::string_view uri) override;
  void close(stream::StreamId id) override;
  void pause_accept(bool paused) override;
  [[nodiscard]] bool accept_starves() const override;
  int64_t recv(stream::StreamId id, std::span<const stream::IoSpan> into) override;
  [[nodiscard]] bool nothing_to_read(stream::StreamId id) const override;
  int64_t send(stream::StreamId id, std::span<const stream::ConstIoSpan> from) override;
  [[nodiscard]] uint64_t waiting_bytes(stream::StreamId id) const override;
  void poll(Instant now, const std::function<void(const stream::StreamEvent&)>& event) override;
  void set_deadline(Instant at) override;
  [[nodiscard]] int os_handle() const override;

 private:
  struct Impl;
  explicit ShmNet(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::shm
