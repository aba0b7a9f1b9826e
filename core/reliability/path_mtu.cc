#include "core/reliability/path_mtu.h"

#include <algorithm>
#include <array>

namespace ccixfer::reliability {
namespace {

constexpr uint32_t usual = 1472;  // Ethernet's 1,500 less IPv4 and UDP
// What is left of usual MTUs by IPv4 and by IPv6: 1,280; 1,420 of tunnels; 1,492 of PPPoE; 1,500; 2,044 and 4,092 of InfiniBand;
// 8,896 of clouds; 9,000.
constexpr std::array<uint32_t, 15> sizes = {1232, 1252, 1372, 1392, 1444, 1452, 1464, usual,
                                            1996, 2016, 4044, 4064, 8848, 8868, 8952};

}  // namespace

uint32_t PathMtu::next_size() const {
  if (good_ < usual && usual < bad_ && usual <= most_) return usual;
  if (bad_ > most_) return good_ < most_ ? most_ : 0;
  const auto first = std::upper_bound(sizes.begin(), sizes.end(), good_);
  const auto last = std::lower_bound(first, sizes.end(), bad_);
  return first == last ? 0 : *(first + (last - first) / 2);
}

uint32_t PathMtu::probe_due(Instant now) {
  if (probing_ != 0) return 0;
  if (phase_ == Phase::complete) {
    if (raise_at_ > now || good_ >= most_) return 0;
    begin(Phase::searching);
  }
  const uint32_t bytes = next_size();
  if (bytes != 0) return bytes;
  phase_ = Phase::complete;
  raise_at_ = after(now, raise_after);
  return 0;
}

void PathMtu::begin(Phase phase) {
  phase_ = phase;
  bad_ = most_ + 1;
  lost_probes_ = 0;
}

void PathMtu::probe_acked(uint32_t bytes) {
  probing_ = 0;
  lost_probes_ = 0;
  lost_in_a_row_ = 0;
  good_ = std::max(good_, bytes);
  if (phase_ == Phase::base) phase_ = Phase::searching;
}

void PathMtu::probe_lost(uint32_t bytes) {
  probing_ = 0;
  if (bytes <= good_ || ++lost_probes_ < probes_per_size) return;
  lost_probes_ = 0;
  bad_ = std::min(bad_, bytes);
}

void PathMtu::acked(uint64_t number, uint32_t bytes) {
  if (bytes <= base_) return;
  newest_long_acked_ = std::max(newest_long_acked_, number + 1);
  lost_in_a_row_ = 0;
}

void PathMtu::lost(uint64_t number, uint32_t bytes) {
  if (bytes <= base_ || good_ <= base_ || number < newest_long_acked_) return;
  if (++lost_in_a_row_ < black_hole_losses) return;
  lost_in_a_row_ = 0;
  good_ = base_;
  begin(Phase::base);
}

}  // namespace ccixfer::reliability
