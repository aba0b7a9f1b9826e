// Where the pieces of a large file go when it is not the session's own lanes: to a second receiver (second_path.h). They are
// wrapped for it as they are read, so a route is chosen before that. Protocol thread.
#pragma once
#include <cstdint>
#include <memory>

#include "app/send/segment_sink.h"
#include "app/send/wrapping.h"

namespace ccixfer::send {

struct PieceRoute {
  SegmentSink* sink = nullptr;  // while it is open
  Wrapping wrapping;
  uint64_t index = 0;      // what the file is called there
  bool is_closed = false;  // what was wrapped for it is of no use: it is read again
};

class PieceRoutes {
 public:
  virtual ~PieceRoutes() = default;
  // nullptr: the session's own.
  [[nodiscard]] virtual std::shared_ptr<const PieceRoute> route_of(uint64_t index) = 0;
  virtual void file_ended(uint64_t index) = 0;
};

}  // namespace ccixfer::send
