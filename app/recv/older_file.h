// The file that a new version is about to replace, or the one that an older tree has in its place: pieces of it may be pieces of
// the new version too. Each is hashed, and copied into the staged file on the way, because most are the same as a rule.
// It may change, shrink or vanish at any time. What was copied is what was hashed, so that does no harm.
// Opened by the first job that needs it; closed with its last owner. Thread-safe.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "app/recv/directories.h"
#include "app/recv/opened_root.h"
#include "app/recv/pieces.h"

namespace ccixfer::recv {

class OlderFile {
 public:
  // At `path` below the root.
  OlderFile(OpenedRoot& root, KnownDirectories& directories, std::string path, uint64_t size_bytes)
      : root_(root), directories_(directories), path_(std::move(path)), size_bytes_(size_bytes) {}
  // At `path` in the tree below `top`. Thousands of files may wait to be compared: none holds a directory.
  OlderFile(OpenedRoot& root, KnownDirectories& directories, HeldFileRef top, std::string path, uint64_t size_bytes)
      : root_(root), directories_(directories), path_(std::move(path)), size_bytes_(size_bytes), top_(std::move(top)) {}
  OlderFile(const OlderFile&) = delete;
  OlderFile& operator=(const OlderFile&) = delete;

  // It was long enough to have all of that piece of a file of `file_bytes`.
  [[nodiscard]] bool may_have(uint64_t file_bytes, uint64_t piece) const {
    return piece * session::piece_bytes + piece_length(file_bytes, piece) <= size_bytes_;
  }

  struct Taken {
    std::optional<Hash128> hash;  // of what it has there; none: it cannot be read there
    int error_number = 0;         // the staged file could not be written
  };
  // For jobs. `staged`: where the piece is copied to; nullptr: it is only hashed.
  [[nodiscard]] Taken take(StagedFile* staged, uint64_t file_bytes, uint64_t piece, const Owner& owner);

 private:
  [[nodiscard]] HeldFileRef open();
  [[nodiscard]] bool clone(const HeldFile& from, StagedFile& staged, const HeldFile& to, uint64_t offset_bytes, uint64_t bytes);
  [[nodiscard]] Taken copy(const HeldFile& from, StagedFile* staged, const HeldFileRef& to, uint64_t offset_bytes, uint64_t bytes,
                           const Owner& owner);

  OpenedRoot& root_;
  KnownDirectories& directories_;
  const std::string path_;
  const uint64_t size_bytes_;
  const HeldFileRef top_;
  std::mutex mutex_;
  bool was_opened_ = false;
  HeldFileRef file_;
  std::atomic<bool> clones_{true};  // no attempt has failed
};

}  // namespace ccixfer::recv
