#include "core/cci/registrations.h"

#include <algorithm>
#include <utility>

namespace ccixfer::cci {

void Registrations::attach(uint32_t index, ports::Transport& transport) {
  transports_.resize(std::max<size_t>(transports_.size(), size_t{index} + 1));
  transports_[index] = &transport;
}

void Registrations::detach(uint32_t index) {
  if (index < transports_.size()) transports_[index] = nullptr;
}

Status Registrations::add_one(uint32_t index, MutableBytes memory, ports::MemoryAccess access, Keys& keys) {
  Registered registered;
  const Status status = transports_[index]->register_memory(memory, access, registered.key);
  registered.refused = status != Status::success;
  if (!registered.key && !registered.refused) return status;
  any_ = true;
  if (keys == nullptr) keys = std::make_unique<std::vector<Registered>>();
  keys->resize(std::max<size_t>(keys->size(), size_t{index} + 1));
  (*keys)[index] = registered;
  return status;
}

Status Registrations::add(MutableBytes memory, ports::MemoryAccess access, Keys& keys) {
  for (uint32_t index = 0; index < transports_.size(); ++index) {
    if (transports_[index] == nullptr) continue;
    if (const Status status = add_one(index, memory, access, keys); status != Status::success) {
      remove(keys);
      return status;
    }
  }
  return Status::success;
}

void Registrations::add_to(uint32_t index, MutableBytes memory, ports::MemoryAccess access, Keys& keys) {
  static_cast<void>(add_one(index, memory, access, keys));
}

void Registrations::remove(Keys& keys) {
  if (keys == nullptr) return;
  const Keys all = std::move(keys);
  for (uint32_t index = 0; index < all->size(); ++index) {
    if ((*all)[index].key && transports_[index] != nullptr) transports_[index]->deregister_memory((*all)[index].key);
  }
}

Registered Registrations::find(const Keys& keys, uint32_t index) {
  return keys == nullptr || index >= keys->size() ? Registered{} : (*keys)[index];
}

}  // namespace ccixfer::cci
