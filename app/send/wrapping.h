// The last steps of a segment that was read into its buffer and hashed: it is compressed (-z), and sealed. In jobs.
#pragma once
#include <memory>

#include "app/session/compression.h"
#include "app/session/data_seal.h"
#include "core/memory/pool.h"

namespace ccixfer::send {

// Shared by the jobs of a source; each may be missing.
struct Wrapping {
  std::shared_ptr<session::DataSealer> sealer{};
  std::shared_ptr<session::Compressor> compressor{};
};

struct Wrapped {
  uint32_t data_bytes = 0;        // in the buffer
  uint32_t plain_bytes = 0;       // 0: it is not compressed
  uint64_t compressed_check = 0;  // without a sealer
  session::DataMark mark;
};
// `data_bytes` of the buffer, which may show a file unless there is a sealer. Where something is saved, the compressed data take
// their place; then they are sealed.
[[nodiscard]] Wrapped wrap(const Wrapping& wrapping, memory::Loan& buffer, uint32_t data_bytes);

inline void put_into(const Wrapped& wrapped, session::SegmentHeader& header) {
  header.data_bytes = wrapped.data_bytes;
  header.plain_bytes = wrapped.plain_bytes;
  header.compressed_check = wrapped.compressed_check;
  header.mark = wrapped.mark;
}

}  // namespace ccixfer::send
