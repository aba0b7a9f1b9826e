// The connections that have something to do in the next turn, each once, in the order in which they were added. An entry may be
// patient: then nobody needs to be woken for it at once. Pure; single-threaded.
#pragma once
#include <cstdint>
#include <vector>

namespace ccixfer::connection {

class ReadyList {
 public:
  // `queued` is the entry's own mark, which the list keeps.
  void add(uint32_t index, bool& queued, bool patient) {
    urgent_ = urgent_ || !patient;
    if (queued) return;
    queued = true;
    ready_.push_back(index);
  }
  // Takes a patient entry back that was added last, if nothing urgent has been added.
  void take_back(uint32_t index, bool& queued) {
    if (!queued || urgent_ || ready_.back() != index) return;
    ready_.pop_back();
    queued = false;
  }
  // Calls `serve(index)` for each entry. What is added meanwhile is for the next turn.
  template <typename Serve>
  void serve_all(const Serve& serve) {
    serving_.swap(ready_);
    urgent_ = false;
    for (const uint32_t index : serving_) serve(index);
    serving_.clear();
  }
  template <typename IsGone>
  void forget(const IsGone& is_gone) {
    std::erase_if(ready_, is_gone);
  }
  [[nodiscard]] bool empty() const { return ready_.empty(); }
  [[nodiscard]] bool urgent() const { return urgent_; }  // somebody in it is not patient

 private:
  std::vector<uint32_t> ready_;
  std::vector<uint32_t> serving_;
  bool urgent_ = false;
};

}  // namespace ccixfer::connection
