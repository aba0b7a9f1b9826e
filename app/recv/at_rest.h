// Reading back what was written, as the disk has it (--verify): past the page cache by direct reads, or, where the file system has
// none, after what is in memory was dropped. Only what was synced before is compared. A file system in memory (tmpfs) has nothing
// else to read.
// Bounds: one buffer of at_rest_buffer_bytes while an object lives. For jobs; one thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "app/recv/held.h"
#include "core/base/hash.h"
#include "core/ports/file_system.h"

namespace ccixfer::recv {

inline constexpr size_t at_rest_buffer_bytes = 1u << 20;

enum class AtRest : uint8_t {
  same,
  damaged,     // other bytes, fewer of them, or the disk cannot read them
  unreadable,  // why not is no matter of the disk: error_number()
};

class DiskReader {
 public:
  explicit DiskReader(ports::FileSystem& files);
  ~DiskReader();
  DiskReader(const DiskReader&) = delete;
  DiskReader& operator=(const DiskReader&) = delete;

  // The file of that name. `open` is a readable descriptor of it that stays open, for where the name may not be opened again (its
  // mode) or not directly; negative: there is none.
  void begin(int directory, std::string_view name, int open);
  // `offset_bytes` is a multiple of direct_block_bytes.
  [[nodiscard]] AtRest compare(uint64_t offset_bytes, uint64_t bytes, const Hash128& hash);
  [[nodiscard]] int error_number() const { return error_number_; }

 private:
  [[nodiscard]] int open_plainly();
  [[nodiscard]] int64_t read(uint64_t offset_bytes, uint64_t bytes);
  [[nodiscard]] MutableBytes block() const;

  ports::FileSystem& files_;
  struct Free {
    void operator()(std::byte* memory) const;
  };
  const std::unique_ptr<std::byte, Free> memory_;
  int directory_ = -1;
  std::string_view name_;
  int open_ = -1;
  std::unique_ptr<HeldFile> own_;
  int fd_ = -1;
  bool is_direct_ = false;
  int error_number_ = 0;
};

}  // namespace ccixfer::recv
