// Looks now and then whether somebody asks a receiver that runs to remove old staged files (ccixfer status --expire), and does so
// in the work pool (app/recv/leftovers).
#pragma once
#include <memory>

#include "app/recv/root.h"
#include "core/base/time.h"
#include "core/ports/work_pool.h"

namespace ccixfer::program {

inline constexpr Duration expire_look_interval = std::chrono::seconds(5);

class ExpireRequests {
 public:
  ExpireRequests(ports::WorkPool& work, const recv::Root* root) : work_(work), root_(root) {}  // nullptr: nothing is received
  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const { return root_ != nullptr && !*is_looking_ ? next_ : never; }

 private:
  ports::WorkPool& work_;
  const recv::Root* const root_;
  Instant next_ = Instant::min();
  const std::shared_ptr<bool> is_looking_ = std::make_shared<bool>(false);
};

}  // namespace ccixfer::program
