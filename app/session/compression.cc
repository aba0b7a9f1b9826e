#include "app/session/compression.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include "app/session/limits.h"
#include "core/base/check.h"

namespace ccixfer::session {
namespace compression {

struct Workspace {
  Workspace() : compresses(ZSTD_createCCtx()), decompresses(ZSTD_createDCtx()), room(ZSTD_compressBound(piece_bytes)) {
    if (compresses == nullptr || decompresses == nullptr) throw std::bad_alloc();
  }
  ~Workspace() {
    ZSTD_freeCCtx(compresses);
    ZSTD_freeDCtx(decompresses);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ZSTD_CCtx* compresses;
  ZSTD_DCtx* decompresses;
  std::vector<std::byte> room;
};

}  // namespace compression

namespace {

constexpr size_t sample_bytes = 16u << 10;
constexpr size_t samples = 4;
constexpr int table_log_max = 21;  // of entries of four bytes
constexpr std::array levels = {-5, -3, -1, 1, 2, 3,
                               4,  5,  6,  7, 9};  // that `adapt` chooses from; each costs more than the one before

// A sixteenth at least.
bool saves_something(size_t compressed_bytes, size_t bytes) { return compressed_bytes < bytes - bytes / 16; }

// By a look at some places.
bool may_be_compressed(Bytes data, compression::Workspace& space) {
  if (data.size() <= 2 * samples * sample_bytes) return true;  // to try it is as cheap
  size_t compressed_bytes = 0;
  for (size_t i = 0; i < samples; ++i) {
    const Bytes sample = data.subspan((data.size() - sample_bytes) / (samples - 1) * i, sample_bytes);
    const size_t bytes = ZSTD_compressCCtx(space.compresses, space.room.data(), space.room.size(), sample.data(), sample.size(), 1);
    if (ZSTD_isError(bytes) != 0) return false;
    compressed_bytes += bytes;
  }
  return saves_something(compressed_bytes, samples * sample_bytes);
}

// Tables of more than 8 MiB would take some 50 MB a thread at the highest levels, and win little within a piece.
size_t compress_whole(compression::Workspace& space, Bytes data, int level) {
  ZSTD_CCtx* const context = space.compresses;
  const auto set = [context](ZSTD_cParameter parameter, int value) {
    CHECK(ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) == 0);
  };
  CHECK(ZSTD_isError(ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters)) == 0);
  set(ZSTD_c_compressionLevel, level);
  if (level > levels.back()) set(ZSTD_c_chainLog, table_log_max);
  if (level > levels.back()) set(ZSTD_c_hashLog, table_log_max);
  return ZSTD_compress2(context, space.room.data(), space.room.size(), data.data(), data.size());
}

}  // namespace

Workspaces::~Workspaces() {
  for (const auto& place : free_) delete place.load();
}

Workspaces::Lease::Lease(Workspaces& from) : from_(from) {
  for (auto& place : from_.free_) {
    space_.reset(place.exchange(nullptr));
    if (space_) return;
  }
  space_ = std::make_unique<compression::Workspace>();
}

Workspaces::Lease::~Lease() {
  for (auto& place : from_.free_) {
    compression::Workspace* nothing = nullptr;
    if (!place.compare_exchange_strong(nothing, space_.get())) continue;
    static_cast<void>(space_.release());
    return;
  }
}

size_t Workspaces::Lease::memory_bytes() const {
  return ZSTD_sizeof_CCtx(space_->compresses) + ZSTD_sizeof_DCtx(space_->decompresses) + space_->room.size();
}

Bytes Compressor::compress(Bytes data, const Workspaces::Lease& lease) const {
  CHECK(data.size() <= piece_bytes);
  compression::Workspace& space = *lease;
  if (!may_be_compressed(data, space)) return {};
  const size_t bytes = compress_whole(space, data, level());
  if (ZSTD_isError(bytes) != 0 || !saves_something(bytes, data.size())) return {};
  return Bytes(space.room).first(bytes);
}

void Compressor::adapt(Bottleneck lately) {
  if (fixed_) return;
  const auto at = std::find(levels.begin(), levels.end(), level());
  CHECK(at != levels.end());
  switch (lately) {
    case Bottleneck::network:
    case Bottleneck::rate_cap:
      if (at + 1 != levels.end()) level_.store(*(at + 1), std::memory_order_relaxed);
      return;
    case Bottleneck::source_disk:  // and its processors, which fill segments
    case Bottleneck::destination_disk:
      if (at != levels.begin()) level_.store(*(at - 1), std::memory_order_relaxed);
      return;
    case Bottleneck::none:
    case Bottleneck::source_or_network:
      return;
  }
}

Decompressed decompress(MutableBytes buffer, SegmentHeader& header, const DataOpener* opener, Workspaces& workspaces) {
  CHECK(header.is_compressed() && header.plain_bytes <= piece_bytes && buffer.size() >= piece_bytes);
  const MutableBytes data = buffer.first(header.data_bytes);
  OpeningPass pass(opener, header.mark);
  pass.update(data);
  if (!pass.finish()) return Decompressed::damaged;
  if (opener == nullptr && xxh3_64(data) != header.compressed_check) return Decompressed::damaged;
  // One frame, of so many bytes: what is longer than it says is refused before it needs memory.
  if (ZSTD_getFrameContentSize(data.data(), data.size()) != header.plain_bytes) return Decompressed::malformed;
  const Workspaces::Lease lease(workspaces);
  compression::Workspace& space = *lease;
  const size_t bytes = ZSTD_decompressDCtx(space.decompresses, space.room.data(), header.plain_bytes, data.data(), data.size());
  if (ZSTD_isError(bytes) != 0 || bytes != header.plain_bytes) return Decompressed::malformed;
  std::copy_n(space.room.begin(), bytes, buffer.begin());
  header.data_bytes = header.plain_bytes;
  header.plain_bytes = 0;
  header.compressed_check = 0;
  header.mark = {};
  return Decompressed::ok;
}

}  // namespace ccixfer::session
