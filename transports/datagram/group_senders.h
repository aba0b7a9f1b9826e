// Which messages of a group have come already: the numbers of the senders that were heard last. Pure. Guarantees: a number is
// fresh at most once while its sender is remembered; what is older than all that is remembered of it counts as come. Bounds:
// group_senders_max senders, of which the one that was silent longest is forgotten, and group_numbers_window numbers each.
// Whoever reads the group can speak in a sender's name, and so end what is heard of it: README.md, 'Groups'.
// Source: RFC 4303, 3.4.3 (the window).
#pragma once
#include <bitset>
#include <cstdint>
#include <vector>

#include "transports/datagram/datagram_net.h"
#include "transports/datagram/limits.h"

namespace ccixfer::datagram {

class GroupSenders {
 public:
  // Whether the number has not come before; it counts as come from then on. `key` is the sending connection's.
  [[nodiscard]] bool is_fresh(const Address& from, uint64_t key, uint64_t number);
  [[nodiscard]] size_t size() const { return senders_.size(); }

 private:
  struct Sender {
    Address address;
    uint64_t key = 0;
    uint64_t heard = 0;                        // in the order of all that came
    uint64_t newest = 0;                       // the highest number
    std::bitset<group_numbers_window> came{};  // bit i: newest - i
  };
  [[nodiscard]] Sender& sender(const Address& from, uint64_t key, uint64_t number);

  std::vector<Sender> senders_;
  uint64_t heard_ = 0;
};

}  // namespace ccixfer::datagram
