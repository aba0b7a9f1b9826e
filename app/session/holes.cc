#include "app/session/holes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "app/session/limits.h"
#include "core/base/check.h"

namespace ccixfer::session {

uint64_t HoleFinder::next_data(uint64_t offset_bytes) {
  constexpr uint64_t end_of_all = ~uint64_t{0};
  if (!asked_ || offset_bytes < asked_from_ || (offset_bytes >= end_ && begin_ != end_of_all)) {
    asked_ = true;
    asked_from_ = offset_bytes;
    const int error = files_.next_data(fd_, offset_bytes, begin_, end_);
    if (error == -ENXIO) {
      begin_ = end_ = end_of_all;
    } else if (error < 0) {
      begin_ = offset_bytes;
      end_ = end_of_all;
    }
  }
  return std::max(begin_, offset_bytes);
}

bool HoleFinder::is_hole(uint64_t offset_bytes, uint64_t bytes) {
  const uint64_t data_at = next_data(offset_bytes);
  return data_at >= offset_bytes && data_at - offset_bytes >= bytes;
}

std::vector<Want::Range> find_holes(ports::FileSystem& files, int fd, uint64_t size_bytes) {
  ports::FileStat stat;
  if (files.fstat(fd, stat) < 0 || stat.allocated_bytes >= size_bytes) return {};
  static_cast<void>(files.fsync(fd));  // where it cannot be, it was not written here
  if (files.fstat(fd, stat) < 0 || stat.allocated_bytes >= size_bytes) return {};
  std::vector<Want::Range> holes;
  HoleFinder finder(files, fd);
  const uint64_t pieces = size_bytes / piece_bytes + (size_bytes % piece_bytes != 0 ? 1 : 0);
  uint64_t data_bytes = 0;
  for (uint64_t piece = 0; piece < pieces;) {
    // At most one look for each piece, and one for each run of data.
    const uint64_t data_at = holes.size() < hole_runs_max ? std::min(finder.next_data(piece * piece_bytes), size_bytes) : 0;
    const uint64_t data_piece = data_at == size_bytes ? pieces : std::max(piece, data_at / piece_bytes);
    if (data_piece > piece) holes.push_back({piece, data_piece - piece});
    if (data_piece < pieces) data_bytes += piece_bytes;
    piece = data_piece + 1;
  }
  // Room for what describes where the data are, and for what file systems allocate ahead.
  const uint64_t explained_bytes = data_bytes + data_bytes / 4 + (1u << 20);
  if (stat.allocated_bytes > explained_bytes) return {};
  return holes;
}

Hash128 hash_of_zeros(uint64_t bytes) {
  CHECK(bytes <= piece_bytes);
  static const std::vector<std::byte> zeros(piece_bytes);
  static const Hash128 whole = xxh3_128(zeros);
  return bytes == piece_bytes ? whole : xxh3_128(Bytes(zeros).first(static_cast<size_t>(bytes)));
}

// Each byte is the one before, and the first is zero.
bool is_all_zeros(Bytes data) {
  return data.empty() || (data.front() == std::byte{0} && std::memcmp(data.data(), data.data() + 1, data.size() - 1) == 0);
}

}  // namespace ccixfer::session
