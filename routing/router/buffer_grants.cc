#include "routing/router/buffer_grants.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ccixfer::routing {

BufferGrants::BufferGrants(const RouterMechanisms& mechanisms, uint64_t rate_bytes_per_s, FragmentPool& pool,
                           const ConnectionTable& connections, const StoodStill& stood_still, const Devices& devices)
    : mechanisms_(mechanisms),
      rate_(rate_bytes_per_s),
      pool_(pool),
      connections_(connections),
      stood_still_(stood_still),
      devices_(devices) {}

void BufferGrants::queue(RelayedConnection& connection, uint8_t data_class, const WaitingFragment& fragment) {
  if (connection.fragments.wait(data_class, fragment)) turns_[data_class].push_back(connection.ref(0));
}

// A connection that was passed over for want of its share only keeps its place, or those on trial
// would be served after all the others.
std::optional<GrantedBuffer> BufferGrants::next(uint8_t data_class, Instant now) {
  std::optional<GrantedBuffer> granted = next_in_turn(data_class, now);
  for (size_t i = passed_over_.size(); i > 0; --i) turns_[data_class].push_front(passed_over_[i - 1]);
  passed_over_.clear();
  return granted;
}

std::optional<GrantedBuffer> BufferGrants::next_in_turn(uint8_t data_class, Instant now) {
  auto& turn = turns_[data_class];
  for (size_t left = turn.size(); left > 0; --left) {
    if (rate_.is_used_up(now)) return std::nullopt;
    const uint64_t packed = turn.pop_front();
    RelayedConnection* connection = connections_.find(packed);
    if (connection == nullptr) continue;
    const WaitingFragment* waiting = connection->fragments.first_waiting(data_class);
    if (waiting == nullptr) {
      connection->fragments.leave_turn(data_class);
      continue;
    }
    const Share share = share_of(*connection, now);
    if (must_wait(*connection, waiting->from, share)) {
      turn.push_back(packed);
      continue;
    }
    const bool shared = has_left(share);
    memory::Loan buffer = take(*connection, data_class, shared);
    if (!buffer && !mechanisms_.turns) {
      turn.push_front(packed);
      return std::nullopt;
    }
    if (!buffer) {
      shared ? turn.push_back(packed) : passed_over_.push_back(packed);
      continue;
    }
    const WaitingFragment fragment = *waiting;
    take_turn(*connection, data_class);
    connection->fragments.take_buffer(fragment.from);
    ++shares_[static_cast<size_t>(share)];
    rate_.use(fragment.length_bytes, now);
    return GrantedBuffer{fragment.fragment, std::move(buffer), share};
  }
  return std::nullopt;
}

memory::Loan BufferGrants::take(const RelayedConnection& connection, uint8_t data_class, bool shared) {
  memory::Loan buffer = pool_.take(data_class, connection.fragments.buffers(), shared);
  if (!buffer && connection.progress.stands < stalled_after) (shared ? pressed_.buffers : pressed_.trial) = true;
  return buffer;
}

// The first fragment that waits has its buffer. The connection is behind all others now, if another
// fragment of it waits.
void BufferGrants::take_turn(RelayedConnection& connection, uint8_t data_class) {
  connection.fragments.drop_first_waiting(data_class);
  if (connection.fragments.first_waiting(data_class) == nullptr) {
    connection.fragments.leave_turn(data_class);
  } else if (mechanisms_.turns) {
    turns_[data_class].push_back(connection.ref(0));
  } else {
    turns_[data_class].push_front(connection.ref(0));
  }
}

Share BufferGrants::share_of(const RelayedConnection& connection, Instant now) const {
  if (!mechanisms_.progress) return Share::full;
  return stood_still_.share_of(connection.ends, connection.fragments.proven_at(), now);
}

// Half of the shared buffers are for those that have shown that both their ends move, whatever the
// others do.
bool BufferGrants::has_left(Share share) const {
  const uint32_t parts = share == Share::trial ? 2 : 8;
  return share == Share::full || shares_[static_cast<size_t>(share)] < std::max(1u, pool_.shared_count() / parts);
}

// The connection holds what it may hold, for now or until it moves. Both count the buffers of one
// direction: if they counted those of both together, two routers, each full of what goes to the
// other, would wait for one another.
bool BufferGrants::must_wait(const RelayedConnection& connection, uint8_t from, Share share) const {
  const uint32_t held = connection.fragments.buffers(from);
  if (mechanisms_.windows && held >= window(connection)) return true;
  if (!mechanisms_.progress || held == 0) return false;
  return share != Share::full || connection.progress.stands >= stalled_after;
}

// Buffers that keep both networks of a connection busy: twice what is on its way while we wait for
// them. More would only be cold in the processor's cache, and wait here instead of at its source.
// Where nobody knows the rate of a network only the pool bounds them.
uint32_t BufferGrants::window(const RelayedConnection& connection) const {
  double fragments_busy = 0;
  for (const Leg& leg : connection.legs) {
    const uint64_t bits_per_s = devices_[leg.device].rate_bits_per_s;
    if (bits_per_s == 0) return UINT32_MAX;
    const Duration wait_time = leg.traffic.wait;
    const double wait = wait_time == forever ? 0 : std::chrono::duration<double>(wait_time).count();
    const double busy = 2 * (static_cast<double>(bits_per_s) / 8) * wait / pool_.fragment_bytes();
    fragments_busy += std::max<double>(window_fragments_min, busy);
  }
  return static_cast<uint32_t>(std::min<double>(std::ceil(fragments_busy), UINT32_MAX));
}

Instant BufferGrants::next_deadline(Instant now) const {
  const bool waiting = std::any_of(turns_.begin(), turns_.end(), [](const auto& turn) { return !turn.empty(); });
  return waiting ? rate_.next_deadline(now) : never;
}

}  // namespace ccixfer::routing
