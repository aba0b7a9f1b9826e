// Packs as they arrive: the small files in each are written to staging by a job that holds the
// buffer, and then wait for the committer. The list of a sealed pack can be read only when its data
// are opened, which is a job before that one.
// Protocol thread; `open` and `stage` run in jobs.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "app/recv/file_handler.h"
#include "app/recv/inbox.h"
#include "app/recv/packs.h"
#include "app/recv/session_handler.h"
#include "app/recv/session_jobs.h"
#include "app/session/compression.h"
#include "app/session/segment.h"

namespace ccixfer::recv {

struct PackSteps {
  std::function<bool(MutableBytes segment, const session::SegmentHeader& header)>
      open;  // opens the sealed data; false: they are damaged
  std::function<void(std::vector<PackItem>& items)> stage;
  // Opens and checks a whole compressed segment in `buffer`. Afterwards that is a plain segment without a seal.
  std::function<session::Decompressed(MutableBytes buffer, session::SegmentHeader& header)> decompress = {};
};

class PackStager {
 public:
  PackStager(SessionJobs& jobs, PackSteps steps, bool is_sealed, Inbox& inbox, FileHandler& files, SessionHandler& session)
      : jobs_(jobs), steps_(std::move(steps)), is_sealed_(is_sealed), inbox_(inbox), files_(files), session_(session) {}
  PackStager(const PackStager&) = delete;
  PackStager& operator=(const PackStager&) = delete;

  // A segment of which only the trailer has been opened.
  void receive(ReceivedSegment arrival, const session::SegmentHeader& header);

 private:
  struct Work {
    ReceivedSegment arrival;
    session::SegmentHeader header;
    bool is_open = false;
    bool is_damaged = false;
    bool is_malformed = false;
    std::vector<PackItem> items;
  };
  void open(Work& work) const;
  void take(const std::shared_ptr<Work>& work);
  void damaged(Work& work);
  [[nodiscard]] bool take_wanted(const ReceivedSegment& arrival, const session::SegmentHeader& header,
                                 std::vector<PackItem>& items);
  void staged(std::vector<PackItem>& items, bool is_damaged);
  void staged_one(FileInWork& file, PackItem& item, bool is_damaged);

  SessionJobs& jobs_;
  const PackSteps steps_;
  const bool is_sealed_;
  Inbox& inbox_;
  FileHandler& files_;
  SessionHandler& session_;
};

}  // namespace ccixfer::recv
