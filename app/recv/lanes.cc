#include "app/recv/lanes.h"

#include <algorithm>
#include <utility>

#include "app/session/limits.h"
#include "app/session/session_keys.h"
#include "core/base/check.h"
#include "core/base/log.h"

namespace ccixfer::recv {
namespace {

constexpr uint64_t stripe_mask = session::stripes - 1;
static_assert((session::stripes & stripe_mask) == 0, "a mailbox's base is its number without the low bits");
constexpr int base_attempts_max = 8;
constexpr Duration pool_retry_pause = std::chrono::milliseconds(10);  // a shared pool tells nobody that a buffer came back

}  // namespace

Lanes::Lanes(session::Link& link, rvma::MailboxTable& mailboxes, memory::Pool& pool, ports::Entropy& entropy,
             std::shared_ptr<session::PoolTurns> turns, std::shared_ptr<RateAllowance> rate)
    : link_(link), mailboxes_(mailboxes), pool_(pool), entropy_(entropy), turns_(std::move(turns)), rate_(std::move(rate)) {
  turns_->join();
}

Lanes::~Lanes() {
  CHECK(idle());
  close_all();
  turns_->leave();
}

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
  if (const session::SessionKeys* keys = link_.keys()) {
    lane.put_key.emplace(keys->puts(lane.lane_session, trust::SealKey::Use::open));
  }
  if (is_long_path_) lane.window.expect_long_path(0);
  lanes_.emplace(lane.base, std::move(lane));
}

void Lanes::close(Lane& lane) {
  if (!lane.live) return;
  lane.live = false;
  step_out(lane);
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

std::optional<ReceivedSegment> Lanes::take(const rvma::Completion& completion) {
  CHECK(completion.context < slots_.size());
  const auto posted_as = static_cast<uint32_t>(completion.context);
  Slot slot = std::move(slots_[posted_as]);
  CHECK(slot.buffer);
  if (slot.is_ahead) turns_->ahead_came_back();
  slots_.release(posted_as);
  Lane& lane = lanes_.at(slot.base);
  CHECK(lane.posted > 0 && posted_total_ > 0);
  --lane.posted;
  --posted_total_;
  const bool filled = completion.status == Status::success;
  rate_->came_back(filled ? completion.length_bytes : 0);
  ReceivedSegment arrival{std::move(slot.buffer), completion.length_bytes, lane.lane_session, slot.n};
  if (filled) {
    trace_stage("[stage 7] mailbox buffer");
    filled_.push_back({slot.base, slot.n, slot.posted_at});
    const Bytes segment = Bytes(arrival.buffer.bytes()).first(static_cast<size_t>(arrival.length_bytes));
    arrival.header = session::open_trailer(segment, lane.put_key ? &*lane.put_key : nullptr, slot.n);
  }
  forget_if_done(slot.base);
  if (!filled) return std::nullopt;
  return arrival;
}

bool Lanes::post(Lane& lane, memory::Loan buffer, bool is_ahead, Instant now) {
  const uint64_t mailbox = lane.base + (lane.next_n & stripe_mask);
  if (lane.next_n > 0 && lane.next_n < session::stripes) {
    if (const Status opened = mailboxes_.open(mailbox, {.key = lane.key}); opened != Status::success) {
      log(LogLevel::warning, "lane {}: no mailbox: {}", lane.index, to_string(opened));
      return false;
    }
  }
  const uint32_t slot = slots_.take();
  const MutableBytes memory = buffer.bytes().first(std::min<size_t>(buffer.bytes().size(), session::segment_bytes_max));
  const Status posted = mailboxes_.post(mailbox, memory, slot);
  if (posted != Status::success) {
    slots_.release(slot);
    log(LogLevel::warning, "lane {}: cannot post: {}", lane.index, to_string(posted));
    return false;
  }
  slots_[slot].buffer = std::move(buffer);
  slots_[slot].base = lane.base;
  slots_[slot].n = lane.next_n;
  slots_[slot].posted_at = now;
  slots_[slot].is_ahead = is_ahead;
  if (is_ahead) turns_->posted_ahead();
  ++lane.next_n;
  ++lane.posted;
  ++posted_total_;
  rate_->posted();
  return true;
}

void Lanes::judge_windows(Instant now) {
  for (const Filled& filled : filled_) {
    const Duration waited = now - filled.posted_at;
    // The first segment of a lane comes a round trip after its credit went. A source that takes so long to list its first files
    // looks the same, and does no harm.
    if (filled.n == 0 && waited >= window_long_path_least && !std::exchange(is_long_path_, true)) {
      for (auto& each : lanes_) each.second.window.expect_long_path(each.second.next_n);
    }
    const auto lane = lanes_.find(filled.base);
    if (lane != lanes_.end()) lane->second.window.arrived(filled.n, waited, lane->second.next_n);
  }
  filled_.clear();
}

bool Lanes::asked(session::LaneIndex index, uint64_t limit) {
  const auto at = live_.find(index);
  if (at == live_.end()) return true;  // it is on its way down
  Lane& lane = lanes_.at(at->second);
  if (limit > lane.credit) return false;
  if (limit == lane.credit) lane.ask_at = limit;  // else credit is under way to it
  return true;
}

void Lanes::step_out(Lane& lane) {
  if (lane.ticket != 0) turns_->step_out(lane.ticket);
  lane.ticket = 0;
}

bool Lanes::post_one(Lane& lane, bool is_ahead, Instant now) {
  if (!rate_->may_post()) return false;
  memory::Loan buffer = pool_.lend();
  if (!buffer) return false;
  if (post(lane, std::move(buffer), is_ahead, now)) return true;
  broken_.push_back(lane.index);
  return false;
}

// A buffer that was asked for, in turn. Who may take none for another reason keeps nobody waiting.
void Lanes::post_asked(Lane& lane, uint32_t room, Instant now) {
  const bool wants = lane.ask_at == lane.next_n && lane.posted == 0 && room > 0 && rate_->may_post();
  if (!wants) return step_out(lane);
  if (lane.ticket == 0) lane.ticket = turns_->line_up();
  if (turns_->is_next(lane.ticket, pool_.free_count()) && post_one(lane, false, now)) return step_out(lane);
  deadline_ = std::min(deadline_, after(now, pool_retry_pause));
}

void Lanes::grant(Lane& lane) {
  if (lane.next_n == lane.credit && turns_->asks() == lane.asks) return;
  lane.credit = lane.next_n;
  lane.asks = turns_->asks();
  link_.post_on_lane(lane.index, session::Credit{lane.credit, lane.asks});
}

void Lanes::turn(Instant now, uint32_t buffers_max, uint32_t buffers_in_jobs) {
  deadline_ = never;
  rate_->refill(now);
  judge_windows(now);
  if (live_.empty()) return;
  const auto live_count = static_cast<uint32_t>(live_.size());
  const uint32_t ahead_of_all = std::min(turns_->ahead(), buffers_max);
  const uint32_t share = std::min(turns_->share(), buffers_max);
  const uint32_t ahead_of_one = ahead_of_all == 0 ? 0 : std::max(1u, ahead_of_all / live_count);
  const auto held = [&] { return posted_total_ + buffers_in_jobs; };
  const auto post_ahead = [&](Lane& lane, uint32_t ahead) {
    ahead = std::min(ahead, lane.window.segments());
    while (lane.posted < ahead && held() < ahead_of_all && turns_->may_post_ahead() && post_one(lane, true, now)) {
    }
  };
  auto at = live_.lower_bound(first_);
  for (uint32_t visited = 0; visited < live_count; ++visited, ++at) {
    if (at == live_.end()) at = live_.begin();
    Lane& lane = lanes_.at(at->second);
    first_ = lane.index;  // the next round begins where this one ran out
    post_ahead(lane, ahead_of_one);
    post_asked(lane, share - std::min(share, held()), now);
    if (ahead_of_one == 0) grant(lane);
  }
  if (ahead_of_one > 0) {  // what is left of the parts, one for each lane
    for (const auto& [index, base] : live_) {
      Lane& lane = lanes_.at(base);
      post_ahead(lane, ahead_of_one + 1);
      grant(lane);
    }
  }
  for (const session::LaneIndex index : std::exchange(broken_, {})) link_.close_lane(index);
  deadline_ = std::min(deadline_, rate_->next_deadline(now));
}

}  // namespace ccixfer::recv
