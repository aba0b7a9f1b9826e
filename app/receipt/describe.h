// Looks at one file, directory or link and reads it for its digest. For jobs in the work pool.
// A file that changes while it is read has no digest. One whose mode or names change is read again, some times. Nothing is read
// through a symbolic link, unless `open` follows one.
#pragma once
#include <functional>
#include <string_view>

#include "app/receipt/entry.h"
#include "core/ports/file_system.h"

namespace ccixfer::receipt {

inline constexpr size_t read_bytes = 256u << 10;

struct Subject {
  EntryType type = EntryType::file;
  int directory = ports::FileSystem::no_directory;  // `below` is opened beneath it
  std::string_view below;
  // How a file or directory is opened for reading; empty: by FileSystem::open, with no link followed.
  std::function<int(bool is_directory)> open{};
  std::function<bool(const ports::FileStat&)> is_wanted{};  // whether it is still the file that was moved; empty: any
  std::function<void()> step{};                             // something was read
  std::function<bool()> stop{};                             // asked between reads; true: there is no digest
};

// Fills all of `out` but its path. False: it is not there any more, is something else, or stands in a directory that lets nobody
// look. A file that may be looked at and not read has no digest.
[[nodiscard]] bool describe(ports::FileSystem& files, const Subject& subject, Entry& out);

}  // namespace ccixfer::receipt
