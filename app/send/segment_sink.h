// What the stages that fill segments hand to the stage that puts them.
#pragma once
#include <cstdint>
#include <vector>

#include "app/send/buffer_share.h"
#include "app/session/segment.h"

namespace ccixfer::send {

struct FilledSegment {
  Buffer buffer;
  session::SegmentHeader header;  // complete, but for what the put adds: session, lane session and n
  std::vector<uint64_t> files;    // of a pack: their indices
  uint64_t payload_bytes = 0;     // content of files
  bool resend = false;            // the destination has asked for it again
};

class SegmentSink {
 public:
  virtual ~SegmentSink() = default;
  virtual void add(FilledSegment&& segment) = 0;
};

}  // namespace ccixfer::send
