#include "app/session/mode_changes.h"

#include <fmt/format.h>

#include "core/base/units.h"

namespace ccixfer::session {
namespace {

constexpr uint32_t mode_bits = 07777, all_classes = 0111;
constexpr uint32_t setuid = 04000, setgid = 02000, sticky = 01000;

// That class's rights of a mode, as three bits.
uint32_t rights_of(uint32_t mode, uint32_t one_class) {
  return one_class == 0100 ? (mode >> 6) & 7u : one_class == 0010 ? (mode >> 3) & 7u : mode & 7u;
}

uint32_t high_bits_of(uint32_t classes) {
  return ((classes & 0100u) != 0 ? setuid : 0) | ((classes & 0010u) != 0 ? setgid : 0) | ((classes & 0001u) != 0 ? sticky : 0);
}

}  // namespace

bool ModeChanges::parse(std::string_view text, Change& change) {
  size_t at = 0;
  const auto more = [&] { return at < text.size(); };
  for (; more() && change.operation == Operation::none; ++at) {
    switch (text[at]) {
      case 'D':
        change.others = false;
        break;
      case 'F':
        change.directories = false;
        break;
      case 'u':
        change.classes |= 0100u;
        change.high_classes |= setuid;
        break;
      case 'g':
        change.classes |= 0010u;
        change.high_classes |= setgid;
        break;
      case 'o':
        change.classes |= 0001u;
        break;
      case 'a':
        change.classes |= all_classes;
        change.high_classes |= setuid | setgid;
        break;
      case '+':
        change.operation = Operation::add;
        break;
      case '-':
        change.operation = Operation::take;
        break;
      case '=':
        change.operation = Operation::set;
        break;
      default:
        if (text[at] < '0' || text[at] > '7' || change.classes != 0) return false;
        change.operation = Operation::number;
        --at;  // it is read below
    }
  }
  if (change.operation == Operation::none || (!change.directories && !change.others)) return false;
  for (; more(); ++at) {
    const char c = text[at];
    if (change.operation == Operation::number) {
      if (c < '0' || c > '7') return false;
      change.rights = change.rights * 8 + static_cast<uint32_t>(c - '0');
      if (change.rights > mode_bits) return false;
      continue;
    }
    const bool is_class = c == 'u' || c == 'g' || c == 'o';
    if (change.copied_class != 0 || (is_class && (change.rights != 0 || change.high != 0))) return false;
    if (is_class) {
      change.copied_class = c == 'u' ? 0100u : c == 'g' ? 0010u : 0001u;
    } else if (c == 'r') {
      change.rights |= 4u;
    } else if (c == 'w') {
      change.rights |= 2u;
    } else if (c == 'x' || c == 'X') {
      change.rights |= 1u;
      change.keeps_x = change.keeps_x || c == 'X';
    } else if (c == 's') {
      change.high |= change.high_classes != 0 ? change.high_classes : setuid;
    } else if (c == 't') {
      change.high |= sticky;
    } else {
      return false;
    }
  }
  return true;
}

Result<void> ModeChanges::add(std::string_view text, uint32_t umask) {
  const std::string_view whole = text;
  while (true) {
    const size_t comma = text.find(',');
    Change change;
    if (!parse(text.substr(0, comma), change)) {
      return fail(ErrorKind::usage,
                  fmt::format("bad value: --chmod {}: give changes as in D755,F644 or Dg+s,go-w", printable(whole)));
    }
    change.named_classes = change.classes != 0;
    if (!change.named_classes) change.classes = all_classes;
    change.umask = change.named_classes ? 0 : umask;
    changes_.push_back(change);
    if (comma == std::string_view::npos) return {};
    text.remove_prefix(comma + 1);
  }
}

uint32_t ModeChanges::applied(const Change& change, uint32_t mode, bool has_x) {
  if (change.operation == Operation::number) return change.rights;
  uint32_t bits = change.classes * change.rights;
  if (change.copied_class != 0) bits = change.classes * rights_of(mode, change.copied_class);
  bits &= ~change.umask;
  switch (change.operation) {
    case Operation::take:
      return mode & ~(bits | change.high);
    case Operation::set:
      mode &= ~(change.classes * 7u);
      if (change.high != 0) mode &= ~change.high_classes;
      if (change.copied_class != 0) mode &= ~high_bits_of(change.classes);
      break;
    case Operation::add:
    case Operation::number:
    case Operation::none:
      break;
  }
  bits |= change.high;
  return mode | (change.keeps_x && !has_x ? bits & ~all_classes : bits);
}

uint32_t ModeChanges::apply(uint32_t mode, bool is_directory) const {
  const bool has_x = is_directory || (mode & all_classes) != 0;
  for (const Change& change : changes_) {
    if (is_directory ? change.directories : change.others) mode = applied(change, mode, has_x);
  }
  return mode & mode_bits;
}

}  // namespace ccixfer::session
