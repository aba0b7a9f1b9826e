// What the segments of one link become: the pieces and packs in them are opened and written. A session has an intake for its own
// source, and one for each helper of its team, whose segments are sealed with other keys and stand in other mailboxes.
// Protocol thread; the writing is done by jobs, which hold the buffers of `inbox`: an intake may go when none is held.
#pragma once
#include <cstdint>

#include "app/recv/file_handler.h"
#include "app/recv/inbox.h"
#include "app/recv/pack_stager.h"
#include "app/recv/piece_writer.h"
#include "app/recv/session_handler.h"
#include "app/recv/session_jobs.h"
#include "app/recv/session_root.h"
#include "app/session/compression.h"
#include "app/session/data_seal.h"
#include "core/base/counters.h"

namespace ccixfer::recv {

// What the intakes of a session share.
struct IntakeParts {
  SessionJobs& jobs;
  SessionRoot& root;
  session::Workspaces& workspaces;
  FileHandler& files;
  Counters& counters;
};

class Intake {
 public:
  // `opener`: of the link's data; none: --insecure. `session`: hears what is wrong with segments of this link.
  Intake(const IntakeParts& parts, const session::DataOpener* opener, Inbox& inbox, SessionHandler& session);
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  // A piece or a pack of which the trailer was opened.
  void receive(ReceivedSegment arrival, const session::SegmentHeader& header, uint64_t entries_decided);

 private:
  PieceWriter pieces_;
  PackStager packs_;
};

}  // namespace ccixfer::recv
