#include "app/recv/claims.h"

namespace ccixfer::recv {

bool Claims::take(const Hash128& key, const std::shared_ptr<Owner>& owner) {
  std::unique_lock lock(mutex_);
  std::shared_ptr<Owner> before;
  if (const auto at = owners_.find(key); at != owners_.end()) {
    before = at->second;
    if (before == owner || !before->link_dead.load()) return false;
    before->lost.store(true);  // from here on it begins no further use
  }
  if (!let_go_.wait_for(lock, patience_, [&] { return !uses_.contains(key); })) return false;
  const auto [at, added] = owners_.try_emplace(key, owner);
  if (added) return true;
  if (at->second != before) return false;  // somebody else was faster
  at->second = owner;
  return true;
}

Claims::Use Claims::use(const Hash128& key, const Owner& owner) {
  const std::lock_guard lock(mutex_);
  const auto at = owners_.find(key);
  if (owner.lost.load() || (at != owners_.end() && at->second.get() != &owner)) return {};
  ++uses_[key];
  return {*this, key};
}

void Claims::end_use(const Hash128& key) {
  const std::lock_guard lock(mutex_);
  const auto at = uses_.find(key);
  if (--at->second > 0) return;
  uses_.erase(at);
  let_go_.notify_all();
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
