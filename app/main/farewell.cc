#include "app/main/farewell.h"

namespace ccixfer::program {

void abort_session(session::Link& link, TransferRole* role, const Error& why) {
  if (role != nullptr) return role->abort(why);
  link.post(session::Abort{why.kind, why.message});
}

void Farewell::begin(Instant now, Duration patience, bool tells_peer) {
  begun_ = true;
  told_ = !tells_peer;
  until_ = after(now, patience);
}

Farewell::Stage Farewell::turn(const session::Link& link, const TransferRole* role, Instant now) {
  told_ = told_ || link.messages_delivered() || link.live_lanes().empty() || is_late(now);
  if (!told_) return Stage::telling_peer;
  return role != nullptr && !role->idle() ? Stage::waiting_for_role : Stage::over;
}

}  // namespace ccixfer::program
