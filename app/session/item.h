// What is done to one entry, as -i tells it: a set of bits, and rsync's letters for them ("YXcstpoguax" of rsync(1)).
// The destination finds the bits when it judges an entry, before it touches anything, so that a dry run and the real one tell the
// same. In a push they travel in `Itemized` messages.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "app/session/entry.h"

namespace ccixfer::session {

enum Item : uint16_t {
  item_sent = 1,      // the content comes from the source
  item_made = 2,      // a directory or link is made or replaced, or a file is copied or linked from what the destination has
  item_linked = 4,    // it becomes a hard link
  item_new = 8,       // nothing of its kind stood there
  item_content = 16,  // it is known that the content differs: another digest, another target of a link
  item_size = 32,     // the destination has another size; the next six: another time, mode, and so on
  item_time = 64,
  item_mode = 128,
  item_owner = 256,
  item_group = 512,
  item_acl = 1024,
  item_xattrs = 2048,
  item_named = 4096,  // with item_linked: it is a further name of a file of this transfer, and the line says of which
};
using Items = uint16_t;
inline constexpr Items items_known = 8191;

// Whether there is anything to tell. As with rsync there is not if an entry only becomes a hard link to a file of an older tree.
[[nodiscard]] constexpr bool is_told(Items items) { return (items & ~(item_made | item_linked)) != 0; }

struct ItemView {
  EntryType type = EntryType::file;
  bool to_peer = false;      // we send: '<', else '>'
  bool keeps_times = false;  // 't', else 'T': it gets the time of its writing
};
struct ItemLine {
  std::string letters;  // eleven
  std::string name;     // as rsync shows it: "./" is what the transfer itself names, a directory ends in a slash
  std::string target;   // of a symbolic link; of a hard link ('h') the name that it is linked to
};
inline constexpr std::string_view letters_of_deletion = "*deleting  ";
// Eleven letters.
[[nodiscard]] std::string letters_of(Items items, const ItemView& view);
[[nodiscard]] std::string item_name(std::string_view path, EntryType type);

}  // namespace ccixfer::session
