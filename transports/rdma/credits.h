// How many packets each end of a connection may send. Every packet with records takes one slot of the receiver's shared queue until
// the receiver has looked at it, and whoever sends more than it was allowed is noticed with the first packet too many. Pure;
// single-threaded. The window that a peer gets grows from credits_first with the first packet that tells it so.
#pragma once
#include <algorithm>
#include <cstdint>

#include "transports/rdma/limits.h"

namespace ccixfer::rdma {

class Credits {
 public:
  void open(uint16_t window) { window_ = window; }

  // Of ours.
  [[nodiscard]] bool any() const { return ours_ > 0; }
  void spend() { --ours_; }  // any() only
  // The peer allows so many more. false: more than anybody gives.
  [[nodiscard]] bool granted(uint16_t count) {
    ours_ += count;
    return ours_ <= credits_held_max;
  }

  // Of the peer's. false: it had none left.
  [[nodiscard]] bool taken() {
    if (theirs_ == 0) return false;
    --theirs_;
    return true;
  }
  [[nodiscard]] uint16_t owed() const { return static_cast<uint16_t>(window_ - std::min(window_, theirs_)); }
  [[nodiscard]] bool due() const { return owed() > 0 && owed() * 2 >= window_; }  // too many to wait for a packet to ride with
  // What the next packet says.
  [[nodiscard]] uint16_t give() {
    const uint16_t count = owed();
    theirs_ = static_cast<uint16_t>(theirs_ + count);
    return count;
  }

 private:
  uint32_t ours_ = credits_first;
  uint16_t theirs_ = credits_first;
  uint16_t window_ = credits_first;
};

}  // namespace ccixfer::rdma
