// Byte streams in memory, for tests of the stream transport: two nets on a hub, with faults at chosen bytes. Readiness is
// edge-like, as StreamNet says.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "transports/stream/stream_net.h"

namespace ccixfer::stream::testing {

class MemoryNet;

enum class Fault : uint8_t { none, flip, close, reset };

// One direction of a stream.
struct Pipe {
  std::deque<std::byte> bytes;
  bool ended = false;   // after the bytes
  bool reset = false;   // at once
  uint64_t passed = 0;  // ever written
};
struct Link {
  MemoryNet* ends[2] = {nullptr, nullptr};  // dialler, acceptor; nullptr: closed
  StreamId ids[2] = {0, 0};
  Pipe pipes[2];  // [i]: written by end i
};

class Hub {
 public:
  // What befalls byte `at` that end `from` (0: dialler) writes on any link: flipped with `mask`, or the stream ends (is reset)
  // before it.
  Fault fault = Fault::none;
  int from = 0;
  uint64_t at = 0;
  uint8_t mask = 1;
  bool happened = false;
  // Whoever holds the wire: of what end `from` (0: dialler) has sent in one call, what arrives. Unset: all of it.
  std::function<std::vector<std::byte>(int from, std::vector<std::byte> bytes)> rewrite;
  size_t recv_max = SIZE_MAX;  // bytes that one recv gives
  size_t send_max = SIZE_MAX;
  size_t capacity = SIZE_MAX;  // of a pipe
  std::map<std::string, MemoryNet*> listeners;
  std::deque<Link> links;
};

class MemoryNet final : public StreamNet {
 public:
  MemoryNet(Hub& hub, std::string name) : hub_(hub), name_(std::move(name)) { hub_.listeners[name_] = this; }
  ~MemoryNet() override;
  [[nodiscard]] std::string_view scheme() const override { return "mem"; }
  [[nodiscard]] std::string uri() const override { return "mem://" + name_; }
  [[nodiscard]] Result<StreamId> dial(std::string_view uri) override;
  void close(StreamId id) override;
  void pause_accept(bool paused) override { accept_paused = paused; }
  [[nodiscard]] bool accept_starves() const override {
    return !backlog_.empty() && places_.size() - backlog_.size() >= streams_max;
  }
  int64_t recv(StreamId id, std::span<const IoSpan> into) override;
  int64_t send(StreamId id, std::span<const ConstIoSpan> from) override;
  int64_t recv_to(StreamId id, ports::SplicePipe& splice_pipe, size_t size) override;
  [[nodiscard]] std::unique_ptr<LooseStream> release(StreamId id) override;
  [[nodiscard]] StreamId adopt(std::unique_ptr<LooseStream> stream) override;
  void poll(Instant now, const std::function<void(const StreamEvent&)>& event) override;
  void set_deadline(Instant at) override {
    deadline = at;
    ++deadlines_set;
  }
  [[nodiscard]] int os_handle() const override { return -1; }
  [[nodiscard]] wire::HostIdentity machine() const override { return on; }
  void peer_is_elsewhere(StreamId) override { ++peers_elsewhere; }
  [[nodiscard]] bool lends(StreamId) const override { return lends_memory; }
  [[nodiscard]] uint64_t unacknowledged_bytes(StreamId id) const override;
  [[nodiscard]] uint64_t waiting_bytes(StreamId id) const override;  // what the peer has not read

  void fail_device(std::string reason) {
    events_.push_back({StreamEventType::device_failed, 0, Status::device_dead, std::move(reason)});
  }

  bool accept_paused = false;
  bool releases = true;  // streams may leave it
  Instant deadline = never;
  uint64_t deadlines_set = 0;
  wire::HostIdentity on;
  size_t peers_elsewhere = 0;
  uint64_t calls = 0;                  // of recv and send
  std::vector<bool> said_more;         // by each send of bulk memory
  uint64_t lent_bytes = 0;             // offered so: an upper bound of what was taken
  bool lends_memory = false;           // as if it referred to what is lent (it copies)
  uint64_t acknowledged = UINT64_MAX;  // so many bytes of each stream at most, whatever the peer has read
  size_t streams_max = SIZE_MAX;       // more than those it does not take from its backlog: it is out of descriptors
  [[nodiscard]] bool quiet() const { return events_.empty() && (accept_paused || accept_starves() || backlog_.empty()); }

 private:
  struct Place {
    size_t link = 0;
    int end = 0;
  };
  struct Loose;
  Hub& hub_;
  std::string name_;
  std::map<StreamId, Place> places_;
  std::deque<StreamEvent> events_;
  std::deque<StreamEvent> backlog_;
  StreamId next_ = 1;
};

}  // namespace ccixfer::stream::testing
