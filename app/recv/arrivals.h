// What becomes of each buffer that a put has filled, before anything is written: it is of the session that it says, it counts, and
// it goes to those who read entries or write content. It comes from the session's own source, or from a helper of its team.
// Protocol thread.
#pragma once
#include "app/recv/budget.h"
#include "app/recv/entry_queue.h"
#include "app/recv/inbox.h"
#include "app/recv/intake.h"
#include "app/recv/results.h"
#include "app/recv/session_end.h"
#include "app/recv/session_handler.h"
#include "app/session/liveness.h"

namespace ccixfer::recv {

// The link that segments come from, and who hears what is wrong with them.
struct Feed {
  Inbox& inbox;
  Intake& intake;
  SessionHandler& handler;
  uint64_t session = 0;
  bool lists = false;  // entries may come from there
};

class Arrivals {
 public:
  Arrivals(SessionHandler& session, const SessionEnd& end, Results& results, Budget& budget, session::Liveness& liveness,
           EntryQueue& entries)
      : session_(session), end_(end), results_(results), budget_(budget), liveness_(liveness), entries_(entries) {}
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  void receive(ReceivedSegment arrival, const Feed& feed);

 private:
  SessionHandler& session_;
  const SessionEnd& end_;
  Results& results_;
  Budget& budget_;
  session::Liveness& liveness_;
  EntryQueue& entries_;
};

}  // namespace ccixfer::recv
