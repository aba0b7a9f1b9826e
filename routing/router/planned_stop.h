// When the steps of a router's planned stop are due: the connections have drain_timeout to end or
// move, and what is left is closed and has drain_flush_timeout to hear why. Time is an argument.
// Source: routing/router/README.md 'A planned stop'.
#pragma once
#include <utility>

#include "routing/router/router.h"

namespace ccixfer::routing {

class PlannedStop {
 public:
  void want() { wanted_ = true; }
  [[nodiscard]] bool wanted() const { return wanted_; }
  // begins() is true once: then the connections are to be told. closes() is true once, later: then those that are left are to be
  // closed.
  [[nodiscard]] bool begins(Instant now) {
    if (!wanted_ || until_ != never) return false;
    until_ = after(now, drain_timeout);
    return true;
  }
  [[nodiscard]] bool closes(Instant now) { return until_ != never && now >= until_ && !std::exchange(closed_, true); }
  [[nodiscard]] bool has_begun() const { return until_ != never; }
  [[nodiscard]] bool is_over(Instant now) const { return has_begun() && now >= after(until_, drain_flush_timeout); }
  [[nodiscard]] Instant next_deadline() const { return closed_ ? after(until_, drain_flush_timeout) : until_; }

 private:
  bool wanted_ = false;
  Instant until_ = never;
  bool closed_ = false;
};

}  // namespace ccixfer::routing
