// The router's fragment buffers in eight classes, class = routers that the data has crossed. One buffer of each class is reserved,
// so that a ring of full routers still moves; the rest is shared, and one connection may hold at most as many as are left free. A
// whole buffer of its class is held before a fragment is pulled. Bounds: memory_bytes at start, never grown. Source: ITB p.2;
// routing/router/README.md.
#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "core/memory/pool.h"
#include "routing/transport/messages.h"

namespace ccixfer::routing {

class FragmentPool {
 public:
  // How much memory it takes of so many bytes.
  [[nodiscard]] static size_t used_bytes(uint32_t fragment_bytes, uint64_t memory_bytes);
  // `memory` has used_bytes(); none: it is made. CHECKs that one fragment a class fits. Fewer classes, or none reserved, deadlock
  // or starve: for tests that show it.
  FragmentPool(uint32_t fragment_bytes, uint64_t memory_bytes, uint8_t classes = classes_max, bool reserved = true,
               bool poison_returned = false, std::optional<memory::BulkMemory> memory = {});
  // `held` is how many the asking connection has; without `shared`, only the reserved one. An empty loan: not now.
  [[nodiscard]] memory::Loan take(uint8_t data_class, uint32_t held, bool shared = true);
  void give(uint8_t data_class, memory::Loan loan);
  [[nodiscard]] bool has(uint8_t data_class, uint32_t held, bool shared = true) const;  // take() would lend one
  [[nodiscard]] uint32_t shared_count() const { return pool_.count() - (reserved_ ? classes_ : 0u); }
  // Of data that crossed so many routers.
  [[nodiscard]] uint8_t class_of(uint8_t crossed) const {
    return crossed < classes_ ? crossed : static_cast<uint8_t>(classes_ - 1);
  }
  [[nodiscard]] MutableBytes memory() const { return pool_.memory(); }
  [[nodiscard]] uint32_t fragment_bytes() const { return pool_.buffer_bytes(); }
  [[nodiscard]] uint32_t used() const { return pool_.count() - pool_.free_count(); }
  [[nodiscard]] uint32_t count() const { return pool_.count(); }

 private:
  memory::Pool pool_;
  uint8_t classes_;
  bool reserved_;
  bool poison_returned_;
  std::array<uint32_t, classes_max> used_{};
  uint32_t shared_used_ = 0;
};

}  // namespace ccixfer::routing
