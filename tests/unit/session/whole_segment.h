// A segment without encryption, opened as a whole: its trailer and then its data.
#pragma once
#include <functional>
#include <vector>

#include "app/session/segment.h"

namespace ccixfer::session_test {

inline Result<session::SegmentHeader> peek(Bytes segment) { return session::open_trailer(segment); }

// The data are handed to `write`, if it is given, block by block.
inline Result<session::SegmentHeader> open_in_blocks(Bytes segment, const std::function<bool(Bytes, uint64_t)>& write) {
  std::vector<std::byte> copy(segment.begin(), segment.end());
  Result<session::SegmentHeader> header = session::open_trailer(copy);
  if (!header) return header;
  if (auto opened = session::open_data_in_blocks(copy, *header, nullptr, write); !opened) return tl::unexpected(opened.error());
  return header;
}

inline Result<session::SegmentHeader> open(Bytes segment) {
  return open_in_blocks(segment, [](Bytes, uint64_t) { return true; });
}

}  // namespace ccixfer::session_test
