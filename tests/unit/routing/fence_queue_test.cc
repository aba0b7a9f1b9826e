// What waits behind a fence, and when it may begin.
#include "routing/transport/fence_queue.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

struct Behind {
  void release() {
    queue.release([this] { return under_way == 0; },
                  [this](uint64_t token, const std::vector<std::byte>& message) {
                    began.push_back(token);
                    bytes += message.size();
                    ++under_way;
                  },
                  [this](uint64_t number) {
                    began.push_back(number);
                    ++under_way;
                  });
  }
  FenceQueue queue;
  int under_way = 1;
  size_t bytes = 0;
  std::vector<uint64_t> began;
};

}  // namespace

TEST_CASE("fence_queue__behind_a_fence__all_wait_until_what_was_before_has_ended") {
  Behind behind;
  behind.queue.push_operation(1, true);
  behind.queue.push_message(2, std::vector<std::byte>(3));
  behind.queue.push_operation(3, false);
  behind.queue.push_operation(4, true);
  behind.release();
  CHECK(behind.began.empty());
  CHECK(behind.queue.messages() == 1);
  CHECK(behind.queue.operations() == 3);
  behind.under_way = 0;
  behind.release();
  CHECK(behind.began == std::vector<uint64_t>{1, 2, 3});
  CHECK(behind.bytes == 3);
  CHECK(behind.queue.messages() == 0);
  CHECK(behind.queue.operations() == 1);
  behind.release();
  CHECK(behind.began.size() == 3);
  behind.under_way = 0;
  behind.release();
  CHECK(behind.began.back() == 4);
  CHECK(behind.queue.empty());
  CHECK(behind.queue.operations() == 0);
}

TEST_CASE("fence_queue__the_connection_is_over__its_messages_end_in_order_and_nothing_waits") {
  Behind behind;
  behind.queue.push_operation(1, true);
  behind.queue.push_message(2, {});
  behind.queue.push_message(3, {});
  std::vector<uint64_t> ended;
  behind.queue.end_all([&](uint64_t token) { ended.push_back(token); });
  CHECK(ended == std::vector<uint64_t>{2, 3});
  CHECK(behind.queue.empty());
  CHECK(behind.queue.messages() == 0);
  CHECK(behind.queue.operations() == 0);
}
