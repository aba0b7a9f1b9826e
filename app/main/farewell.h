// The orderly end of a session, at either side of it. It begins when the session's result stands. First the peer hears what it was
// told, as long as that may take; then the role's jobs and buffers come back. The session must not be destroyed before that. Its
// owner goes on to turn the role meanwhile.
#pragma once
#include <cstdint>

#include "app/main/transfer_role.h"
#include "app/session/link.h"
#include "core/base/time.h"

namespace ccixfer::program {

inline constexpr Duration farewell_timeout = std::chrono::seconds(3);  // for an Abort to reach the peer

// Ends the session for the peer too. `role`: nullptr, if the session has none (any more).
void abort_session(session::Link& link, TransferRole* role, const Error& why);

class Farewell {
 public:
  enum class Stage : uint8_t {
    telling_peer,      // until it has heard all, its lanes are gone, or the patience has run out
    waiting_for_role,  // for its jobs and buffers; idle() comes with one of those, not with time
    over,
  };
  // A peer that needs not be told, because it agreed to the end, costs no time.
  void begin(Instant now, Duration patience, bool tells_peer);
  [[nodiscard]] bool has_begun() const { return begun_; }
  [[nodiscard]] Stage turn(const session::Link& link, const TransferRole* role, Instant now);

  // The owner may want a turn when the role takes too long. First that is when the patience has run out.
  [[nodiscard]] bool is_late(Instant now) const { return now >= until_; }
  void wait_until(Instant until) { until_ = until; }  // the next time at which it is late; never: only the role's end is waited for
  [[nodiscard]] Instant next_deadline() const { return until_; }

 private:
  bool begun_ = false;
  bool told_ = false;  // once: whatever becomes of `until_`
  Instant until_ = never;
};

}  // namespace ccixfer::program
