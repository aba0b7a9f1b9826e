#include "app/trust/refusal_allowance.h"

#include <algorithm>

namespace ccixfer::policy {

bool RefusalAllowance::take(bool is_named, int64_t now_ms) {
  Kind& kind = kinds_[is_named ? 1 : 0];
  const int64_t grown = std::max<int64_t>(0, (now_ms - kind.counted_ms) / refusal_interval_ms);
  if (grown > 0 || now_ms < kind.counted_ms) {
    kind.left = std::min(refusals_at_once_max, kind.left + std::min(grown, refusals_at_once_max));
    kind.counted_ms = now_ms;
  }
  if (kind.left == 0) return false;
  --kind.left;
  return true;
}

}  // namespace ccixfer::policy
