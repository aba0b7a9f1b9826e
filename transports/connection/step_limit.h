// The time limit of a connection's present state. Whoever sets it, a call of the application for one, may have no clock: the time
// runs from the first turn after it was set. Pure; single-threaded.
#pragma once
#include "core/base/time.h"

namespace ccixfer::connection {

class StepLimit {
 public:
  void set(Duration timeout) {
    timeout_ = timeout;
    stamped_ = false;
  }
  // A turn begins.
  void stamp(Instant now) {
    if (stamped_) return;
    stamped_ = true;
    deadline_ = after(now, timeout_);
  }
  void expire() { deadline_ = never; }  // it has been acted upon
  [[nodiscard]] bool is_stamped() const { return stamped_; }
  [[nodiscard]] Instant deadline() const { return stamped_ ? deadline_ : never; }

 private:
  union {                       // a connection has one of these, and thousands of connections are idle
    Instant deadline_ = never;  // once it is stamped
    Duration timeout_;
  };
  bool stamped_ = true;
};

}  // namespace ccixfer::connection
