#include "app/send/session_course.h"

#include "core/base/check.h"

namespace ccixfer::send {
void SessionCourse::open() {
  CHECK(!open_);
  open_ = true;
}

void SessionCourse::listing_over(const session::End& end) {
  if (std::exchange(end_said_, true)) return;
  link_.post(end);
}

void SessionCourse::summary_came() {
  summary_ = true;
  link_.post(session::Bye{});
}

void SessionCourse::fail(const Error& error) {
  if (error_) return;
  if (open_) link_.post(session::Abort{error.kind, error.message});  // before, whoever dialled tells the peer
  error_ = error;
}

void SessionCourse::judge(const Result<void>& judgement) {
  if (judgement) return;
  if (judgement.error().kind == ErrorKind::protocol) counters_.add(Counter::session_rejected);
  fail(judgement.error());
}

void SessionCourse::ended_by_peer(const Error& error) { error_ = error; }

void SessionCourse::link_lost(const Error& error) {
  link_lost_ = true;
  if (!summary_ && !error_) error_ = error;
}

// A goodbye that nobody hears any more is no reason to begin anew.
bool SessionCourse::finished(bool has_lanes) const {
  const bool nobody_hears = link_lost_ || !has_lanes;
  return error_.has_value() || (summary_ && (nobody_hears || link_.messages_delivered()));
}

}  // namespace ccixfer::send
