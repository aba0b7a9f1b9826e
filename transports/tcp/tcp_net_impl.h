// TcpNet's inside, in two files: tcp_net.cc (creation, streams' bytes, deadlines), tcp_net_events.cc (dialling, accepting, poll).
// Private.
#pragma once
#include <optional>
#include <vector>

#include "core/base/deadline_heap.h"
#include "core/base/slot_table.h"
#include "core/host/waker.h"
#include "transports/inet/device_watch.h"
#include "transports/inet/resolver.h"
#include "transports/tcp/socket.h"
#include "transports/tcp/tcp_net.h"
#include "transports/tcp/zero_copy_pipe.h"

namespace ccixfer::tcp {

using stream::StreamEvent;
using stream::StreamEventType;
using stream::StreamId;

struct TcpNet::Impl {
  using Report = std::function<void(const StreamEvent&)>;
  enum class State : uint8_t { resolving, connecting, open, failed };
  struct Stream {
    State state = State::resolving;
    Descriptor fd;
    host::WatchId watch;
    // The last call took less than it was offered: nothing is there until the next event, so a system call is saved.
    bool nothing_to_read = false;
    bool full = false;
    bool by_reference = false;       // lent memory: the peer is on another machine
    ZeroCopyPipe pipe;               // bulk memory on its way into the socket
    bool hung_up = false;            // the peer's end is among what is to be read: no event will tell again
    std::vector<Address> addresses;  // dialling: those still to be tried, last first
    std::string reason;              // dialling: why the last one failed
    Status status = Status::unreachable;
  };
  // Tokens of the watch list: streams have their id, which is above these.
  static constexpr uint64_t listener_token = 1;
  static constexpr uint64_t device_token = 2;

  explicit Impl(const TcpNetOptions& o, std::shared_ptr<host::Waker> waker) : options(o), watched(std::move(waker)) {}
  const TcpNetOptions options;
  const uint64_t number_of_boot = tcp::number_of_boot();
  host::WatchList watched;  // ends after the descriptors below, which are closed by then
  Descriptor listener;
  std::optional<host::WatchId> accepting;  // the listener, when it is watched
  Address listening;
  inet::DeviceWatch device;      // of `listening`
  NamedSlots<Stream> streams;    // a StreamId is a packed name
  std::vector<StreamId> failed;  // dials whose failure poll() is to report
  DeadlineHeap address_ends;     // of dials that have another address to try, by the index of the stream
  std::optional<inet::Resolver> resolver;
  Instant now{};
  Instant deadline = never;
  Instant accept_again = never;                  // out of descriptors: until then, or until a stream closes
  bool accept_paused = false;                    // by the user
  bool pause_told = false;                       // for want of descriptors, since the last stream was accepted
  int accept_below = descriptors_for_streams();  // streams take no descriptor of this number or a higher one
  StreamId last_readable = 0;
  uint32_t guesses = 0;  // polls in a row that asked nobody

  ~Impl();
  [[nodiscard]] static int descriptors_for_streams();
  [[nodiscard]] Stream* find(StreamId id);
  [[nodiscard]] StreamId add_stream(State state);
  [[nodiscard]] bool watch(Stream& stream, StreamId id);
  void stop(Stream& stream);  // its descriptor is closed and watched no more
  void release(StreamId id);
  [[nodiscard]] static uint64_t unacknowledged_bytes(const Stream& stream);
  void opened(Stream& stream) const;
  // Bytes that the socket took; less than all of them: it is full, or pages of a file are not there any more. Or io_*.
  [[nodiscard]] static int64_t send_copied(Stream& stream, std::span<const stream::ConstIoSpan> from, bool more);
  // Bytes taken, into the socket or the pipe; 0: this memory is to be copied. Or io_*.
  [[nodiscard]] static int64_t send_lent(Stream& stream, Bytes memory, bool more);
  // Bytes that left the splice pipe, into the socket. Or io_*.
  [[nodiscard]] static int64_t send_through(Stream& stream, ports::SplicePipe& splice_pipe, size_t size, bool more);
  bool guess(const Report& report);
  void arm();
  void update_accepting();
  [[nodiscard]] Descriptor accept_one(Address& peer) const;

  void try_next_address(StreamId id);
  void fail_dial(StreamId id, Status status, std::string reason);
  void dial_progress(StreamId id, const Report& report);
  void take_answers();
  void leave_silent_addresses();
  void accept_some(const Report& report);
  void report_failed(const Report& report);
  void stream_event(StreamId id, uint32_t events, const Report& report);
};

}  // namespace ccixfer::tcp
