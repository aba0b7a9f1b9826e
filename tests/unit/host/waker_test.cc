// The waker: what ends a wait, and that no event is lost, doubled or told of another descriptor.
#include "core/host/waker.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <list>
#include <thread>
#include <vector>

#include "core/host/clock.h"

namespace ccixfer::host {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t edges = EPOLLIN | EPOLLET;

struct Pipe {
  Pipe() {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    out.reset(ends[0]);
    in.reset(ends[1]);
  }
  void put() const { REQUIRE(::write(in.get(), "x", 1) == 1); }
  void take() const {
    char byte = 0;
    REQUIRE(::read(out.get(), &byte, 1) == 1);
  }
  Descriptor out, in;  // `out` is what one reads from
};

std::shared_ptr<Waker> make(Waits waits = Waits::inside) {
  auto waker = Waker::create(waits);
  REQUIRE(waker);
  return std::move(*waker);
}

Instant now() { return SystemClock().now(); }

// Waits as long as it takes: a test that hangs here has failed.
void wait(Waker& waker) { waker.wait(now(), never); }

std::vector<uint64_t> tokens(WatchList& list) {
  std::vector<uint64_t> all;
  while (const auto ready = list.next()) all.push_back(ready->token);
  std::sort(all.begin(), all.end());
  return all;
}

// What the kernel says now.
std::vector<uint64_t> looked(WatchList& list) {
  list.look(now());
  return tokens(list);
}

bool readable(const Waker& waker, int timeout_ms = 0) {
  pollfd handle{waker.os_handle(), POLLIN, 0};
  return ::poll(&handle, 1, timeout_ms) == 1;
}

using Tokens = std::vector<uint64_t>;

}  // namespace

TEST_CASE("waker__a_wait__ends_for_what_is_ready_and_the_list_has_its_token") {
  const auto waker = make();
  WatchList list(waker);
  Pipe pipe, quiet;
  REQUIRE(list.add(pipe.out.get(), 7, edges));
  REQUIRE(list.add(quiet.out.get(), 8, edges));
  CHECK_FALSE(list.next());
  pipe.put();
  wait(*waker);
  const auto ready = list.next();
  REQUIRE(ready);
  CHECK(ready->token == 7);
  CHECK((ready->events & EPOLLIN) != 0);
  CHECK_FALSE(list.next());
}

TEST_CASE("waker__edges_are_told_once_and_levels_at_each_look") {
  const auto waker = make();
  WatchList list(waker);
  Pipe edge, level;
  REQUIRE(list.add(edge.out.get(), 1, edges));
  REQUIRE(list.add(level.out.get(), 2, EPOLLIN));
  edge.put();
  level.put();
  CHECK(looked(list) == Tokens{1, 2});
  CHECK(looked(list) == Tokens{2});
  edge.put();  // one more of it is another edge
  level.take();
  CHECK(looked(list) == Tokens{1});
  CHECK(looked(list).empty());
}

TEST_CASE("waker__events_that_were_not_taken__are_one_with_all_that_came") {
  const auto waker = make();
  WatchList list(waker), other(waker);
  const Descriptor event(eventfd(0, EFD_NONBLOCK));
  REQUIRE(list.add(event.get(), 5, EPOLLIN | EPOLLOUT | EPOLLET));
  uint64_t count = 1;
  REQUIRE(::write(event.get(), &count, sizeof count) == sizeof count);
  other.look(now());  // readable
  REQUIRE(::read(event.get(), &count, sizeof count) == sizeof count);
  other.look(now());  // and now writable only
  const auto ready = list.next();
  REQUIRE(ready);
  CHECK((ready->events & (EPOLLIN | EPOLLOUT)) == (EPOLLIN | EPOLLOUT));
  CHECK_FALSE(list.next());
}

TEST_CASE("waker__a_wait_with_something_to_take__does_not_wait") {
  const auto waker = make();
  WatchList list(waker), other(waker);
  Pipe pipe;
  REQUIRE(list.add(pipe.out.get(), 1, edges));
  pipe.put();
  other.look(now());
  wait(*waker);  // the edge was told to the look: the kernel would not tell it again
  CHECK(tokens(list) == Tokens{1});
}

TEST_CASE("waker__two_lists__one_question_brings_what_both_watch") {
  const auto waker = make();
  WatchList one(waker), two(waker);
  Pipe first, second, later;
  REQUIRE(one.add(first.out.get(), 1, edges));
  REQUIRE(two.add(second.out.get(), 1, edges));  // tokens are each list's own
  REQUIRE(two.add(later.out.get(), 2, edges));
  first.put();
  second.put();
  wait(*waker);
  later.put();
  CHECK(one.has_news());
  CHECK(looked(one) == Tokens{1});
  CHECK(looked(two) == Tokens{1});  // the wait's answer: nobody was asked again
  CHECK_FALSE(two.has_news());
  CHECK(looked(two) == Tokens{2});
}

TEST_CASE("waker__looks_alone__until_another_list_asks_too_and_never_for_the_handle") {
  const auto waker = make();
  WatchList loop(waker), net(waker);
  CHECK(net.looks_alone());
  net.look(now());
  CHECK(net.looks_alone());
  loop.look(now());  // the net has asked meanwhile: it needs not
  CHECK(net.looks_alone());
  {
    WatchList another(waker);
    another.look(now());  // nobody asked since it began
    another.look(now());
    CHECK_FALSE(net.looks_alone());
    CHECK_FALSE(another.looks_alone());
  }
  CHECK(net.looks_alone());
  WatchList outside(make(Waits::for_handle));
  CHECK_FALSE(outside.looks_alone());
}

TEST_CASE("waker__removed_in_the_batch_that_has_its_event__is_not_reported") {
  const auto waker = make();
  WatchList list(waker);
  Pipe first, second;
  const auto id = list.add(first.out.get(), 1, edges);
  REQUIRE(id);
  REQUIRE(list.add(second.out.get(), 2, edges));
  first.put();
  second.put();
  list.look(now());
  SECTION("removed") {
    CHECK(list.remove(*id));
    CHECK(tokens(list) == Tokens{2});
  }
  SECTION("closed") {
    list.closed(*id);
    first.out.reset();
    CHECK(tokens(list) == Tokens{2});
  }
  SECTION("its slot is used again") {
    CHECK(list.remove(*id));
    Pipe third;
    REQUIRE(list.add(third.out.get(), 3, edges));
    CHECK(tokens(list) == Tokens{2});
    third.put();
    CHECK(looked(list) == Tokens{3});
  }
  waker->wait(now(), now() + 1ms);  // nothing is left to take: it would not end for that
  CHECK_FALSE(list.next());
}

TEST_CASE("waker__the_slot_of_a_removed_one__may_be_another_lists") {
  const auto waker = make();
  WatchList one(waker), two(waker);
  Pipe first, second;
  const auto id = one.add(first.out.get(), 1, edges);
  REQUIRE(id);
  first.put();
  one.look(now());
  REQUIRE(one.remove(*id));
  REQUIRE(two.add(second.out.get(), 2, edges));
  second.put();
  two.look(now());
  two.look(now());
  CHECK(tokens(one).empty());
  CHECK(tokens(two) == Tokens{2});
  two.closed(*id);  // not its own: nothing
  second.put();
  CHECK(looked(two) == Tokens{2});
}

TEST_CASE("waker__a_descriptor_closed_and_its_number_used_again__tells_of_the_new_one") {
  const auto waker = make();
  WatchList list(waker);
  Pipe old;
  const int number = old.out.get();
  const auto id = list.add(number, 1, edges);
  REQUIRE(id);
  old.put();
  const Pipe fresh;
  list.closed(*id);
  old.out.reset();
  REQUIRE(dup2(fresh.out.get(), number) == number);
  const Descriptor again(number);
  const auto new_id = list.add(number, 2, edges);
  REQUIRE(new_id);
  CHECK(looked(list).empty());
  fresh.put();
  CHECK(looked(list) == Tokens{2});
  list.closed(*id);  // the old name finds nothing
  fresh.put();
  CHECK(looked(list) == Tokens{2});
  CHECK(list.remove(*new_id));
  fresh.put();
  CHECK(looked(list).empty());
}

// The kernel goes on telling of a descriptor that somebody else holds too.
TEST_CASE("waker__a_closed_descriptor_with_a_duplicate__is_told_to_nobody") {
  const auto waker = make();
  WatchList list(waker);
  Pipe pipe, other;
  const Descriptor duplicate(dup(pipe.out.get()));
  const auto id = list.add(pipe.out.get(), 1, edges);
  REQUIRE(id);
  list.closed(*id);
  pipe.out.reset();
  pipe.put();
  CHECK(looked(list).empty());
  REQUIRE(list.add(other.out.get(), 2, edges));  // in the slot of the old one
  pipe.put();
  CHECK(looked(list).empty());
}

TEST_CASE("waker__more_are_ready_than_one_batch_takes__all_are_told_and_none_twice") {
  constexpr uint64_t count = events_per_batch_max + 44;
  const auto waker = make();
  WatchList list(waker);
  std::list<Pipe> pipes;
  for (uint64_t token = 0; token < count; ++token) {
    REQUIRE(list.add(pipes.emplace_back().out.get(), token, edges));
    pipes.back().put();
  }
  const Tokens first = looked(list), rest = looked(list);
  CHECK(first.size() == events_per_batch_max);
  CHECK(rest.size() == count - first.size());
  Tokens all = first;
  all.insert(all.end(), rest.begin(), rest.end());
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  CHECK(looked(list).empty());
}

TEST_CASE("waker__deadlines__in_the_past_end_a_wait_at_once_and_the_earliest_counts") {
  const auto waker = make();
  WatchList list(waker), other(waker);
  Pipe pipe;
  REQUIRE(list.add(pipe.out.get(), 1, edges));
  const Instant begun = now();
  waker->wait(begun, begun);
  waker->wait(begun, begun - 1h);
  waker->wait(begun, Instant::min());
  pipe.put();
  waker->wait(begun, begun);
  CHECK_FALSE(list.next());  // they did not ask the kernel
  CHECK(looked(list) == Tokens{1});

  waker->wait(begun, begun + 3ms);
  CHECK(now() >= begun + 3ms);
  list.arm(begun + 5ms);
  other.arm(begun + 1h);
  wait(*waker);
  CHECK(now() >= begun + 5ms);
  list.arm(begun + 2h);
  other.arm(begun);
  wait(*waker);  // in the past
  other.arm(never);
  const Instant later = now();
  list.arm(later + 4ms);
  wait(*waker);
  CHECK(now() >= later + 4ms);
}

TEST_CASE("waker__the_deadline_of_a_list_that_is_gone__ends_no_wait") {
  const auto waker = make();
  WatchList list(waker);
  {
    WatchList gone(waker);
    Pipe pipe;
    REQUIRE(gone.add(pipe.out.get(), 1, edges));
    pipe.put();
    gone.arm(Instant::min());
    list.look(now());  // and what it had to take is nobody's
  }
  const Instant begun = now();
  waker->wait(begun, begun + 2ms);
  CHECK(now() >= begun + 2ms);
  CHECK_FALSE(list.next());
}

TEST_CASE("waker__woken_from_another_thread__the_wait_ends_and_who_asked_is_told_once") {
  const auto waker = make();
  WatchList list(waker), other(waker);
  { const WakeHandle gone = list.wake_handle(); }  // it had a descriptor of its own
  const WakeHandle handle = list.wake_handle();
  REQUIRE(handle);
  for (int i = 0; i < 3; ++i) {
    std::thread thread([&] { handle.wake(); });
    wait(*waker);
    thread.join();
    CHECK(list.woken());
    CHECK_FALSE(list.woken());
    CHECK_FALSE(other.woken());
  }
}

TEST_CASE("waker__woken_after_the_waker_is_gone__nothing_happens") {
  auto waker = make();
  std::optional<WatchList> list(std::in_place, waker);
  const WakeHandle handle = list->wake_handle();
  list.reset();
  waker.reset();
  handle.wake();
  CHECK(handle);
}

TEST_CASE("waker__os_handle__readable_for_descriptors_deadlines_and_news_of_other_lists") {
  const auto waker = make(Waits::for_handle);
  WatchList list(waker), other(waker);
  Pipe pipe;
  REQUIRE(list.add(pipe.out.get(), 1, edges));
  CHECK(looked(list).empty());
  other.look(now());
  CHECK_FALSE(readable(*waker));
  pipe.put();
  CHECK(readable(*waker));
  other.look(now());
  CHECK_FALSE(readable(*waker));
  list.arm(never);
  CHECK(readable(*waker));
  CHECK(looked(list) == Tokens{1});
  list.look(now());
  list.arm(never);
  CHECK_FALSE(readable(*waker));

  list.arm(now() - 1s);
  CHECK(readable(*waker));
  list.look(now());
  list.look(now());
  CHECK_FALSE(readable(*waker));
  list.arm(now() + 1h);
  CHECK_FALSE(readable(*waker));
  other.arm(now() + 5ms);  // the earlier of two
  CHECK(readable(*waker, 20'000));
  const WakeHandle handle = list.wake_handle();
  list.look(now());
  other.arm(never);
  list.look(now());
  CHECK_FALSE(readable(*waker));
  handle.wake();
  CHECK(readable(*waker));
  list.look(now());
  CHECK(list.woken());
}

TEST_CASE("waker__what_cannot_be_watched__is_an_error_and_leaves_the_list_as_it_was") {
  const auto waker = make();
  WatchList list(waker);
  CHECK_FALSE(list.add(-1, 1, edges));
  Pipe pipe;
  const auto id = list.add(pipe.out.get(), 2, edges);
  REQUIRE(id);
  CHECK_FALSE(list.add(pipe.out.get(), 3, edges));  // it is watched already
  pipe.put();
  CHECK(looked(list) == Tokens{2});
  pipe.out.reset();
  CHECK_FALSE(list.remove(*id));  // too late: it is closed
  list.closed(*id);
  CHECK(list.remove(*id));
}

}  // namespace ccixfer::host
