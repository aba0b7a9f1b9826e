// Packs as they arrive: the small files in each are written to staging by a job that holds the
// buffer, and then wait for the committer.
// Protocol thread; `stage` runs in a job.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "app/recv/file_handler.h"
#include "app/recv/inbox.h"
#include "app/recv/packs.h"
#include "app/recv/session_handler.h"
#include "app/recv/session_jobs.h"
#include "app/session/segment.h"

namespace ccixfer::recv {

class PackStager {
 public:
  // Stages the files whose content is in the segment. False: it is damaged, and none of them was
  // touched.
  using Stage = std::function<bool(Bytes segment, std::vector<PackItem>& items)>;
  PackStager(SessionJobs& jobs, Stage stage, Inbox& inbox, FileHandler& files, SessionHandler& session)
      : jobs_(jobs), stage_(std::move(stage)), inbox_(inbox), files_(files), session_(session) {}
  PackStager(const PackStager&) = delete;
  PackStager& operator=(const PackStager&) = delete;

  // A segment of which only the trailer has been checked.
  void receive(ReceivedSegment arrival, const session::SegmentHeader& header);

 private:
  [[nodiscard]] bool take_wanted(const ReceivedSegment& arrival, const session::SegmentHeader& header,
                                 std::vector<PackItem>& items);
  void staged(std::vector<PackItem>& items, bool is_damaged);
  void staged_one(FileInWork& file, PackItem& item, bool is_damaged);

  SessionJobs& jobs_;
  const Stage stage_;
  Inbox& inbox_;
  FileHandler& files_;
  SessionHandler& session_;
};

}  // namespace ccixfer::recv
