// What a connection has in flight: the machines `messages`, `rma` and `fenced`. With most drivers they are members of the
// connection itself. A driver whose idle connections are to be small keeps them apart and makes them when they are needed: then C
// has work(), which makes them if there are none, and work_if_any().
#pragma once

namespace ccixfer::connection {

template <typename C>
[[nodiscard]] auto& work_of(C& c) {
  if constexpr (requires { c.work(); }) {
    return c.work();
  } else {
    return c;
  }
}

// nullptr: nothing is in flight.
template <typename C>
[[nodiscard]] auto* work_if_any(C& c) {
  if constexpr (requires { c.work_if_any(); }) {
    return c.work_if_any();
  } else {
    return &c;
  }
}

}  // namespace ccixfer::connection
