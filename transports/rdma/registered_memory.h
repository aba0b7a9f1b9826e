// The memory that the core has registered with this transport, and the keys of the card for it. It answers by which key an
// operation of ours goes, and whether the card knows the place that a peer's bytes are for. Single-threaded.
#pragma once
#include <map>
#include <optional>
#include <unordered_map>

#include "core/ports/memory_registration.h"
#include "transports/rdma/rdma_net.h"

namespace ccixfer::rdma {

class RegisteredMemory {
 public:
  explicit RegisteredMemory(RdmaNet& net) : net_(net) {}
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  [[nodiscard]] Status add(MutableBytes memory, ports::MemoryAccess access, ports::MemoryKey& key);
  void remove(ports::MemoryKey key);  // nothing of ours is in flight there

  // Of an operation of ours. nullopt: no such key, or not for this memory.
  [[nodiscard]] std::optional<Registration> of(ports::MemoryKey key, Bytes memory) const;
  // Of any memory. nullopt: no registration has all of it, or none that lets the card write. `found_before` is the key of what was
  // found for the same operation, to look there first.
  [[nodiscard]] std::optional<Registration> around(Bytes memory, bool card_writes, ports::MemoryKey& found_before) const;

 private:
  struct Entry {
    MutableBytes memory;
    bool card_writes = false;
    Registration registration;
    [[nodiscard]] bool covers(Bytes part) const;
  };
  RdmaNet& net_;
  std::unordered_map<uint64_t, Entry> entries_;           // by key, which is the registration's id
  std::multimap<const std::byte*, uint64_t> by_address_;  // of the beginning
  size_t longest_bytes_ = 0;                              // that ever was: no registration reaches further
};

}  // namespace ccixfer::rdma
