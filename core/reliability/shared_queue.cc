#include "core/reliability/shared_queue.h"

namespace ccixfer::reliability {
namespace {

constexpr int stands = 125;                                    // percent of the path's own round trip, and at least
constexpr Duration stands_min = std::chrono::milliseconds(2);  // hosts and their batches make such differences by themselves
constexpr int gone = 110;                                      // percent
constexpr int foreign_max = 3;                                 // then the path itself is longer than it was
// After a loss that all of them noticed a queue may be empty for as long as CUBIC takes to be back.
constexpr int64_t gone_round_trips = 62;
constexpr Duration gone_max = std::chrono::seconds(3);

}  // namespace

bool SharedQueue::stood(Duration least, Duration path) {
  return least != forever && least > path + stands_min && least * 100 > path * stands;
}

bool SharedQueue::is_none(Duration least, Duration path) {
  return least != forever && (least <= path + stands_min || least * 100 <= path * gone);
}

void SharedQueue::begin(uint64_t in_flight_bytes, Instant now) {
  window_.begin(in_flight_bytes, in_flight_bytes);
  seen_at_ = now;
  foreign_ = 0;
}

bool SharedQueue::was_own() {
  const bool own = cycle_least_ == forever || is_none(cycle_least_, least_) || ++foreign_ == foreign_max;
  if (!own) return false;
  foreign_ = 0;
  least_ = cycle_least_;
  return true;
}

void SharedQueue::round_ended(bool lost, Duration path, uint32_t datagram_bytes, Instant now) {
  if (lost && stood_all_round(path)) window_.lost(datagram_bytes);
  if (!is_none(round_least_, path)) seen_at_ = now;
}

void SharedQueue::acked(uint64_t bytes, uint64_t in_flight_bytes_before, uint32_t datagram_bytes, Duration round_trip,
                        Instant now) {
  // A window that is not used says nothing of the path, and does not grow (RFC 9438, section 5.8).
  if (in_flight_bytes_before >= window_.bytes() / 2) window_.acked(bytes, datagram_bytes, round_trip, now);
}

bool SharedQueue::is_gone(Duration path, Duration round_trip, Instant now) const {
  return now - seen_at_ > std::min(path * gone_round_trips, gone_max) + 2 * round_trip;  // it is looked for once in a round
}

}  // namespace ccixfer::reliability
