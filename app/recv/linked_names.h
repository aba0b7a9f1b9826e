// Files with several names (--hard-links), of which the first is still in work or has failed: what further names become links to.
// A file is named by the entry path of its first listed name. A first name that was placed needs no memory: it stands at its path.
// When the first name fails the next one takes its place.
// Thread-safe: verdicts ask in a job, and ends are told on the protocol thread. Memory: the first names that are in work, and those
// that failed.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace ccixfer::recv {

class LinkedNames {
 public:
  enum class State : uint8_t {
    placed,   // as far as we know
    pending,  // its content is to come
    failed,   // nothing of it stands anywhere: the next name leads
  };
  struct Found {
    State state = State::placed;
    std::string path;  // below the root; of `placed` and `pending`; "": where its first name stands
  };
  [[nodiscard]] Found find(std::string_view first) const {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(first);
    return found == names_.end() ? Found{} : found->second;
  }
  void begin(const std::string& first, const std::string& path) { set(first, {State::pending, path}); }
  void fail(const std::string& first) { set(first, {State::failed, {}}); }
  // `is_first`: it is the first name itself.
  void place(const std::string& first, const std::string& path, bool is_first) {
    if (!is_first) return set(first, {State::placed, path});
    const std::lock_guard lock(mutex_);
    names_.erase(first);
  }

 private:
  void set(const std::string& first, Found found) {
    const std::lock_guard lock(mutex_);
    names_[first] = std::move(found);
  }
  mutable std::mutex mutex_;
  std::map<std::string, Found, std::less<>> names_;
};

}  // namespace ccixfer::recv
