#include "app/recv/lanes.h"

#include <algorithm>

#include "app/session/limits.h"
#include "core/base/check.h"
#include "core/base/log.h"

namespace ccixfer::recv {
namespace {

constexpr uint64_t stripe_mask = session::stripes - 1;
static_assert((session::stripes & stripe_mask) == 0, "a mailbox's base is its number without the low bits");
constexpr int base_attempts_max = 8;
constexpr double rate_burst_bytes = session::segment_bytes_max;

}  // namespace

Lanes::Lanes(session::Link& link, rvma::MailboxTable& mailboxes, memory::Pool& pool, ports::Entropy& entropy,
             uint64_t rate_bytes_per_s)
    : link_(link),
      mailboxes_(mailboxes),
      pool_(pool),
      entropy_(entropy),
      rate_bytes_per_s_(static_cast<double>(rate_bytes_per_s)),
      allowance_bytes_(rate_burst_bytes) {}

Lanes::~Lanes() { CHECK(idle()); }

void Lanes::up(session::LaneIndex index) {
  if (live_.contains(index)) down(index);
  Lane lane;
  lane.index = index;
  lane.key = entropy_.next_u64();
  do {
    lane.lane_session = entropy_.next_u64();
  } while (lane.lane_session == 0);
  Status opened = Status::busy;
  for (int attempt = 0; attempt < base_attempts_max && opened == Status::busy; ++attempt) {
    lane.base = entropy_.next_u64() & ~stripe_mask;
    if (!lanes_.contains(lane.base)) opened = mailboxes_.open(lane.base, {.key = lane.key});
  }
  if (opened != Status::success) {
    log(LogLevel::warning, "lane {}: no mailbox: {}", index, to_string(opened));
    link_.close_lane(index);
    return;
  }
  lane.live = true;
  live_[index] = lane.base;
  link_.post_on_lane(index, session::LaneOpen{lane.lane_session, lane.base, lane.key, session::stripes});
  lanes_.emplace(lane.base, lane);
}

void Lanes::close(Lane& lane) {
  if (!lane.live) return;
  lane.live = false;
  const uint64_t opened = std::clamp<uint64_t>(lane.next_n, 1, session::stripes);
  for (uint64_t stripe = 0; stripe < opened; ++stripe) {
    const Status closed = mailboxes_.close(lane.base + stripe);
    if (closed != Status::success) log(LogLevel::debug, "mailbox {}: close: {}", lane.base + stripe, to_string(closed));
  }
}

void Lanes::forget_if_done(uint64_t base) {
  const auto at = lanes_.find(base);
  if (at != lanes_.end() && !at->second.live && at->second.posted == 0) lanes_.erase(at);
}

void Lanes::down(session::LaneIndex index) {
  const auto at = live_.find(index);
  if (at == live_.end()) return;
  const uint64_t base = at->second;
  live_.erase(at);
  close(lanes_.at(base));
  forget_if_done(base);
}

void Lanes::close_all() {
  while (!live_.empty()) down(live_.begin()->first);
}

bool Lanes::owns(uint64_t mailbox) const { return lanes_.contains(mailbox & ~stripe_mask); }

std::optional<Arrival> Lanes::take(const rvma::Completion& completion) {
  CHECK(completion.context < slots_.size());
  Slot slot = std::move(slots_[completion.context]);
  CHECK(slot.buffer);
  free_slots_.push_back(static_cast<uint32_t>(completion.context));
  Lane& lane = lanes_.at(slot.base);
  CHECK(lane.posted > 0 && posted_total_ > 0);
  --lane.posted;
  --posted_total_;
  const bool filled = completion.status == Status::success;
  const double length = filled ? static_cast<double>(completion.length_bytes) : 0;
  if (rate_bytes_per_s_ > 0) allowance_bytes_ = std::min(allowance_bytes_ + session::segment_bytes_max - length, rate_burst_bytes);
  const uint64_t lane_session = lane.lane_session;
  forget_if_done(slot.base);
  if (!filled) return std::nullopt;
  filled_.push_back({slot.base, slot.n, slot.posted_at});
  trace_hop("[hop 7] mailbox buffer");
  return Arrival{std::move(slot.buffer), completion.length_bytes, lane_session, slot.n};
}

bool Lanes::post(Lane& lane, memory::Loan buffer, Instant now) {
  const uint64_t mailbox = lane.base + (lane.next_n & stripe_mask);
  if (lane.next_n > 0 && lane.next_n < session::stripes) {
    if (const Status opened = mailboxes_.open(mailbox, {.key = lane.key}); opened != Status::success) {
      log(LogLevel::warning, "lane {}: no mailbox: {}", lane.index, to_string(opened));
      return false;
    }
  }
  uint32_t slot = 0;
  if (!free_slots_.empty()) {
    slot = free_slots_.back();
    free_slots_.pop_back();
  } else {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  }
  const MutableBytes memory = buffer.bytes().first(std::min<size_t>(buffer.bytes().size(), session::segment_bytes_max));
  const Status posted = mailboxes_.post(mailbox, memory, slot);
  if (posted != Status::success) {
    free_slots_.push_back(slot);
    log(LogLevel::warning, "lane {}: cannot post: {}", lane.index, to_string(posted));
    return false;
  }
  slots_[slot].buffer = std::move(buffer);
  slots_[slot].base = lane.base;
  slots_[slot].n = lane.next_n;
  slots_[slot].posted_at = now;
  ++lane.next_n;
  ++lane.posted;
  ++posted_total_;
  if (rate_bytes_per_s_ > 0) allowance_bytes_ -= session::segment_bytes_max;
  return true;
}

// A posted buffer is paid for whole; what a put leaves of it comes back. So the cap holds however the credit is used.
void Lanes::refill_rate(Instant now) {
  rate_deadline_ = never;
  if (rate_bytes_per_s_ <= 0) return;
  if (refilled_ && now > *refilled_) {
    const double seconds = std::chrono::duration<double>(now - *refilled_).count();
    allowance_bytes_ = std::min(allowance_bytes_ + seconds * rate_bytes_per_s_, rate_burst_bytes);
  }
  refilled_ = now;
}

void Lanes::judge_windows(Instant now) {
  for (const Filled& filled : filled_) {
    const auto lane = lanes_.find(filled.base);
    if (lane != lanes_.end()) lane->second.window.arrived(filled.n, now - filled.posted_at, lane->second.next_n);
  }
  filled_.clear();
}

void Lanes::turn(Instant now, uint32_t share_buffers, uint32_t buffers_in_jobs) {
  refill_rate(now);
  judge_windows(now);
  if (live_.empty()) return;
  const auto live_count = static_cast<uint32_t>(live_.size());
  const uint32_t target = std::max(1u, share_buffers / live_count);
  std::vector<session::LaneIndex> broken;
  auto at = live_.lower_bound(first_);
  for (uint32_t visited = 0; visited < live_count; ++visited, ++at) {
    if (at == live_.end()) at = live_.begin();
    Lane& lane = lanes_.at(at->second);
    first_ = lane.index;  // the next round begins where this one ran out
    const uint32_t ahead = std::min(target, lane.window.segments());
    while (lane.posted < ahead && posted_total_ + buffers_in_jobs < share_buffers) {
      if (rate_bytes_per_s_ > 0 && allowance_bytes_ <= 0) break;
      memory::Loan buffer = pool_.lend();
      if (!buffer) break;
      if (!post(lane, std::move(buffer), now)) {
        broken.push_back(lane.index);
        break;
      }
    }
    if (lane.next_n != lane.credit) {
      lane.credit = lane.next_n;
      link_.post_on_lane(lane.index, session::Credit{lane.credit});
    }
  }
  for (const session::LaneIndex index : broken) link_.close_lane(index);
  if (rate_bytes_per_s_ > 0 && allowance_bytes_ <= 0) {
    const double seconds = -allowance_bytes_ / rate_bytes_per_s_ + 0.001;
    rate_deadline_ = now + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(seconds, 3600.0)));
  }
}

}  // namespace ccixfer::recv
