#include "routing/router/record_bucket.h"

#include <algorithm>

namespace ccixfer::routing {

bool RecordBucket::take(Instant now) {
  if (left < burst && now >= next) {
    const int64_t earned = (now - next) / gap + 1;
    left = static_cast<uint32_t>(std::min<int64_t>(burst, left + earned));
    next += earned * gap;
  }
  if (left == 0) return false;
  if (left == burst) next = after(now, gap);
  --left;
  return true;
}

}  // namespace ccixfer::routing
