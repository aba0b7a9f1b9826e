#include "app/recv/claims.h"

namespace ccixfer::recv {

bool Claims::take(const Hash128& key, const std::shared_ptr<Owner>& owner) {
  Held before;
  {
    const std::lock_guard lock(mutex_);
    const auto [at, added] = held_.try_emplace(key);
    if (added) at->second = {owner, std::make_shared<std::shared_timed_mutex>()};
    if (added) return true;
    if (at->second.owner == owner || !at->second.owner->link_dead.load()) return false;
    before = at->second;
    before.owner->lost.store(true);  // from here on it begins no further use
  }
  {
    const std::unique_lock<std::shared_timed_mutex> unused(*before.path, patience_);
    if (!unused) return false;
  }
  const std::lock_guard lock(mutex_);
  const auto [at, added] = held_.try_emplace(key);
  if (!added && at->second.owner != before.owner) return false;  // somebody else was faster
  at->second = {owner, std::make_shared<std::shared_timed_mutex>()};
  return true;
}

Claims::Use Claims::use(const Hash128& key, const Owner& owner) {
  Use use;
  const std::lock_guard lock(mutex_);
  const auto at = held_.find(key);
  use.may_ = !owner.lost.load() && (at == held_.end() || at->second.owner.get() == &owner);
  if (!use.may_ || at == held_.end()) return use;
  use.path_ = at->second.path;
  use.in_use_ = std::shared_lock(*use.path_);  // at once: who waits for all of them has made the owner a lost one before
  return use;
}

void Claims::release(const Hash128& key, const std::shared_ptr<Owner>& owner) {
  const std::lock_guard lock(mutex_);
  if (const auto at = held_.find(key); at != held_.end() && at->second.owner == owner) held_.erase(at);
}

void Claims::release_all(const std::shared_ptr<Owner>& owner) {
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, [&](const auto& claim) { return claim.second.owner == owner; });
}

}  // namespace ccixfer::recv
