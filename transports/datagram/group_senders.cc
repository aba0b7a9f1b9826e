#include "transports/datagram/group_senders.h"

#include <algorithm>

namespace ccixfer::datagram {

GroupSenders::Sender& GroupSenders::sender(const Address& from, uint64_t key, uint64_t number) {
  const auto found = std::ranges::find_if(senders_, [&](const Sender& s) { return s.key == key && s.address == from; });
  if (found != senders_.end()) return *found;
  Sender fresh;
  fresh.address = from;
  fresh.key = key;
  fresh.newest = number;
  if (senders_.size() < group_senders_max) return senders_.emplace_back(fresh);
  Sender& silent = *std::ranges::min_element(senders_, {}, &Sender::heard);
  silent = fresh;
  return silent;
}

bool GroupSenders::is_fresh(const Address& from, uint64_t key, uint64_t number) {
  Sender& s = sender(from, key, number);
  s.heard = ++heard_;
  if (number > s.newest) {
    const uint64_t steps = number - s.newest;
    if (steps < group_numbers_window) {
      s.came <<= static_cast<size_t>(steps);
    } else {
      s.came.reset();
    }
    s.newest = number;
  }
  const uint64_t age = s.newest - number;
  if (age >= group_numbers_window || s.came.test(static_cast<size_t>(age))) return false;
  s.came.set(static_cast<size_t>(age));
  return true;
}

}  // namespace ccixfer::datagram
