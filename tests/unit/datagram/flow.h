// A connection that is kept busy with writes.
#pragma once
#include <vector>

#include "tests/unit/datagram/rig.h"

namespace ccixfer::datagram::testing {

// Writes pieces one after the other for as long as it is asked to.
class Flow {
 public:
  static constexpr size_t ahead = 128;  // that they never run dry
  Flow(Rig& rig, DatagramTransport& transport, const Recorder& sink, ConnectionId id, size_t piece_bytes = 1u << 17)
      : rig_(rig), transport_(transport), sink_(sink), id_(id), source_(piece_bytes), target_(piece_bytes) {
    remote_ = rig.b.memory.register_region(target_, cci::access_write);
  }
  void keep_busy() {
    while (issued_ < sink_.completions.size() + ahead) {
      ports::RmaRequest write;
      write.remote.handle = remote_;
      write.source = source_;
      REQUIRE(transport_.rma(id_, write, issued_++) == Status::success);
    }
    rig_.world.wake(rig_.a.node);
  }
  [[nodiscard]] uint64_t done_bytes() const { return sink_.completions.size() * source_.size(); }

 private:
  Rig& rig_;
  DatagramTransport& transport_;
  const Recorder& sink_;
  ConnectionId id_;
  Buffer source_, target_;
  ports::Handle remote_;
  uint64_t issued_ = 0;
};

inline void run_for(Rig& rig, Duration time, const std::vector<Flow*>& flows) {
  const Instant end = after(rig.world.now(), time);
  while (rig.world.now() < end) {
    for (Flow* flow : flows) flow->keep_busy();
    rig.pass(20ms);
  }
}

}  // namespace ccixfer::datagram::testing
