// What went in each of the last sent_puts_max puts. A destination that got a damaged segment cannot
// read what was in it: its Resend names the put, and the content is looked up here. More puts than
// these are never between a put and the release of its buffer at the destination.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "app/session/segment.h"
#include "core/base/ring_buffer.h"

namespace ccixfer::send {

inline constexpr size_t sent_puts_max = 1024;

struct SentPut {
  session::SegmentHeader header;
  std::vector<uint64_t> files;  // of a pack
};

class SentPuts {
 public:
  void add(const session::SegmentHeader& header, const std::vector<uint64_t>& files) {
    puts_.push_back({header, files});
    if (puts_.size() > sent_puts_max) puts_.drop_front();
  }
  // The last one of that number, until the next add(). nullptr: none, or too long ago.
  [[nodiscard]] const SentPut* find(uint64_t lane_session, uint64_t n) const {
    for (size_t i = puts_.size(); i > 0; --i) {
      const session::SegmentHeader& header = puts_[i - 1].header;
      if (header.lane_session == lane_session && header.n == n) return &puts_[i - 1];
    }
    return nullptr;
  }

 private:
  RingBuffer<SentPut> puts_;
};

}  // namespace ccixfer::send
