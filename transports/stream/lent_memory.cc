#include "transports/stream/lent_memory.h"

#include <algorithm>
#include <utility>

#include "transports/stream/limits.h"

namespace ccixfer::stream {

uint64_t LentMemory::acknowledged_bytes(const Connection& c) const {
  return c.given_bytes - std::min(c.given_bytes, net_.unacknowledged_bytes(c.stream));
}

void LentMemory::settle() {
  engine_.for_each([this](Connection& c) {
    if (c.served.holds()) c.served.acknowledged(acknowledged_bytes(c), engine_.target());
  });
}

Instant LentMemory::deadline() const {
  const bool wanted = engine_.is_bound() && engine_.target().wants() != wants_seen_;
  return wanted ? engine_.now() : look_at_;
}

void LentMemory::turn() {
  if (engine_.target().wants() == wants_seen_ && look_at_ > engine_.now()) return;
  wants_seen_ = engine_.target().wants();
  look_at_ = never;
  engine_.for_each([this](Connection& c) {
    if (c.lends) look_at(c);
  });
}

void LentMemory::look_at(Connection& c) {
  const uint64_t acknowledged = acknowledged_bytes(c);
  const Instant now = engine_.now();
  c.served.acknowledged(acknowledged, engine_.target());
  if (!c.served.owes(acknowledged, engine_.target())) {
    c.owed.reset();
    return;
  }
  if (c.owed == nullptr) c.owed = std::make_unique<Owed>(Owed{now, now, acknowledged});
  if (acknowledged != std::exchange(c.owed->acknowledged_bytes, acknowledged)) c.owed->progress_at = now;
  const Instant until = std::min(after(c.owed->progress_at, lent_stall_max), after(c.owed->since, lent_wait_max));
  if (until > now) {
    look_at_ = std::min({look_at_, until, after(now, lent_look_interval)});
  } else {
    engine_.lose(c, Status::timed_out, "the peer does not take what it was sent, and the memory is wanted back");
  }
}

}  // namespace ccixfer::stream
