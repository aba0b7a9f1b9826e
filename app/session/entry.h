// Manifest entries as they travel in entries segments: paths are prefix-compressed against the entry
// before, and what only some entries have stands in TLVs (tlv.h).
// A path is relative to the session's path. It may have any bytes but NUL and no empty, '.' or '..'
// component; '/' separates components. "" names the session's path itself: the one file that is sent,
// or the directory whose content is sent. The decoder refuses anything else.
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
  leave = 3,  // everything in this directory was listed: its mode and times are due when that has ended
  device = 4,
  special = 5,  // a FIFO or a socket
};

// An extended attribute, or an access control list under the name that the kernel has for it.
struct ExtendedAttribute {
  std::string name;
  std::string value;
  friend bool operator==(const ExtendedAttribute&, const ExtendedAttribute&) = default;
};

struct Entry {
  EntryType type = EntryType::file;
  std::string path;
  // Of a file or link without a path: its name at the source, which it gets in a directory that stands
  // at the session's path.
  std::string name;
  uint32_t mode = 0;  // 07777
  uint32_t uid = 0, gid = 0;
  uint64_t size_bytes = 0;  // file
  ports::FileTime mtime;
  uint64_t version = 0;  // file: see version_of in app/send/walk.h
  std::string target;    // symlink
  // --hard-links: the file, or whatever but a directory it is, has several names at the source. `linked_to` is the path of the name
  // that was listed first. "": this is that name.
  bool is_linked = false;
  std::string linked_to = {};
  ports::SpecialKind special = ports::SpecialKind::none;  // of a device or special
  uint64_t special_device = 0;                            // of a device: its number
  // The names of uid and gid at the source. Only the first entry of a session with that owner or group has them. "": there is no
  // name, or it was told before.
  std::string user = {}, group = {};
  // --xattrs and --acls: all extended attributes and lists, sorted by name. has_extended is false where they could not be read:
  // then the destination leaves its own as they are.
  bool has_extended = false;
  std::vector<ExtendedAttribute> extended = {};
  bool has_digest = false;  // --checksum: the file's digest
  Hash128 digest;
  bool is_whole = false;              // leave, of a session that deletes: all names of the directory were listed ...
  std::vector<std::string> left_out;  // ... and these are there too, without an entry
  // Of a decoded entry: the first TLV that must be understood and that this version does not know; 0:
  // none. The destination refuses the entry. Unknown TLVs are not kept, so an entry that is encoded
  // again has none of them.
  uint16_t unknown_mandatory = 0;
};

class EntryEncoder {
 public:
  explicit EntryEncoder(MutableBytes into) : into_(into) {}
  // Appends the entry. False: it does not fit in `into` any more, or there are entries_per_segment_max,
  // and nothing was added. Each segment has an encoder of its own. CHECKs that the path is safe, which
  // bounds it too (the walk does not list what has a longer one), that the name is one as
  // decode_entries takes it, that the mode is within 07777, that only a file has a digest, and that the
  // target of a link has 1 to path_bytes_max bytes.
  [[nodiscard]] bool add(const Entry& entry);
  [[nodiscard]] uint32_t size_bytes() const { return used_; }
  [[nodiscard]] uint32_t count() const { return count_; }

 private:
  MutableBytes into_;
  uint32_t used_ = 0;
  uint32_t count_ = 0;
  std::string previous_;
};

// protocol: malformed. not_authorised: a path or a name that leaves the root.
[[nodiscard]] Result<std::vector<Entry>> decode_entries(Bytes data, uint32_t count);
[[nodiscard]] bool is_safe_relative_path(std::string_view path);  // the rule above, and at most path_bytes_max
// The digest of a whole file, from the hashes of its pieces. A file of 0 bytes has no piece.
[[nodiscard]] Hash128 file_digest(const std::vector<Hash128>& pieces);
// The same, piece by piece.
class FileDigest {
 public:
  void add(const Hash128& piece);
  [[nodiscard]] Hash128 take();

 private:
  Xxh3Blocks hash_;
  std::vector<std::byte> waiting_;
};

}  // namespace ccixfer::session
