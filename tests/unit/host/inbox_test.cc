// What threads ask a loop to do.
#include "core/host/inbox.h"

#include <catch2/catch.hpp>
#include <thread>

#include "core/host/clock.h"

using namespace ccixfer;
using namespace ccixfer::host;

TEST_CASE("inbox__calls_of_several_threads__are_made_by_the_loop_in_the_order_of_each") {
  auto waker = Waker::create(Waits::inside);
  REQUIRE(waker);
  Inbox inbox(*waker);
  const SystemClock clock;
  std::vector<int> first, second;
  constexpr int calls = 1000;
  const auto poster = [&](std::vector<int>& list) {
    for (int i = 0; i < calls; ++i) inbox.post([&list, i] { list.push_back(i); });
  };
  std::thread one(poster, std::ref(first)), two(poster, std::ref(second));
  while (first.size() + second.size() < 2 * calls) {
    (*waker)->wait(clock.now(), after(clock.now(), std::chrono::seconds(20)));
    inbox.take();
  }
  one.join();
  two.join();
  for (const auto& list : {first, second}) {
    REQUIRE(list.size() == calls);
    CHECK(std::is_sorted(list.begin(), list.end()));
  }
}

TEST_CASE("inbox__a_call_that_posts_another__has_it_made_next_time") {
  auto waker = Waker::create(Waits::inside);
  REQUIRE(waker);
  Inbox inbox(*waker);
  int made = 0;
  inbox.post([&] {
    ++made;
    inbox.post([&] { ++made; });
  });
  inbox.take_all();
  CHECK(made == 1);
  inbox.take_all();
  CHECK(made == 2);
}
