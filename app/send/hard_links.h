// Which listed names are names of one file, for --hard-links: the first name of each file that has several.
// In: device, inode and link count of what is listed, and its entry path. Out: the path of the first name.
// Memory: at most links_in_memory_max files; more go to a temporary table of SQLite, on disk. A file is forgotten when all of its
// names were listed, unless a name may be listed again: in a place to which a link leads that is followed, or of a second source.
// The names of a file may be gone before they are listed, and another file may have its inode then. So what has not the size and
// the modification time of the first name is another file, of which it is the first name.
// When the table fails, the files that memory has no room for travel as if each of their names was a file.
// Not thread-safe: it belongs to the walk.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "app/session/sqlite_handles.h"
#include "core/ports/file_system.h"

namespace ccixfer::send {

inline constexpr size_t links_in_memory_max = 100'000;

class HardLinks {
 public:
  explicit HardLinks(bool names_recur = false, size_t in_memory_max = links_in_memory_max)
      : names_recur_(names_recur), in_memory_max_(in_memory_max) {}
  struct Listed {
    bool is_linked = false;       // the file has several names, and this is one of them
    std::string_view first_path;  // the path of the first name, valid until the next call; "": this is the first name
  };
  [[nodiscard]] Listed list(const ports::FileStat& stat, std::string_view path);

 private:
  struct Key {
    uint64_t device = 0, inode = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return static_cast<size_t>(key.inode * 0x9e3779b97f4a7c15ull ^ key.device); }
  };
  // Tells a file from another one that has got its inode. The change time is no part of it, as a further name changes that.
  struct Content {
    uint64_t size_bytes = 0;
    ports::FileTime mtime;
    friend bool operator==(const Content&, const Content&) = default;
  };
  struct File {
    std::string path;
    Content content;
    uint64_t names_left = 0;
  };
  static void bind(sqlite3_stmt* statement, const Key& key, const Content& content);
  [[nodiscard]] bool open_table();
  [[nodiscard]] bool find_in_table(const Key& key, const Content& content);
  [[nodiscard]] bool put_into_table(const Key& key, const Content& content, std::string_view path);

  [[nodiscard]] Listed again(std::string_view path) const;  // of a file whose first name is path_

  const bool names_recur_;
  const size_t in_memory_max_;
  std::unordered_map<Key, File, KeyHash> files_;
  std::string path_;  // that was found last
  bool table_failed_ = false;
  session::Database database_;
  session::Statement find_, put_;
};

}  // namespace ccixfer::send
