#include "routing/transport/far_end_watch.h"

#include <algorithm>
#include <utility>

namespace ccixfer::routing {

void FarEndWatch::ask(Duration timeout) {
  asked_timeout_ = timeout == forever ? Duration::zero() : timeout;
  asked_ = unstamped_ = true;
}

void FarEndWatch::heard(Instant now) {
  heard_at_ = now;
  probes_ = 0;
}

FarEndWatch::Look FarEndWatch::look(Instant now, Duration keepalive) {
  if (std::exchange(unstamped_, false)) asked_at_ = now;
  return asked_ ? look_after_asked(now) : look_after_keepalive(now, keepalive);
}

FarEndWatch::Look FarEndWatch::look_after_keepalive(Instant now, Duration keepalive) {
  if (keepalive <= Duration::zero()) return {};
  const Instant due = heard_at_ + keepalive * (probes_ + 1);
  if (due > now) return {Verdict::quiet, due};
  if (probes_ >= keepalive_probes_max) return {Verdict::lost, never};
  ++probes_;
  return {Verdict::probe, now + keepalive};
}

FarEndWatch::Look FarEndWatch::look_after_asked(Instant now) {
  if (asked_timeout_ <= Duration::zero()) return {};
  const Instant since = std::max(heard_at_, asked_at_);
  const Instant end = since + asked_timeout_;
  if (end <= now) {
    asked_timeout_ = Duration::zero();
    return {Verdict::tell, never};
  }
  const Instant half = since + asked_timeout_ / 2;
  return half <= now ? Look{Verdict::probe, end} : Look{Verdict::quiet, half};
}

}  // namespace ccixfer::routing
