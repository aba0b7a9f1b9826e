// ShmNet's inside, in two files: shm_net.cc (creation, streams' bytes, sleeping), shm_net_events.cc (dialling, accepting, poll).
// Private.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/slot_table.h"
#include "core/host/waker.h"
#include "transports/shm/doorbell.h"
#include "transports/shm/linger.h"
#include "transports/shm/shm_net.h"
#include "transports/shm/untaken.h"

namespace ccixfer::shm {

using host::Descriptor;
using stream::StreamEvent;
using stream::StreamEventType;
using stream::StreamId;

struct ShmNet::Impl {
  using Report = std::function<void(const StreamEvent&)>;
  enum class State : uint8_t {
    dialling,  // the listener's backlog is full
    meeting,   // for the listener's memory
    passing,   // accepted: its user has not taken enough of what we passed, or we can pass nothing now
    open,
    failed,
  };
  struct Stream {
    State state = State::dialling;
    Descriptor socket;
    host::WatchId watch;
    Segment segment;
    RingWriter out;
    RingReader in;
    bool in_use = false;      // `busy` has it, and it waits for no wake
    bool wants_room = false;  // send() took less than it was given
    bool hung_up = false;     // the peer's end is closed; what it wrote before is there
    uint32_t rings = 0;       // of the bell, that were not read
    uid_t user = 0;           // passing
    std::string name;         // dialling
    Status status = Status::success;
    std::string reason;  // failed
  };
  // Tokens of the watch list: streams have their id, which is above this.
  static constexpr uint64_t listener_token = 1;

  Impl(const ShmNetOptions& o, std::shared_ptr<host::Waker> waker);
  const ShmNetOptions options;
  host::WatchList watched;  // ends after the descriptors below, which are closed by then
  std::string name;         // of the listener
  Descriptor listener;
  std::optional<host::WatchId> accepting;  // the listener, when it is watched
  NamedSlots<Stream> streams;              // a StreamId is a packed name
  std::vector<StreamId> busy;              // in use lately: their rings are looked into. The oldest first
  std::vector<StreamId> looking;           // a copy of it, in poll()
  std::vector<StreamId> failed;            // whose failure poll() is to report
  std::vector<StreamId> dialling;
  std::vector<StreamId> passing;
  Instant now{};
  Instant deadline = never;
  Instant dial_again = never;
  Instant pass_again = never;    // and look what was taken of what was passed
  Instant tell_again{};          // that diallers wait for memory
  Instant accept_again = never;  // out of descriptors: until then, or until a stream closes
  bool accept_paused = false;    // by the user
  bool pause_told = false;       // for want of descriptors, since the last stream was accepted
  uint32_t polls_without_kernel = 0;
  const bool has_processor_for_peer;  // besides ours
  Linger linger;
  Closer closer;
  Untaken untaken;

  [[nodiscard]] Stream* find(StreamId id);
  [[nodiscard]] StreamId add_stream(State state);
  [[nodiscard]] bool watch(Stream& stream, StreamId id);
  void open(Stream& stream, StreamId id, Segment segment, size_t written_direction);
  void close_socket(Descriptor socket);
  void drop(Stream& stream);
  void release(StreamId id);
  void fail_stream(StreamId id, Status status, std::string reason);
  void check_rings(StreamId id);
  void arm();

  void use(Stream& stream, StreamId id);
  [[nodiscard]] static bool wait(Stream& stream);
  [[nodiscard]] bool may_sleep();
  [[nodiscard]] bool has_news(Stream& stream);
  [[nodiscard]] bool news_come_at_once();
  void make_room();

  [[nodiscard]] bool may_meet(const std::optional<PeerProcess>& peer) const;
  void try_to_dial(StreamId id);
  void dial_waiting();
  void meet(StreamId id, const Report& report);
  void update_accepting();
  void accept_some(const Report& report);
  [[nodiscard]] bool accept_one(const Report& report);
  enum class Passed : uint8_t { yes, later, dialler_went };
  [[nodiscard]] Passed pass(StreamId id);
  void pass_waiting(const Report& report);
  void look_at_untaken_later();
  void stream_event(StreamId id, uint32_t events, const Report& report);
  void look_into(StreamId id, bool told, const Report& report);
  void report_failed(const Report& report);
};

}  // namespace ccixfer::shm
