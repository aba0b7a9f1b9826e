#include "core/reliability/receive_ledger.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/reliability/rtt.h"

namespace ccixfer::reliability {

ReceiveLedger::Verdict ReceiveLedger::look(uint64_t number) const {
  if (number < floor_) return Verdict::too_old;
  const auto after_it = std::upper_bound(ranges_.begin(), ranges_.end(), number,
                                         [](uint64_t value, const Range& range) { return value < range.first; });
  if (after_it == ranges_.begin()) return Verdict::fresh;
  return number <= std::prev(after_it)->last ? Verdict::duplicate : Verdict::fresh;
}

void ReceiveLedger::received(uint64_t number, bool eliciting, Instant now) {
  CHECK(look(number) == Verdict::fresh);
  const bool in_order = ranges_.empty() ? number == 0 : number == ranges_.back().last + 1;
  const bool newest = ranges_.empty() || number > ranges_.back().last;
  auto next = std::upper_bound(ranges_.begin(), ranges_.end(), number,
                               [](uint64_t value, const Range& range) { return value < range.first; });
  const bool joins_below = next != ranges_.begin() && std::prev(next)->last + 1 == number;
  const bool joins_above = next != ranges_.end() && next->first == number + 1;
  if (joins_below && joins_above) {
    std::prev(next)->last = next->last;
    ranges_.erase(next);
  } else if (joins_below) {
    std::prev(next)->last = number;
  } else if (joins_above) {
    next->first = number;
  } else {
    ranges_.insert(next, {number, number});
  }
  if (ranges_.size() > ranges_max) {
    floor_ = ranges_.front().last + 1;
    ranges_.erase(ranges_.begin());
  }
  if (newest) largest_at_ = now;
  if (!eliciting) return;
  ++eliciting_;
  deadline_ = eliciting_ >= 2 || !in_order ? now : std::min(deadline_, after(now, ack_delay_max));
}

Ack ReceiveLedger::take_ack(Instant now) {
  CHECK(anything());
  Ack ack;
  ack.delay = now - largest_at_;
  for (auto range = ranges_.rbegin(); range != ranges_.rend() && ack.count < ack_ranges_max; ++range)
    ack.list[ack.count++] = *range;
  eliciting_ = 0;
  deadline_ = never;
  return ack;
}

void ReceiveLedger::ack_arrived(uint64_t largest) {
  if (largest < late_numbers) return;
  floor_ = std::max(floor_, largest - late_numbers);
  while (!ranges_.empty() && ranges_.front().last < floor_) ranges_.erase(ranges_.begin());
}

}  // namespace ccixfer::reliability
