// How many probes of a silent peer go unanswered before it is taken for lost: of a hop's, and of the far end of a routed
// connection alike.
#pragma once
#include <cstdint>

namespace ccixfer::reliability {

inline constexpr uint32_t keepalive_probes_max = 3;

}  // namespace ccixfer::reliability
