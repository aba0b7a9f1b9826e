// What a member of a group remembers of its senders: a script of numbers, and the bounds.
#include "transports/datagram/group_senders.h"

#include <catch2/catch.hpp>

namespace ccixfer::datagram {
namespace {

Address host(uint32_t n) {
  Address address;
  address.low = n;
  address.port = 7;
  return address;
}

}  // namespace

TEST_CASE("group_senders__old_in_order_duplicate_and_future__fresh_once") {
  GroupSenders senders;
  const auto fresh = [&](uint64_t number) { return senders.is_fresh(host(1), 5, number); };
  CHECK(fresh(1000));
  CHECK_FALSE(fresh(1000));
  CHECK(fresh(1001));
  CHECK(fresh(999));  // late, and before the first that was heard
  CHECK_FALSE(fresh(999));
  CHECK(fresh(1010));
  CHECK(fresh(1005));
  CHECK_FALSE(fresh(1001));
  CHECK_FALSE(fresh(1005));
  // The oldest that is remembered, and the first that is not.
  CHECK(fresh(1010 - group_numbers_window + 1));
  CHECK_FALSE(fresh(1010 - group_numbers_window));
  CHECK_FALSE(fresh(0));
  // A jump over the whole window, and one to its last place.
  CHECK(fresh(1010 + group_numbers_window));
  CHECK_FALSE(fresh(1010));
  CHECK(fresh(1011));
  CHECK(fresh(1010 + 2 * group_numbers_window - 1));
  CHECK_FALSE(fresh(1010 + group_numbers_window));
  CHECK(fresh(UINT64_MAX));
  CHECK_FALSE(fresh(UINT64_MAX));
  CHECK_FALSE(fresh(0));
  CHECK(senders.size() == 1);
}

TEST_CASE("group_senders__other_address_or_key__another_sender") {
  GroupSenders senders;
  CHECK(senders.is_fresh(host(1), 5, 10));
  CHECK(senders.is_fresh(host(1), 6, 10));
  CHECK(senders.is_fresh(host(2), 5, 10));
  CHECK_FALSE(senders.is_fresh(host(2), 5, 10));
  CHECK_FALSE(senders.is_fresh(host(1), 5, 10));
  CHECK(senders.size() == 3);
}

TEST_CASE("group_senders__more_than_are_remembered__the_one_silent_longest_is_forgotten") {
  GroupSenders senders;
  for (uint32_t n = 0; n < group_senders_max; ++n) CHECK(senders.is_fresh(host(n), 5, 1));
  CHECK(senders.is_fresh(host(0), 5, 2));  // so that 1 is the most silent
  CHECK(senders.is_fresh(host(1000), 5, 1));
  CHECK_FALSE(senders.is_fresh(host(0), 5, 1));
  CHECK_FALSE(senders.is_fresh(host(2), 5, 1));
  CHECK(senders.is_fresh(host(1), 5, 1));  // forgotten
  for (uint32_t n = 0; n < 10'000; ++n) CHECK(senders.is_fresh(host(2000 + n), n, 1));
  CHECK(senders.size() == group_senders_max);
}

}  // namespace ccixfer::datagram
