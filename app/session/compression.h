// Compresses the data of segments (-z), and takes them apart again. zstd; each segment by itself, as one frame that says how long
// its content is.
// A workspace (a context, and room for one segment) is lent to a job and used again; there are as many as jobs that ran at once.
// Thread-safe.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "app/session/bottleneck.h"
#include "app/session/segment.h"
#include "core/base/bytes.h"

namespace ccixfer::session {

namespace compression {
struct Workspace;
}

// With eight of them a process stays below the 256 MiB that it may have besides its pool.
inline constexpr size_t workspace_bytes_max = 28u << 20;

class Workspaces {
 public:
  Workspaces() = default;
  ~Workspaces();
  Workspaces(const Workspaces&) = delete;
  Workspaces& operator=(const Workspaces&) = delete;

  // Given back when it ends. For one thread.
  class Lease {
   public:
    explicit Lease(Workspaces& from);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    compression::Workspace& operator*() const { return *space_; }
    [[nodiscard]] size_t memory_bytes() const;  // at most workspace_bytes_max

   private:
    Workspaces& from_;
    std::unique_ptr<compression::Workspace> space_;
  };

 private:
  std::array<std::atomic<compression::Workspace*>, 16> free_{};  // owned; what finds no place is not kept
};

// Of a source.
class Compressor {
 public:
  // `level`: 1 to compress_level_max; 0: the one that `adapt` chooses.
  explicit Compressor(int level) : fixed_(level != 0), level_(level != 0 ? level : 1) {}

  // The compressed form of the data, in the workspace until it is used again. Empty: it would save next to nothing, which a look
  // at some places of the data tells at little cost.
  [[nodiscard]] Bytes compress(Bytes data, const Workspaces::Lease& lease) const;
  [[nodiscard]] Workspaces& workspaces() { return workspaces_; }
  // What the transfer waits for lately: a network that is waited for deserves a higher level, and whoever else is waited for a
  // lower one. To be called now and then.
  void adapt(Bottleneck lately);
  [[nodiscard]] int level() const { return level_.load(std::memory_order_relaxed); }

 private:
  const bool fixed_;
  std::atomic<int> level_;
  Workspaces workspaces_;
};

enum class Decompressed : uint8_t {
  ok,
  damaged,    // on the way: not what was sealed, or has another check than the trailer says
  malformed,  // it came as it was sent, and is no frame of as many bytes as the trailer says: the fault of the peer
};
// Opens the data of a compressed segment and puts the plain data into their place in the buffer, which has segment_bytes_max; the
// header becomes that of a plain segment without a seal, whose hash is still to be checked. Memory: a workspace, whatever the
// data say of themselves.
[[nodiscard]] Decompressed decompress(MutableBytes buffer, SegmentHeader& header, const DataOpener* opener, Workspaces& workspaces);

}  // namespace ccixfer::session
