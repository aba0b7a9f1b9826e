// The destination's lanes: mailboxes, posted buffers and credit.
// Segment n of a lane goes to stripe n mod stripes and epoch n div stripes. Buffers are posted in the
// order of n, so the credit of a lane is the number of buffers ever posted to it. A mailbox is opened
// when its stripe is first needed; all of them close with the lane. A lane has a window of buffers
// ahead. The session's share of the pool is split evenly among its live lanes. A lane that comes up
// again is a new lane session. Single-threaded. Bounds: the share of the pool; lanes_max lanes.
// Source: RVMA, section III.B (mailboxes).
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "app/recv/rate_allowance.h"
#include "app/recv/window.h"
#include "app/session/link.h"
#include "app/session/pool_turns.h"
#include "app/session/segment.h"
#include "core/base/slot_table.h"
#include "core/memory/pool.h"
#include "core/ports/entropy.h"
#include "core/rvma/mailbox_table.h"
#include "core/trust/seal_key.h"

namespace ccixfer::recv {

// A buffer that a put completed. `lane_session` and `n` follow from the mailbox and its epoch, not from the peer's bytes. `header`
// is what its trailer says, which was opened, or why it cannot be.
struct ReceivedSegment {
  memory::Loan buffer;
  uint64_t length_bytes = 0;
  uint64_t lane_session = 0;
  uint64_t n = 0;
  Result<session::SegmentHeader> header{};
};

class Lanes {
 public:
  // `turns` and `rate` are shared with the process's other sessions.
  Lanes(session::Link& link, rvma::MailboxTable& mailboxes, memory::Pool& pool, ports::Entropy& entropy,
        std::shared_ptr<session::PoolTurns> turns, std::shared_ptr<RateAllowance> rate);
  ~Lanes();  // CHECKs idle()
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  void up(session::LaneIndex lane);
  void down(session::LaneIndex lane);
  void close_all();  // no buffer is posted any more
  [[nodiscard]] bool has_live() const { return !live_.empty(); }
  // The cap alone keeps the source waiting, which has no buffer to put into.
  [[nodiscard]] bool holds_back() const { return has_live() && posted_total_ == 0 && !rate_->may_post(); }
  [[nodiscard]] bool is_live(session::LaneIndex lane) const { return live_.contains(lane); }
  [[nodiscard]] bool owns(uint64_t mailbox) const;
  // Empty: a cancelled buffer, which went back to the pool.
  [[nodiscard]] std::optional<ReceivedSegment> take(const rvma::Completion& completion);
  // The source has used all its credit, up to `limit`, and has a segment ready. False: no such credit
  // was given.
  [[nodiscard]] bool asked(session::LaneIndex lane, uint64_t limit);
  // Posts as many buffers as the session's part of the pool (buffers_max less those in jobs) and the
  // rate allow, and grants credit for them.
  void turn(Instant now, uint32_t buffers_max, uint32_t buffers_in_jobs);
  [[nodiscard]] bool idle() const { return posted_total_ == 0; }
  [[nodiscard]] Instant next_deadline() const { return deadline_; }

 private:
  struct Lane {
    session::LaneIndex index = 0;
    uint64_t base = 0;
    uint64_t key = 0;
    uint64_t lane_session = 0;
    std::optional<trust::SealKey> put_key;  // none: --insecure
    uint64_t next_n = 0;                    // buffers ever posted
    uint64_t credit = 0;                    // granted
    uint32_t posted = 0;                    // now
    bool live = false;
    bool asks = false;               // as the source was told
    std::optional<uint64_t> ask_at;  // it asked when its credit was that
    uint64_t ticket = 0;             // for a buffer that it asked for; 0: none
    Window window;
  };
  struct Slot {
    memory::Loan buffer;
    uint64_t base = 0;
    uint64_t n = 0;
    Instant posted_at{};
    bool is_ahead = false;  // nobody had asked for it
  };
  struct Filled {
    uint64_t base = 0;
    uint64_t n = 0;
    Instant posted_at{};
  };
  [[nodiscard]] bool post(Lane& lane, memory::Loan buffer, bool is_ahead, Instant now);
  void judge_windows(Instant now);
  void close(Lane& lane);
  void forget_if_done(uint64_t base);
  [[nodiscard]] bool post_one(Lane& lane, bool is_ahead, Instant now);  // false: not now
  void post_asked(Lane& lane, uint32_t room, Instant now);
  void step_out(Lane& lane);
  void grant(Lane& lane);

  session::Link& link_;
  rvma::MailboxTable& mailboxes_;
  memory::Pool& pool_;
  ports::Entropy& entropy_;
  std::map<uint64_t, Lane> lanes_;               // by mailbox base; closed ones until their buffers are back
  std::map<session::LaneIndex, uint64_t> live_;  // base of the present session of a lane
  SlotVector<Slot> slots_;                       // by the context of a posted buffer
  std::vector<Filled> filled_;                   // since the last turn
  uint32_t posted_total_ = 0;
  bool is_long_path_ = false;
  session::LaneIndex first_ = 0;  // where the next round of posting begins
  const std::shared_ptr<session::PoolTurns> turns_;
  const std::shared_ptr<RateAllowance> rate_;
  std::vector<session::LaneIndex> broken_;  // to be closed at the end of the turn
  Instant deadline_ = never;
};

}  // namespace ccixfer::recv
