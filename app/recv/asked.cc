#include "app/recv/asked.h"

#include <fmt/format.h>

#include "app/recv/names.h"
#include "app/session/messages.h"
#include "core/base/units.h"

namespace ccixfer::recv {

using session::Entry;
using session::EntryType;

Asked asked_for(std::string_view path, uint32_t options) {
  Asked asked;
  // The source's rule: with a slash or a dot behind, it is what is in the directory.
  asked.content = path.empty();
  while (!path.empty() && (path.back() == '/' || path == "." || path.ends_with("/."))) {
    path.remove_suffix(1);
    asked.content = true;
  }
  asked.name = split_path(path).name;
  asked.links = (options & session::option_links) != 0;
  asked.specials = (options & session::option_specials) != 0;
  asked.hard_links = (options & session::option_hard_links) != 0;
  asked.recursive = (options & session::option_recursive) != 0;
  return asked;
}

Result<void> AskedEntries::judge(const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    if (asked_.one_file && entry.type != EntryType::file && !is_reserved_path(entry.path)) {
      return fail(
          ErrorKind::source_selection,
          fmt::format("not a file: {}: one file goes to standard output: give the URI of one file, or a directory in place of -",
                      printable(asked_.name)));
    }
    if (const char* wrong = fault(entry); wrong != nullptr) {
      return fail(ErrorKind::protocol,
                  fmt::format("the peer sent what was not asked for ({}): {}: it was not written; do not trust this peer", wrong,
                              entry.path.empty() ? "''" : printable(entry.path)));
    }
  }
  return {};
}

// At the top: the content's own entry, or the one thing that has a name.
const char* AskedEntries::fault_at_top(const Entry& entry) const {
  if (begun_) return "a second thing where one was asked for";
  if (entry.path.empty()) return asked_.content && entry.type == EntryType::directory ? nullptr : "an entry without a name";
  if (entry.path != asked_.name) return "another name";
  return asked_.content && entry.type == EntryType::directory ? "the directory where its content was asked for" : nullptr;
}

// The name that it is linked to is one that may come, too.
const char* AskedEntries::fault_of_link(const Entry& entry) const {
  if (!entry.is_linked) return nullptr;
  if (!asked_.hard_links) return "a hard link";
  if (entry.linked_to.empty()) return nullptr;
  if (asked_.list && !asked_.list->allows(entry.linked_to, false)) return "a hard link to what the list does not name";
  const bool may_come = asked_.content || entry.linked_to == asked_.name || is_below(entry.linked_to, asked_.name);
  return may_come && !is_reserved_path(entry.linked_to) ? nullptr : "a hard link to something else";
}

const char* AskedEntries::fault(const Entry& entry) {
  if (is_reserved_path(entry.path)) return "a name that is reserved for the receiver";
  if (entry.type == EntryType::leave) {
    if (chain_.empty() || chain_.back().path != entry.path) return "the end of a directory that was not begun";
    chain_.pop_back();
    return nullptr;
  }
  if (entry.type == EntryType::symlink && !asked_.links) return "a symbolic link";
  const bool is_special = entry.type == EntryType::device || entry.type == EntryType::special;
  if (is_special && !asked_.specials) return "a device or another special file";
  if (const char* wrong = fault_of_link(entry); wrong != nullptr) return wrong;
  if (entry.type == EntryType::directory && !asked_.recursive) return "a directory";
  const SplitPath split = split_path(entry.path);
  if (asked_.list && !asked_.list->allows(entry.path, entry.type == EntryType::directory)) return "a name that is not in the list";
  if (chain_.empty() && asked_.list) {
    if (entry.path.find('/') != std::string::npos) return "a name that is not in the directory that was begun";
    if (begun_ && entry.path <= last_at_top_) return "a name twice, or out of order";
    last_at_top_ = entry.path;
  } else if (chain_.empty()) {
    if (const char* wrong = fault_at_top(entry); wrong != nullptr) return wrong;
  } else {
    Begun& parent = chain_.back();
    if (entry.path.empty() || parent.path != split.parent) return "a name that is not in the directory that was begun";
    if (split.name <= std::string_view(parent.last)) return "a name twice, or out of order";
    parent.last = split.name;
  }
  begun_ = true;
  if (entry.type == EntryType::directory) chain_.push_back({entry.path, {}});
  return nullptr;
}

}  // namespace ccixfer::recv
