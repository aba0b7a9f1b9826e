// What decides at the destination which files are replaced and what becomes of those that are: rsync's options of these names.
// In: what the command line gave. Out: bits of the session's options.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace ccixfer::program {

struct SyncOptions {
  bool update = false;           // -u
  bool size_only = false;        // --size-only
  bool ignore_existing = false;  // --ignore-existing
  bool itemize = false;          // -i
  bool whole_file = false;       // -W
  bool inplace = false;          // --inplace
  bool compress = false;         // -z
  uint8_t compress_level = 0;    // --compress-level, which is -z too; 0: chosen
  bool backup = false;           // -b
  std::string suffix;            // --suffix; "": rsync's
  std::string backup_directory;  // --backup-dir; "": backups stand beside their files
  std::vector<std::string> link_dest;
  bool one_file_system = false;                // -x
  std::optional<std::string> files_from = {};  // "-": standard input
  bool relative = false;                       // -R
  bool deletes = false;                        // --delete, or one that implies it
  bool delete_excluded = false;
  std::optional<uint64_t> max_delete = {};
  [[nodiscard]] bool keeps_backups() const { return backup || !backup_directory.empty(); }
  [[nodiscard]] std::string backup_suffix() const { return suffix.empty() && backup_directory.empty() ? "~" : suffix; }
};

[[nodiscard]] uint32_t session_options(const SyncOptions& sync);               // session::Option bits
[[nodiscard]] std::optional<uint8_t> compression_of(const SyncOptions& sync);  // as of session::Open
// usage: what does not go together, or is too long.
[[nodiscard]] Result<void> check(const SyncOptions& sync);
// The name of one that was given, for a side that does not dial; nullptr: none was.
[[nodiscard]] const char* given_of(const SyncOptions& sync);

}  // namespace ccixfer::program
