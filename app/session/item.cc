#include "app/session/item.h"

#include <algorithm>

namespace ccixfer::session {
namespace {

char letter_of(EntryType type) {
  switch (type) {
    case EntryType::directory:
      return 'd';
    case EntryType::symlink:
      return 'L';
    case EntryType::device:
      return 'D';
    case EntryType::special:
      return 'S';
    case EntryType::file:
    case EntryType::leave:
      break;
  }
  return 'f';
}

}  // namespace

std::string letters_of(Items items, const ItemView& view) {
  const auto letter = [items](Item bit, char c) { return (items & bit) != 0 ? c : '.'; };
  std::string text;
  if ((items & item_linked) != 0) {
    text += 'h';
  } else if ((items & item_made) != 0) {
    text += 'c';
  } else if ((items & item_sent) != 0) {
    text += view.to_peer ? '<' : '>';
  } else {
    text += '.';
  }
  text += letter_of(view.type);
  if ((items & item_new) != 0) return text + "+++++++++";
  text += letter(item_content, 'c');
  text += view.type == EntryType::file ? letter(item_size, 's') : '.';
  text += letter(item_time, view.keeps_times ? 't' : 'T');
  text += letter(item_mode, 'p');
  text += letter(item_owner, 'o');
  text += letter(item_group, 'g');
  text += '.';  // access and creation times are not kept
  text += letter(item_acl, 'a');
  text += letter(item_xattrs, 'x');
  const bool is_blank = text[0] != '<' && text[0] != '>' && text.find_first_not_of('.', 2) == std::string::npos;
  if (is_blank) std::fill(text.begin() + 2, text.end(), ' ');
  return text;
}

std::string item_name(std::string_view path, EntryType type) {
  if (type != EntryType::directory) return std::string(path);
  return path.empty() ? "./" : std::string(path) + "/";
}

}  // namespace ccixfer::session
