// What an entry tells besides its status, as the options ask for it: names of one file, names of owners, extended attributes and
// access control lists.
// In: the record that the walk made last, and where it stands. Out: the same record and its texts in the batch.
// Errors: attributes that cannot be read are not told, and the destination leaves them as they are; add() says so. Only of what is
// gone, and of what this account may not read, it does not: what is to be read of that fails by itself.
// Memory: of HardLinks; and the owners that were told, owners_told_max of users and groups together. The name of any other goes
// with each of its entries. Not thread-safe: it belongs to the walk.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "app/send/hard_links.h"
#include "core/ports/file_system.h"

namespace ccixfer::send {

struct WalkBatch;
struct WalkRecord;

inline constexpr size_t owners_told_max = 65'536;

struct DetailsWish {
  bool hard_links = false;   // say which names are names of one file
  bool names_recur = false;  // the walk may come to one name several times
  bool owner_names = false;  // with the first entry of each owner, if not with more
  uint32_t extended = 0;     // of session::option_acls and option_xattrs
  bool is_root = false;      // attributes beyond `user.` are read
};

class EntryDetails {
 public:
  explicit EntryDetails(const DetailsWish& wish, size_t told_max = owners_told_max)
      : wish_(wish), told_max_(told_max), hard_links_(wish.names_recur) {}
  // Where a file or directory stands: open, or to be opened; neither for what has no attributes.
  struct Place {
    int fd = -1;
    int directory = -1;
    std::string_view name = {};
    bool follow = false;
    int error = 0;  // -errno of who was to open it
  };
  // Of out.records.back(). What could not be found out, in words; empty: nothing.
  [[nodiscard]] std::string add(ports::FileSystem& files, WalkBatch& out, const Place& place);

 private:
  [[nodiscard]] int add_owner(ports::FileSystem& files, WalkBatch& out, bool is_group, uint32_t id, uint32_t& bytes);
  [[nodiscard]] int add_attributes(ports::FileSystem& files, WalkBatch& out, WalkRecord& record, const Place& place) const;
  [[nodiscard]] int add_extended(ports::FileSystem& files, WalkBatch& out, WalkRecord& record, int fd) const;

  const DetailsWish wish_;
  const size_t told_max_;
  HardLinks hard_links_;
  std::unordered_set<uint64_t> told_;  // numbers of owners; of groups with a bit above
};

}  // namespace ccixfer::send
