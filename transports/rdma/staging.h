// Memory of the transport's own, for pieces whose own place the card does not know: a mailbox's buffer that nobody registered, or
// memory that may be taken away while a card reads it. Registered with the first use; slots of one piece. Single-threaded.
#pragma once
#include <vector>

#include "core/memory/bulk_memory.h"
#include "transports/rdma/limits.h"
#include "transports/rdma/rdma_net.h"

namespace ccixfer::rdma {

class Staging {
 public:
  Staging(RdmaNet& net, uint32_t piece_bytes) : net_(net), piece_bytes_(piece_bytes) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  [[nodiscard]] bool is_there();  // false: the card takes no such memory
  [[nodiscard]] bool has_free() const { return !free_.empty(); }
  [[nodiscard]] uint32_t take();  // has_free() only
  void give_back(uint32_t slot) { free_.push_back(slot); }
  [[nodiscard]] MutableBytes bytes(uint32_t slot) const {
    return memory_.bytes().subspan(size_t{slot} * piece_bytes_, piece_bytes_);
  }
  [[nodiscard]] uint32_t local_key() const { return registration_.local_key; }

 private:
  RdmaNet& net_;
  const uint32_t piece_bytes_;
  memory::BulkMemory memory_;
  Registration registration_;  // id 0: not yet
  std::vector<uint32_t> free_;
};

}  // namespace ccixfer::rdma
