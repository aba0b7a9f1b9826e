// Who writes which final path below a root: two sessions cannot write the same one. A path goes from
// a session whose link is dead to the one that asks next; the old session is then `lost`: it touches
// nothing any more and ends. What a job of it was doing at that path when it was lost comes to its end
// first (Use): a write that hangs in the disk would change the new session's file afterwards.
// Thread-safe. Bounded: each session claims a path for each of its files in work at most.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
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
  // So long a session waits for jobs of the one that it takes a path from: less than a source takes a disk for stuck.
  static constexpr std::chrono::milliseconds patience_default{15'000};

  // A job of the owner changes what stands at the path, or puts something there, for as long as this lives. Of the job's thread.
  class Use {
   public:
    Use() = default;
    // Of what has no final path yet.
    [[nodiscard]] static Use not_needed() {
      Use use;
      use.may_ = true;
      return use;
    }
    [[nodiscard]] bool may() const { return may_; }  // false: the owner has lost what it claimed, and must leave the path alone

   private:
    friend class Claims;
    std::shared_ptr<std::shared_timed_mutex> path_;
    std::shared_lock<std::shared_timed_mutex> in_use_;  // goes before what it locks
    bool may_ = false;
  };

  explicit Claims(std::chrono::milliseconds patience = patience_default) : patience_(patience) {}
  // False: another live session, or another entry of this one, writes that path; or a job of a lost one has not let go of it. In a
  // job: it may wait for that.
  [[nodiscard]] bool take(const Hash128& key, const std::shared_ptr<Owner>& owner);
  [[nodiscard]] Use use(const Hash128& key, const Owner& owner);
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }  // before any session
  void release(const Hash128& key, const std::shared_ptr<Owner>& owner);           // if it is this owner's
  void release_all(const std::shared_ptr<Owner>& owner);
  // Calls `act` if nobody has claimed that path. Nobody can claim any path meanwhile, so `act` must be short.
  template <typename Act>
  void unless_taken(const Hash128& key, Act&& act) {
    const std::lock_guard lock(mutex_);
    if (!held_.contains(key)) act();
  }

 private:
  struct Held {
    std::shared_ptr<Owner> owner;
    std::shared_ptr<std::shared_timed_mutex> path;  // shared by the jobs that are at it
  };
  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::unordered_map<Hash128, Held, KeyHash> held_;
};

// A path that is claimed, and in use, for as long as this lives.
class Claim {
 public:
  Claim(Claims& claims, const Hash128& key, std::shared_ptr<Owner> owner)
      : claims_(claims), key_(key), owner_(std::move(owner)), is_held_(claims.take(key, owner_)), use_(claims.use(key, *owner_)) {}
  ~Claim() {
    use_.reset();
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
  std::optional<Claims::Use> use_;
};

}  // namespace ccixfer::recv
