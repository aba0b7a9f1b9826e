// Memory for bulk data, of a size that is settled once: mapped whole, zero until first touched, in huge pages where the host gives
// them (a copy of cold 4 KiB pages spends a third of its time on translation in a virtual machine). Move-only; the address stays.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"
#include "core/base/result.h"

namespace ccixfer::memory {

// Memory of that kind at `at` (whole pages of it), in place of what is there.
void make_anonymous(MutableBytes at);

// usage: this host has less memory than that. It would be promised, and whoever used it all would be killed.
[[nodiscard]] Result<void> fits_this_host(uint64_t bytes);

class BulkMemory {
 public:
  BulkMemory() = default;
  [[nodiscard]] static Result<BulkMemory> make(size_t bytes);  // 0: nothing. usage: the host has, or gives, too little
  explicit BulkMemory(size_t bytes);                           // CHECKs that the host does
  BulkMemory(BulkMemory&& other) noexcept;
  BulkMemory& operator=(BulkMemory&& other) noexcept;
  ~BulkMemory();
  [[nodiscard]] MutableBytes bytes() const { return bytes_; }

 private:
  MutableBytes bytes_;
};

}  // namespace ccixfer::memory
