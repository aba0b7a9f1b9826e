// How the sessions of a process share one pool of buffers. Many sessions get on side by side, and one
// that is alone gets all that it can use.
// A buffer that is posted ahead cannot be taken back while its lane lives, and a slow source may leave
// it empty for ever. So only half of the pool is posted ahead, in equal parts; where a part would be
// too small, nothing is. The other half is for sources that ask because they have a segment ready:
// they fill a buffer within a round trip. These buffers are given in the order of asking, so nobody
// starves.
// `lone`: at most one session can exist at a time, and it may post nearly everything ahead.
// Pure; single-threaded. Outlives its sessions.
#pragma once
#include <algorithm>
#include <cstdint>
#include <set>

namespace ccixfer::session {

inline constexpr uint32_t buffers_ahead_min = 4;    // of a session; with fewer its source would mostly stand still
inline constexpr uint32_t buffers_in_turn_min = 2;  // one on its way and one being written

class PoolTurns {
 public:
  PoolTurns(uint32_t buffers, bool lone) : buffers_(buffers), lone_(lone) {}
  PoolTurns(const PoolTurns&) = delete;
  PoolTurns& operator=(const PoolTurns&) = delete;

  void join() { ++sessions_; }
  void leave() { --sessions_; }
  [[nodiscard]] uint32_t sessions() const { return sessions_; }
  // Whether sources have to say that they have a segment ready and no buffer for it.
  [[nodiscard]] bool asks() const { return !lone_ && sessions_ > 1; }
  // How many buffers a session may post before its source asks.
  [[nodiscard]] uint32_t ahead() const {
    if (lone_) return std::max(1u, buffers_ - buffers_ / 8);
    if (sessions_ <= 1) return std::max(1u, buffers_ / 2);
    const uint32_t part = buffers_ / 2 / sessions_;
    return part < buffers_ahead_min ? 0 : part;
  }
  // Whether one more may be posted ahead. A session that came when there were few keeps what it got then, so the parts of all that
  // came one after the other can be more than half.
  [[nodiscard]] bool may_post_ahead() const { return lone_ || posted_ahead_ < std::max(1u, buffers_ / 2); }
  void posted_ahead() { ++posted_ahead_; }
  void ahead_came_back() { --posted_ahead_; }
  // How many buffers a session may hold in all.
  [[nodiscard]] uint32_t share() const {
    if (lone_ || sessions_ <= 1) return std::max(1u, buffers_ - buffers_ / 8);
    return std::max(buffers_in_turn_min, buffers_ / sessions_);
  }

  [[nodiscard]] uint64_t line_up() { return *waiting_.insert(waiting_.end(), next_++); }
  void step_out(uint64_t ticket) { waiting_.erase(ticket); }
  // Whether fewer tickets stand before this one than buffers are free.
  [[nodiscard]] bool is_next(uint64_t ticket, uint32_t free_buffers) const {
    uint32_t before = 0;
    for (auto at = waiting_.begin(); at != waiting_.end() && *at < ticket && before < free_buffers; ++at) ++before;
    return before < free_buffers;
  }

 private:
  const uint32_t buffers_;
  const bool lone_;
  uint32_t sessions_ = 0;
  uint32_t posted_ahead_ = 0;  // of all sessions
  uint64_t next_ = 1;
  std::set<uint64_t> waiting_;
};

}  // namespace ccixfer::session
