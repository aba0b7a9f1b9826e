// Filled buffers come out in order and count as held until they are released.
#include "app/recv/inbox.h"

#include <catch2/catch.hpp>

namespace ccixfer::recv {
namespace {

TEST_CASE("inbox__buffers__come_out_in_order_and_count_as_held_until_they_are_released") {
  memory::Pool pool(4096, 2);
  Inbox inbox;
  for (const uint64_t n : {4u, 5u}) inbox.add({pool.lend(), 1, 3, n});
  CHECK(inbox.held() == 2);
  ReceivedSegment first = inbox.take();
  CHECK(first.n == 4);
  CHECK_FALSE(inbox.empty());
  ReceivedSegment second = inbox.take();
  CHECK(second.n == 5);
  CHECK(inbox.empty());
  CHECK(inbox.held() == 2);
  CHECK(pool.free_count() == 0);
  inbox.release(first);
  CHECK(inbox.held() == 1);
  CHECK(pool.free_count() == 1);
  inbox.release(second);
  CHECK(inbox.held() == 0);
}

}  // namespace
}  // namespace ccixfer::recv
