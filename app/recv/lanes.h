// The destination's lanes: mailboxes, posted buffers and credit.
// Segment n of a lane goes to stripe n mod stripes, epoch n div stripes: buffers are posted in the order of n, so the credit of a
// lane is the number of buffers ever posted to it. Mailboxes are opened when their stripe is first needed and closed with the lane.
// A lane has a window of buffers ahead, within the session's share of the pool, split evenly among the live lanes. A lane that
// comes up again is a new lane session. Single-threaded. Bounds: the share of the pool; lanes_max lanes. Source: RVMA §III.B
// (mailboxes), architecture 'RVMA at the receiver of files'.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "app/recv/window.h"
#include "app/session/link.h"
#include "core/memory/pool.h"
#include "core/ports/entropy.h"
#include "core/rvma/mailbox_table.h"

namespace ccixfer::recv {

// A buffer that a put completed. `lane_session` and `n` follow from the mailbox and its epoch, not from the peer's bytes.
struct Arrival {
  memory::Loan buffer;
  uint64_t length_bytes = 0;
  uint64_t lane_session = 0;
  uint64_t n = 0;
};

class Lanes {
 public:
  Lanes(session::Link& link, rvma::MailboxTable& mailboxes, memory::Pool& pool, ports::Entropy& entropy, uint64_t rate_bytes_per_s);
  ~Lanes();  // CHECKs idle()
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  void up(session::LaneIndex lane);
  void down(session::LaneIndex lane);
  void close_all();  // no buffer is posted any more
  [[nodiscard]] bool has_live() const { return !live_.empty(); }
  [[nodiscard]] bool is_live(session::LaneIndex lane) const { return live_.contains(lane); }
  [[nodiscard]] bool owns(uint64_t mailbox) const;
  // Empty: a cancelled buffer, which went back to the pool.
  [[nodiscard]] std::optional<Arrival> take(const rvma::Completion& completion);
  // Posts what `share_buffers` (less those in jobs) and the rate allow, grants credit.
  void turn(Instant now, uint32_t share_buffers, uint32_t buffers_in_jobs);
  [[nodiscard]] bool idle() const { return posted_total_ == 0; }
  [[nodiscard]] Instant next_deadline() const { return rate_deadline_; }

 private:
  struct Lane {
    session::LaneIndex index = 0;
    uint64_t base = 0;
    uint64_t key = 0;
    uint64_t lane_session = 0;
    uint64_t next_n = 0;  // buffers ever posted
    uint64_t credit = 0;  // granted
    uint32_t posted = 0;  // now
    bool live = false;
    Window window;
  };
  struct Slot {
    memory::Loan buffer;
    uint64_t base = 0;
    uint64_t n = 0;
    Instant posted_at{};
  };
  struct Filled {
    uint64_t base = 0;
    uint64_t n = 0;
    Instant posted_at{};
  };
  [[nodiscard]] bool post(Lane& lane, memory::Loan buffer, Instant now);
  void judge_windows(Instant now);
  void close(Lane& lane);
  void forget_if_done(uint64_t base);
  void refill_rate(Instant now);

  session::Link& link_;
  rvma::MailboxTable& mailboxes_;
  memory::Pool& pool_;
  ports::Entropy& entropy_;
  std::map<uint64_t, Lane> lanes_;               // by mailbox base; closed ones until their buffers are back
  std::map<session::LaneIndex, uint64_t> live_;  // base of the present session of a lane
  std::vector<Slot> slots_;                      // by the context of a posted buffer
  std::vector<uint32_t> free_slots_;
  std::vector<Filled> filled_;  // since the last turn
  uint32_t posted_total_ = 0;
  session::LaneIndex first_ = 0;   // where the next round of posting begins
  const double rate_bytes_per_s_;  // 0: no cap
  double allowance_bytes_;
  std::optional<Instant> refilled_;
  Instant rate_deadline_ = never;
};

}  // namespace ccixfer::recv
