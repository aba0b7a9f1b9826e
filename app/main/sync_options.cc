#include "app/main/sync_options.h"

#include <fmt/format.h>

#include "app/session/limits.h"
#include "app/session/messages.h"
#include "app/session/open.h"
#include "core/base/units.h"

namespace ccixfer::program {

uint32_t session_options(const SyncOptions& sync) {
  uint32_t options = 0;
  if (sync.update) options |= session::option_update;
  if (sync.size_only) options |= session::option_size_only;
  if (sync.ignore_existing) options |= session::option_ignore_existing;
  if (sync.one_file_system) options |= session::option_one_file_system;
  if (sync.itemize) options |= session::option_itemize;
  if (sync.inplace) options |= session::option_inplace;
  if (sync.whole_file) options |= session::option_whole_file;
  return options;
}

std::optional<uint8_t> compression_of(const SyncOptions& sync) {
  if (!sync.compress && sync.compress_level == 0) return std::nullopt;
  return sync.compress_level;
}

const char* given_of(const SyncOptions& sync) {
  if (sync.deletes) return "--delete";
  if (sync.files_from) return "--files-from";
  if (sync.relative) return "--relative";
  if (sync.one_file_system) return "--one-file-system";
  return sync.update               ? "--update"
         : sync.size_only          ? "--size-only"
         : sync.ignore_existing    ? "--ignore-existing"
         : sync.itemize            ? "--itemize-changes"
         : sync.whole_file         ? "--whole-file"
         : sync.inplace            ? "--inplace"
         : compression_of(sync)    ? "--compress"
         : sync.keeps_backups()    ? "--backup"
         : !sync.suffix.empty()    ? "--suffix"
         : !sync.link_dest.empty() ? "--link-dest"
                                   : nullptr;
}

Result<void> check(const SyncOptions& sync) {
  const auto wrong = [](const std::string& where, const char* what_to_do) {
    return fail(ErrorKind::usage, fmt::format("bad value: {}: {}", printable(where), what_to_do));
  };
  if (sync.max_delete && !sync.deletes) return wrong("--max-delete", "only with --delete");
  if (!sync.suffix.empty() && !sync.keeps_backups()) return wrong("--suffix", "only with --backup or --backup-dir");
  // What is written over is not there any more to be kept; and a file that an older tree shares would change there as well.
  if (sync.inplace && sync.keeps_backups()) return wrong("--inplace", "not with --backup: the old file is what is written to");
  if (sync.inplace && !sync.link_dest.empty()) return wrong("--inplace", "not with --link-dest: the older tree would change");
  // A run that ends early leaves a newer file of that size, half written, which the next one would not look at.
  if (sync.inplace && sync.update)
    return wrong("--inplace", "not with --update: an interrupted file would be taken for a newer one");
  if (sync.inplace && sync.size_only)
    return wrong("--inplace", "not with --size-only: an interrupted file would be taken for a complete one");
  if (sync.suffix.find('/') != std::string::npos || sync.suffix.size() > session::name_bytes_max)
    return wrong("--suffix " + sync.suffix, "give the end of a name");
  if (sync.link_dest.size() > session::link_dest_max) return wrong("--link-dest", "at most 20 of them");
  size_t all_bytes = sync.backup_directory.size();
  for (const std::string& place : sync.link_dest) {
    if (place.empty()) return wrong("--link-dest", "name a directory");
    all_bytes += place.size();
  }
  if (all_bytes > session::open_bytes_max / 2) return wrong("--link-dest", "these paths are too long");
  for (const std::string& place : sync.link_dest) {
    if (place.size() > session::path_bytes_max) return wrong("--link-dest", "a path has at most 4096 bytes");
  }
  if (sync.backup_directory.size() > session::path_bytes_max) return wrong("--backup-dir", "a path has at most 4096 bytes");
  return {};
}

}  // namespace ccixfer::program
