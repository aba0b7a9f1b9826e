// Who writes which final path below a root: two sessions cannot write the same one. A path goes from
// a session whose link is dead to the one that asks next; the old session is then `lost`: it touches
// nothing any more and ends.
// Thread-safe. Bounded: each session claims a path for each of its files in work at most.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "app/recv/deliveries.h"
#include "app/recv/names.h"

namespace ccixfer::recv {

// A session as the holder of final paths, and as its jobs know it.
struct Owner {
  std::atomic<bool> link_dead{false};
  std::atomic<bool> lost{false};
  Deliveries::Transfer transfer{};         // set once
  std::string peer{};                      // set once: who it is, for people
  mutable std::atomic<uint64_t> steps{0};  // of its jobs: the disk answers, see session::DiskWatch
  void step() const { steps.fetch_add(1, std::memory_order_relaxed); }
};

class Claims {
 public:
  // False: another live session, or another entry of this one, writes that path.
  [[nodiscard]] bool take(const Hash128& key, const std::shared_ptr<Owner>& owner);
  void release(const Hash128& key, const std::shared_ptr<Owner>& owner);  // if it is this owner's
  void release_all(const std::shared_ptr<Owner>& owner);
  // Calls `act` if nobody has claimed that path. Nobody can claim any path meanwhile, so `act` must be short.
  template <typename Act>
  void unless_taken(const Hash128& key, Act&& act) {
    const std::lock_guard lock(mutex_);
    if (!owners_.contains(key)) act();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<Hash128, std::shared_ptr<Owner>, KeyHash> owners_;
};

// A path that is claimed for as long as this lives.
class Claim {
 public:
  Claim(Claims& claims, const Hash128& key, std::shared_ptr<Owner> owner)
      : claims_(claims), key_(key), owner_(std::move(owner)), is_held_(claims.take(key, owner_)) {}
  ~Claim() {
    if (is_held_) claims_.release(key_, owner_);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  [[nodiscard]] bool is_held() const { return is_held_; }

 private:
  Claims& claims_;
  const Hash128 key_;
  const std::shared_ptr<Owner> owner_;
  const bool is_held_;
};

}  // namespace ccixfer::recv
