// TcpNet's inside, in two files: tcp_net.cc (creation, streams' bytes, deadlines), tcp_net_events.cc (dialling, accepting, poll).
// Private.
#pragma once
#include <sys/epoll.h>

#include <array>
#include <optional>
#include <vector>

#include "transports/tcp/device_watch.h"
#include "transports/tcp/resolver.h"
#include "transports/tcp/socket.h"
#include "transports/tcp/tcp_net.h"
#include "transports/tcp/zero_copy_pipe.h"

namespace ccixfer::tcp {

using stream::StreamEvent;
using stream::StreamEventType;
using stream::StreamId;

struct TcpNet::Impl {
  using Report = std::function<void(const StreamEvent&)>;
  enum class State : uint8_t { free, resolving, connecting, open, failed };
  struct Stream {
    State state = State::free;
    uint32_t generation = 0;
    Descriptor fd;
    // The last call took less than it was offered: nothing is there until the next event, so a system call is saved.
    bool drained = false;
    bool full = false;
    bool by_reference = false;       // lent memory: the peer is on another machine
    ZeroCopyPipe pipe;               // bulk memory on its way into the socket
    bool hung_up = false;            // the peer's end is among what is to be read: no event will tell again
    std::vector<Address> addresses;  // dialling: those still to be tried, last first
    std::string reason;              // dialling: why the last one failed
    Status status = Status::unreachable;
  };
  // Of epoll's 64 bits: streams have their id, which is above these.
  static constexpr uint64_t listener_tag = 1;
  static constexpr uint64_t timer_tag = 2;
  static constexpr uint64_t wake_tag = 3;
  static constexpr uint64_t adopted_tag = 4;
  static constexpr uint64_t device_tag = 5;

  TcpNetOptions options;
  Descriptor epoll;
  Descriptor timer;
  Descriptor wake;
  Descriptor listener;
  Address listening;
  DeviceWatch device;  // of `listening`
  std::vector<Stream> streams;
  std::vector<uint32_t> free_streams;
  std::vector<StreamId> failed;  // dials whose failure poll() is to report
  std::optional<Resolver> resolver;
  Instant now{};
  Duration polled_at{};  // that was by CLOCK_MONOTONIC; not kept when `adopted`
  Instant deadline = never;
  Instant armed = never;         // of the timerfd; never: not armed
  Instant accept_again = never;  // out of descriptors: until then, or until a stream closes
  bool accept_paused = false;    // by the user
  bool accepting = false;        // the listener is in the epoll set
  bool poked = false;
  std::array<epoll_event, events_per_poll_max> buffer;
  int gathered = 0;  // of `buffer`: what a wait saw and no poll has taken
  bool adopted = false;
  bool adopted_readable = false;
  StreamId last_readable = 0;
  uint32_t guesses = 0;  // polls in a row that asked nobody

  ~Impl();
  [[nodiscard]] Stream* find(StreamId id);
  [[nodiscard]] StreamId add_stream(State state);
  [[nodiscard]] static uint32_t index_of(StreamId id) { return static_cast<uint32_t>(id & 0xffffffff); }
  [[nodiscard]] bool watch(int fd, uint64_t tag, uint32_t events);
  void release(StreamId id);
  [[nodiscard]] static uint64_t unacknowledged_bytes(const Stream& stream);
  void opened(Stream& stream) const;
  // Bytes that the socket took; less than all of them: it is full. Or io_*.
  [[nodiscard]] static int64_t send_copied(Stream& stream, std::span<const stream::ConstIoSpan> from, bool more);
  // Bytes taken, into the socket or the pipe; 0: this memory is to be copied. Or io_*.
  [[nodiscard]] static int64_t send_lent(Stream& stream, Bytes memory, bool more);
  // Bytes that left the splice pipe, into the socket. Or io_*.
  [[nodiscard]] static int64_t send_through(Stream& stream, ports::SplicePipe& splice_pipe, size_t size, bool more);
  void gather(int timeout_ms);
  bool guess(const Report& report);
  void poke();
  void arm();
  void update_accepting();

  void try_next_address(StreamId id);
  void fail_dial(StreamId id, Status status, std::string reason);
  void dial_progress(StreamId id, const Report& report);
  void take_answers();
  void accept_some(const Report& report);
  void report_failed(const Report& report);
  void stream_event(StreamId id, uint32_t events, const Report& report);
};

}  // namespace ccixfer::tcp
