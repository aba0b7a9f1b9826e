// Manifest entries as they travel in `entries` segments: prefix-compressed against the entry before, with TLVs (tlv.h) for what
// only some entries have.
// Paths are relative to the session's path, '/'-separated, any bytes but NUL, no empty, '.' or '..' component; "" names the
// session's path itself (the one file sent, or the directory whose content is sent). The decoder refuses anything else.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/hash.h"
#include "core/base/result.h"
#include "core/ports/file_system.h"

namespace ccixfer::session {

enum class EntryType : uint8_t {
  file = 0,
  directory = 1,
  symlink = 2,
  leave = 3,  // all that is in this directory has been listed: its own mode and times may be set once they have ended
};

struct Entry {
  EntryType type = EntryType::file;
  std::string path;
  std::string
      name;  // of a file or link without a path: what the source calls it, for a directory that stands at the session's path
  uint32_t mode = 0;  // 07777
  uint32_t uid = 0, gid = 0;
  uint64_t size_bytes = 0;  // file
  ports::FileTime mtime;
  uint64_t version = 0;     // file: see version_of in app/send/walk.h
  std::string target;       // symlink
  bool has_digest = false;  // --checksum: the file's digest
  Hash128 digest;
  // Decoded: the first TLV that must be understood and that this version does not know; 0: none. Whoever decides on the entry
  // refuses it. Unknown TLVs are not kept, so an entry that is encoded again has none of them.
  uint16_t unknown_mandatory = 0;
};

class EntryEncoder {
 public:
  // Appends; false: does not fit in `into` any more, or entries_per_segment_max are in (nothing counted). Reset by constructing
  // anew for each segment. CHECKs is_safe_relative_path(path) (so at most path_bytes_max: a walk that finds a longer one reports it
  // and does not list it), a name as decode_entries takes it, mode <= 07777, a digest for files only, a symlink's target of 1 to
  // path_bytes_max bytes.
  explicit EntryEncoder(MutableBytes into) : into_(into) {}
  [[nodiscard]] bool add(const Entry& entry);
  [[nodiscard]] uint32_t size_bytes() const { return used_; }
  [[nodiscard]] uint32_t count() const { return count_; }

 private:
  MutableBytes into_;
  uint32_t used_ = 0;
  uint32_t count_ = 0;
  std::string previous_;
};

[[nodiscard]] Result<std::vector<Entry>> decode_entries(
    Bytes data, uint32_t count);  // protocol: malformed; not_authorised: a path or name that leaves the root
[[nodiscard]] bool is_safe_relative_path(std::string_view path);  // the rule above, and at most path_bytes_max
// Digest of a whole file from the hashes of its pieces (a file of 0 bytes has no piece; one of up to 4 MiB has one).
[[nodiscard]] Hash128 file_digest(const std::vector<Hash128>& pieces);

}  // namespace ccixfer::session
