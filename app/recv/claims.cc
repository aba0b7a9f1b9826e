#include "app/recv/claims.h"

namespace ccixfer::recv {

bool Claims::take(const Hash128& key, const std::shared_ptr<Owner>& owner) {
  const std::lock_guard lock(mutex_);
  const auto [at, added] = owners_.try_emplace(key, owner);
  if (added) return true;
  if (at->second == owner || !at->second->link_dead.load()) return false;
  at->second->lost.store(true);
  at->second = owner;
  return true;
}

void Claims::release(const Hash128& key, const std::shared_ptr<Owner>& owner) {
  const std::lock_guard lock(mutex_);
  if (const auto at = owners_.find(key); at != owners_.end() && at->second == owner) owners_.erase(at);
}

void Claims::release_all(const std::shared_ptr<Owner>& owner) {
  const std::lock_guard lock(mutex_);
  std::erase_if(owners_, [&](const auto& claim) { return claim.second == owner; });
}

}  // namespace ccixfer::recv
