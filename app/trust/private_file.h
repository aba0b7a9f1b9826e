// Files that decide who is trusted: read only when nobody else could have written them (and, if they are secret, read them), and
// written so that a power cut leaves the old content or the new one.
// Errors: usage: others may read or write the file, it is no regular file, it is too long. file_io and no_space: the disk. All are
// one line with the name of the file and what to do. Blocks for as long as the disk does.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ccixfer::policy {

enum class Others : uint8_t {
  may_read,     // what is in it is no secret, but nobody else may write it
  get_nothing,  // no permission bit for group and others
};

// The whole file; none: there is no such file. It must be a regular file that this account or root owns.
[[nodiscard]] Result<std::optional<std::string>> read_trusted(const std::string& file, Others others, size_t bytes_max);

// The directory of `file`, and those above it, made with 0700 as far as they are missing.
[[nodiscard]] Result<void> make_directory_of(const std::string& file);

enum class Existing : uint8_t { replace, keep };
// Mode 0600, synced with its directory. false: there is a file already, which was to be kept.
[[nodiscard]] Result<bool> write_private(const std::string& file, std::string_view content, Existing existing);

// One write at the end of the file, which is made with 0600 if it is missing; synced.
[[nodiscard]] Result<void> append_private(const std::string& file, std::string_view text);

}  // namespace ccixfer::policy
