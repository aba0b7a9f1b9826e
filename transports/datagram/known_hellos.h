// Hellos that opened a connection, by their dialler: one that comes again opens no other, also for a while after its connection's
// end. Bounds: those of connections that are open, and hellos_remembered_max of those that ended. Pure; single-threaded.
#pragma once
#include <cstdint>
#include <unordered_set>

#include "core/base/ring_buffer.h"
#include "transports/datagram/limits.h"

namespace ccixfer::datagram {

class KnownHellos {
 public:
  using Name = uint64_t;  // CookieJar::name: nobody can choose hellos that share one

  [[nodiscard]] bool knows(const Name& name) const { return open_.contains(name) || ended_.contains(name); }
  void add(const Name& name) { open_.insert(name); }
  void end(const Name& name) {
    if (open_.erase(name) == 0) return;
    ended_.insert(name);
    ended_order_.push_back(name);
    if (ended_order_.size() <= hellos_remembered_max) return;
    ended_.erase(ended_order_.front());
    ended_order_.drop_front();
  }

 private:
  std::unordered_set<Name> open_;
  std::unordered_set<Name> ended_;
  RingBuffer<Name> ended_order_;
};

}  // namespace ccixfer::datagram
