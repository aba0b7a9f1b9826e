#include "transports/rdma/staging.h"

namespace ccixfer::rdma {

Staging::~Staging() {
  if (registration_.id != 0) net_.deregister(registration_.id);
}

bool Staging::is_there() {
  if (registration_.id != 0) return true;
  if (memory_.bytes().empty()) memory_ = memory::BulkMemory(size_t{staging_slots} * piece_bytes_);
  if (net_.register_memory(memory_.bytes(), {.local_write = true}, registration_) != Status::success) return false;
  for (uint32_t slot = staging_slots; slot > 0; --slot) free_.push_back(slot - 1);
  return true;
}

uint32_t Staging::take() {
  const uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

}  // namespace ccixfer::rdma
