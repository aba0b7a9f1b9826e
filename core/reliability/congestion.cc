#include "core/reliability/congestion.h"

#include "core/reliability/bbr.h"
#include "core/reliability/new_reno.h"

namespace ccixfer::reliability {

std::unique_ptr<CongestionControl> make_congestion_control(Congestion kind, uint32_t datagram_bytes, uint64_t seed) {
  if (kind == Congestion::bbr) return std::make_unique<Bbr>(datagram_bytes, seed);
  return std::make_unique<NewReno>(datagram_bytes);
}

}  // namespace ccixfer::reliability
