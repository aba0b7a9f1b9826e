// Puts filled segments on lanes: which lane, which number, and what becomes of each put. A put that
// failed for a passing reason goes out again on its lane, with its number; any other failure leaves
// a gap in the numbers of the lane, so that the lane is closed and the segment goes on another one.
// In: filled segments, what the destination and the link say of lanes, the ends of puts. Out: puts
// on the link.
// Guarantees: the numbers of the puts that a lane takes have no gap. Entries segments go before
// data.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "app/send/lane_table.h"
#include "app/send/rate_cap.h"
#include "app/send/segment_sink.h"
#include "app/send/sent_puts.h"
#include "app/session/link.h"
#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"
#include "core/trust/seal_key.h"

namespace ccixfer::send {

inline constexpr Duration put_retry_pause = std::chrono::milliseconds(5);

class SegmentSender final : public SegmentSink {
 public:
  // The buffers of segments are of the pool that is registered as `pool_region`.
  SegmentSender(session::Link& link, ports::Handle pool_region, std::shared_ptr<RateCap> rate);

  void add(FilledSegment&& segment) override;

  void lane_up(session::LaneIndex lane) { lanes_.up(lane); }
  void lane_gone(session::LaneIndex lane);                                                  // the link says so
  [[nodiscard]] bool lane_opened(session::LaneIndex lane, const session::LaneOpen& where);  // false: it makes no sense
  [[nodiscard]] bool credit(session::LaneIndex lane, const session::Credit& credit);        // the same
  // The content of a segment that was placed; none: the segment goes out again.
  [[nodiscard]] std::optional<session::SegmentHeader> put_ended(session::LaneIndex lane, uint64_t context, Status status);

  // In each turn, in this order.
  void close_lost_lanes();
  void retry_puts(Instant now);
  void send_ready_segments(Instant now);

  [[nodiscard]] const SentPut* find_sent(uint64_t lane_session, uint64_t n) const { return sent_.find(lane_session, n); }
  [[nodiscard]] uint32_t entries_segments() const { return entries_segments_; }  // not placed yet
  [[nodiscard]] size_t data_ready() const { return data_ready_.size(); }         // segments that wait for a lane
  [[nodiscard]] const LaneTable& lanes() const { return lanes_; }
  [[nodiscard]] uint64_t bytes_sent() const { return bytes_sent_; }      // payload put, resends counted; as it travels
  [[nodiscard]] uint64_t content_sent() const { return content_sent_; }  // the same before it was compressed
  [[nodiscard]] uint64_t segments_resent() const { return segments_resent_; }
  [[nodiscard]] bool waits_for_rate(Instant now) const;
  [[nodiscard]] bool has_lanes_to_close() const { return !lanes_to_close_.empty(); }
  [[nodiscard]] Instant next_deadline(Instant now) const;  // of the puts

 private:
  struct Outgoing : FilledSegment {
    Instant put_at{};
    uint64_t put_bytes = 0;
    uint64_t carried_bytes = 0;  // in the air on its lane, with it
  };
  // A put that was placed, in the turn before the one that knows what time it is.
  struct Placed {
    session::LaneIndex lane = 0;
    uint64_t lane_session = 0;
    Instant put_at{};
    uint64_t carried_bytes = 0;
  };
  // A put that failed for a passing reason.
  struct Retry {
    uint32_t slot = 0;
    session::LaneIndex lane = 0;
    Instant at;  // never: from the next turn on, which knows what time it is
  };
  [[nodiscard]] bool put(uint32_t slot, session::LaneIndex lane, bool again, Instant now);
  void judge_pace(Instant now);
  void ask_for_credit();
  void requeue(uint32_t slot);
  void release(uint32_t slot);
  void lose_lane(session::LaneIndex lane);

  session::Link& link_;
  const ports::Handle pool_region_;
  const std::shared_ptr<RateCap> rate_;
  LaneTable lanes_;
  std::map<session::LaneIndex, trust::SealKey> put_keys_;  // of the present lane sessions; empty: --insecure
  NamedSlots<Outgoing> segments_;                          // the context of a put is its packed name
  RingBuffer<uint32_t> entries_ready_;
  RingBuffer<uint32_t> data_ready_;
  uint32_t entries_segments_ = 0;
  SentPuts sent_;
  std::vector<Retry> retries_;
  std::vector<Placed> placed_;
  std::vector<session::LaneIndex> lanes_to_close_;
  uint64_t bytes_sent_ = 0;
  uint64_t content_sent_ = 0;
  uint64_t segments_resent_ = 0;
};

}  // namespace ccixfer::send
