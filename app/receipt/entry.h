// What a receipt says of one file, directory or link of a delivered tree.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/ports/file_system.h"
#include "core/trust/sha256.h"

namespace ccixfer::receipt {

enum class EntryType : uint8_t { file, directory, link };

struct Entry {
  EntryType type = EntryType::file;
  std::string path;         // below the directory that the receipt is of: session::is_safe_relative_path, and not empty
  uint64_t size_bytes = 0;  // of a file
  ports::FileTime mtime{};  // of a file
  uint32_t mode = 0;        // 07777; of a link 0
  std::optional<trust::Sha256Digest> sha256 = {};  // of a file; none: it could not be read, or had changed by then
  std::string target{};                            // of a link
  friend bool operator==(const Entry&, const Entry&) = default;
};

// Who writes a receipt hears of each entry that was delivered, or was there already, in any order. One that is told again counts as
// it was told last.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void on_entry(const Entry& entry) = 0;
  virtual void on_unlisted() = 0;  // one that cannot be looked at any more: nothing can be said of it
};

// The order of a receipt: depth first, names in byte order, as a walk gives them.
[[nodiscard]] std::string order_key(std::string_view path);
[[nodiscard]] bool comes_before(std::string_view a, std::string_view b);

}  // namespace ccixfer::receipt
