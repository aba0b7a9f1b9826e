#include "core/reliability/receive_ledger.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/reliability/rtt.h"

namespace ccixfer::reliability {

// Nearly every number is at the newest end.
size_t ReceiveLedger::ranges_below(uint64_t number, uint64_t& steps) const {
  ++steps;
  if (ranges_.empty() || ranges_.back().first <= number) return ranges_.size();
  const auto above = std::upper_bound(ranges_.begin(), ranges_.end(), number, [&steps](uint64_t value, const Range& range) {
    ++steps;
    return value < range.first;
  });
  return static_cast<size_t>(above - ranges_.begin());
}

ReceiveLedger::Verdict ReceiveLedger::look(uint64_t number) const {
  if (number < floor_ || number == UINT64_MAX) return Verdict::too_old;  // there is none above it that the next one could be
  uint64_t steps = 0;
  const size_t below = ranges_below(number, steps);
  return below > 0 && number <= ranges_[below - 1].last ? Verdict::duplicate : Verdict::fresh;
}

void ReceiveLedger::forget(size_t count) {
  steps_ += ranges_.size() - count;
  ranges_.erase(ranges_.begin(), ranges_.begin() + static_cast<std::ptrdiff_t>(count));
}

void ReceiveLedger::received(uint64_t number, bool eliciting, Instant now) {
  CHECK(look(number) == Verdict::fresh);
  const bool in_order = number == next_newest();
  const bool newest = is_newest(number);
  const size_t at = ranges_below(number, steps_);
  const auto next = ranges_.begin() + static_cast<std::ptrdiff_t>(at);
  const bool joins_below = at > 0 && ranges_[at - 1].last + 1 == number;
  const bool joins_above = at < ranges_.size() && next->first == number + 1;
  if (joins_below && joins_above) {
    std::prev(next)->last = next->last;
    steps_ += ranges_.size() - at;
    ranges_.erase(next);
  } else if (joins_below) {
    std::prev(next)->last = number;
  } else if (joins_above) {
    next->first = number;
  } else {
    steps_ += ranges_.size() - at;
    ranges_.insert(next, {number, number});
  }
  if (ranges_.size() > ranges_max) {
    floor_ = ranges_.front().last + 1;
    forget(1);
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

void ReceiveLedger::tell_again(Instant now) {
  if (!anything()) return;
  eliciting_ = std::max(eliciting_, 1u);
  deadline_ = now;
}

void ReceiveLedger::ack_arrived(uint64_t largest) {
  if (largest < late_numbers) return;
  floor_ = std::max(floor_, largest - late_numbers);
  size_t old = 0;
  while (old < ranges_.size() && ranges_[old].last < floor_) ++old;
  if (old > 0) forget(old);
}

}  // namespace ccixfer::reliability
