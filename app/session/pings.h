// The connections of `ccixfer ping` to an endpoint that takes sessions. Whoever may connect may have one: the connection is the
// answer, and what comes over it is dropped. So they are few, and none stays that says nothing.
// Bounds: pings_max, ping_idle_limit. Beyond the first, the one that has been silent for the longest ends.
// Single-threaded.
#pragma once
#include <vector>

#include "core/base/time.h"
#include "core/cci/endpoint.h"

namespace ccixfer::session {

inline constexpr size_t pings_max = 16;
inline constexpr Duration ping_idle_limit = std::chrono::seconds(30);  // a ping sends the next message when the last one came

class Pings {
 public:
  explicit Pings(cci::Endpoint& endpoint) : endpoint_(endpoint) {}

  void add(cci::Connection connection, Instant now);
  void heard(cci::Connection connection, Instant now);  // of others this does nothing
  void gone(cci::Connection connection);                // the same
  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;

 private:
  struct Ping {
    cci::Connection connection;
    Instant heard{};
  };
  void end_most_silent();

  cci::Endpoint& endpoint_;
  std::vector<Ping> pings_;  // the one that has been silent for the longest is the first
};

}  // namespace ccixfer::session
