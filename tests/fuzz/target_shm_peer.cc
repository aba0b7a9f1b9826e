// A peer of shm that writes what it likes into the shared memory, beside one that is honest. The input is steps: a byte for what
// happens (its low three bits), then what that takes. Checked: nothing outside the places that were given is written, no more comes
// than fits, a stream whose ring is broken ends with an event and stays so, and the honest peer gets its bytes all the same.
#include <poll.h>

#include <cstring>
#include <memory>
#include <optional>

#include "core/base/counters.h"
#include "core/host/clock.h"
#include "tests/fuzz/fuzz.h"
#include "transports/shm/doorbell.h"
#include "transports/shm/shm_net.h"

using namespace ccixfer;
using shm::RingControl;
using shm::RingMemory;
using stream::StreamEvent;
using stream::StreamEventType;
using stream::StreamId;

namespace {

constexpr size_t ring_bytes = 4096;
constexpr size_t steps_max = 400;
constexpr size_t guard_bytes = 64;
constexpr std::byte guard{0xA5};

class World {
 public:
  World() {
    shm::ShmNetOptions options;
    options.ring_bytes = ring_bytes;
    options.counters = &counters_;
    net_ = std::move(shm::ShmNet::create(options).value());
    honest_ = meet(honest_id_);
    hostile_ = meet(hostile_id_);
  }

  void turn() {
    net_->set_deadline(never);
    net_->poll(now_ += std::chrono::milliseconds(1), [this](const StreamEvent& event) {
      if (event.type == StreamEventType::accepted) accepted_ = event.id;
      if (event.type != StreamEventType::failed) return;
      fuzz::must(event.id == hostile_id_ && !failed_);
      failed_ = true;
    });
  }
  // Of ring 0 (ours to read) or 1: one word of its control.
  void scribble(uint8_t which, uint64_t value, bool relative) {
    RingControl& control = *hostile_.segment.ring(which & 1).control;
    switch (which >> 1 & 3) {
      case 0:
        control.written = relative ? control.written + value : value;
        break;
      case 1:
        control.read = relative ? control.read + value : value;
        break;
      case 2:
        control.reader_waits = static_cast<uint32_t>(value);
        break;
      default:
        control.writer_waits = static_cast<uint32_t>(value);
    }
  }
  void fill(uint8_t with) {
    for (size_t direction = 0; direction < 2; ++direction) std::memset(hostile_.segment.ring(direction).data, with, ring_bytes);
  }
  void ring() { shm::ring(hostile_.socket.get()); }
  void receive(size_t size) {
    std::vector<std::byte> memory(size + guard_bytes, guard);
    const stream::IoSpan into[] = {{memory.data(), size / 3}, {memory.data() + size / 3, size - size / 3}};
    const int64_t n = net_->recv(hostile_id_, into);
    fuzz::must(n <= static_cast<int64_t>(std::min(size, ring_bytes)));
    fuzz::must(!failed_ || n < 0);
    for (size_t i = 0; i < guard_bytes; ++i) fuzz::must(memory[size + i] == guard);
  }
  void transmit(size_t size) {
    const std::vector<std::byte> memory(size, std::byte{1});
    const stream::ConstIoSpan from{memory.data(), size};
    const int64_t n = net_->send(hostile_id_, {&from, 1});
    fuzz::must(n <= static_cast<int64_t>(size) && (!failed_ || n < 0));
    fuzz::must(net_->waiting_bytes(hostile_id_) <= ring_bytes);
  }
  void hang_up() { hostile_.socket.reset(); }

  void finish() {
    for (int i = 0; i < 3; ++i) turn();
    fuzz::must(counters_.get(Counter::shared_rings_rejected) == (failed_ ? 1u : 0u));
    // The honest one, there and back.
    shm::RingWriter writer(honest_.segment.ring(0));
    const std::string said = "still here";
    fuzz::must(writer.append(as_bytes(said)) == said.size());
    if (writer.publish()) shm::ring(honest_.socket.get());
    turn();
    std::string got(said.size(), 0);
    const stream::IoSpan into{reinterpret_cast<std::byte*>(got.data()), got.size()};
    fuzz::must(net_->recv(honest_id_, {&into, 1}) == static_cast<int64_t>(said.size()) && got == said);
    const stream::ConstIoSpan from{into.data, into.size};
    fuzz::must(net_->send(honest_id_, {&from, 1}) == static_cast<int64_t>(said.size()));
  }

 private:
  struct Peer {
    host::Descriptor socket;
    shm::Segment segment;
  };
  Peer meet(StreamId& id) {
    Peer peer;
    peer.socket = shm::dial_name(shm::parse_uri(net_->uri()).value());
    for (int i = 0; i < 100 && accepted_ == 0; ++i) turn();
    id = std::exchange(accepted_, 0);
    auto segment = shm::take_segment(peer.socket.get(), closer_);
    fuzz::must(id != 0 && segment && *segment);
    peer.segment = std::move(**segment);
    return peer;
  }

  Counters counters_;
  shm::Closer closer_;
  std::unique_ptr<shm::ShmNet> net_;
  Peer honest_, hostile_;
  StreamId honest_id_ = 0, hostile_id_ = 0, accepted_ = 0;
  bool failed_ = false;
  Instant now_{std::chrono::seconds(100)};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world;
  size_t at = 0;
  const auto next = [&]() -> uint8_t { return at < size ? data[at++] : uint8_t{0}; };
  for (size_t steps = 0; at < size && steps < steps_max; ++steps) {
    const uint8_t step = next();
    switch (step & 7) {
      case 0:
      case 1: {  // a word: which one, and its value or what is added to it; at most 4,096 or any
        const uint8_t which = next();
        uint64_t value = next();
        value |= uint64_t{next()} << 8;
        if ((step & 8) != 0) {
          for (int i = 2; i < 8; ++i) value |= uint64_t{next()} << (8 * i);
        }
        world.scribble(which, value, (step & 1) != 0);
        break;
      }
      case 2:
        world.fill(next());
        break;
      case 3:
        world.ring();
        world.turn();
        break;
      case 4:
        world.receive(size_t{next()} * 33);
        break;
      case 5:
        world.transmit(size_t{next()} * 33);
        break;
      case 6:
        world.turn();
        break;
      default:
        if (step >> 3 == 31) world.hang_up();
        world.turn();
    }
  }
  world.finish();
  return 0;
}
