#include "transports/rdma/registered_memory.h"

#include <algorithm>

#include "core/base/check.h"

namespace ccixfer::rdma {

bool RegisteredMemory::Entry::covers(Bytes part) const {
  return part.data() >= memory.data() && part.data() + part.size() <= memory.data() + memory.size();
}

RegisteredMemory::~RegisteredMemory() {
  for (const auto& [key, entry] : entries_) net_.deregister(entry.registration.id);
}

// A write of ours is read by the target's card, and a read of ours is written by it, so a peer must be able to reach all that we
// use ourselves, and in no other way. What peers write our own card places.
Status RegisteredMemory::add(MutableBytes memory, ports::MemoryAccess access, ports::MemoryKey& key) {
  Entry entry;
  entry.memory = memory;
  entry.card_writes = access.we_write || access.peers_write;
  const Access asked{.local_write = entry.card_writes, .remote_read = true, .remote_write = access.we_write};
  const Status status = net_.register_memory(memory, asked, entry.registration);
  if (status != Status::success) return status;
  key.value = entry.registration.id;
  CHECK(key && entries_.emplace(key.value, entry).second);
  by_address_.emplace(memory.data(), key.value);
  longest_bytes_ = std::max(longest_bytes_, memory.size());
  return Status::success;
}

void RegisteredMemory::remove(ports::MemoryKey key) {
  const auto found = entries_.find(key.value);
  CHECK(found != entries_.end());
  auto [at, end] = by_address_.equal_range(found->second.memory.data());
  while (at != end && at->second != key.value) ++at;
  by_address_.erase(at);
  net_.deregister(found->second.registration.id);
  entries_.erase(found);
}

std::optional<Registration> RegisteredMemory::of(ports::MemoryKey key, Bytes memory) const {
  const auto found = entries_.find(key.value);
  if (found == entries_.end() || !found->second.covers(memory)) return std::nullopt;
  return found->second.registration;
}

std::optional<Registration> RegisteredMemory::around(Bytes memory, bool card_writes, ports::MemoryKey& found_before) const {
  const auto before = entries_.find(found_before.value);
  if (before != entries_.end() && before->second.covers(memory) && (before->second.card_writes || !card_writes)) {
    return before->second.registration;
  }
  for (auto at = by_address_.upper_bound(memory.data()); at != by_address_.begin();) {
    --at;
    if (at->first + longest_bytes_ < memory.data() + memory.size()) break;
    const Entry& entry = entries_.at(at->second);
    if (!entry.covers(memory) || (card_writes && !entry.card_writes)) continue;
    found_before.value = at->second;
    return entry.registration;
  }
  return std::nullopt;
}

}  // namespace ccixfer::rdma
