// One flow that is slow, stopped or greedy, and what the others have of it. Rates are such that transfers take seconds of virtual
// time.
#include <algorithm>
#include <cstdio>
#include <list>

#include "tests/sim/deadlock/world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

double seconds_of(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// A sender of puts that goes on trying, as one without credit would not: the hardest that a receiver which does not post can meet.
class Putter {
 public:
  Putter(Net& net, App& from, App& to, size_t bytes) : net_(net), from_(from), to_(to), data_(pattern(bytes, 3)) {
    auto& mailboxes = to.endpoint->mailboxes();
    REQUIRE(mailboxes.open(7, {.key = 1}) == Status::success);
    const cci::Event event = net.connect_event(from, to.uri());
    REQUIRE(event.status == Status::success);
    connection_ = event.connection;
    local_ = from.memory->register_region(Bytes(data_));
  }
  void post() {
    buffers_.push_back(std::vector<std::byte>(data_.size()));
    REQUIRE(to_.endpoint->mailboxes().post(7, MutableBytes(buffers_.back()), 0) == Status::success);
  }
  // Keeps `most` puts under way; a refused one is tried again after the pause.
  void drive(size_t most, Duration pause) {
    std::erase_if(from_.events, [&](const cci::Event& event) {
      if (event.type != EventType::send || event.context != 2) return false;
      --under_way_;
      if (event.status == Status::mailbox_empty) {
        ++refused;
        not_before_ = after(net_.world.now(), pause);
      } else if (event.status == Status::success) {
        ++placed;
      }
      return true;
    });
    if (net_.world.now() < not_before_) return;
    for (; under_way_ < most; ++under_way_) {
      cci::RmaOptions put;
      put.local = local_;
      put.remote.handle.kind = ports::HandleKind::mailbox;
      put.remote.handle.number = 7;
      put.remote.handle.key = 1;
      put.length_bytes = data_.size();
      put.context = 2;
      REQUIRE(from_.endpoint->rma(connection_, put) == Status::success);
    }
    from_.wake();
  }
  size_t refused = 0, placed = 0;

 private:
  Net& net_;
  App& from_;
  App& to_;
  std::vector<std::byte> data_;
  std::list<std::vector<std::byte>> buffers_;
  cci::Connection connection_;
  cci::Handle local_;
  size_t under_way_ = 0;
  Instant not_before_{};
};

constexpr uint64_t rate = 5'000'000;  // bytes a second

struct Shares {
  uint64_t others = 0;  // fragments that the others moved
  size_t refused = 0, placed = 0;
};

// a and b on subnet 1 send through r0 and r1 to c and d on subnet 3, 2 and 4; c's receiver is the one that stops.
Shares ten_seconds(bool with_receiver, bool stops, bool empty_is_refused) {
  Net net(5);
  net.options.mechanisms.empty_is_refused = empty_is_refused;
  net.options.mechanisms.progress = empty_is_refused;  // else the put that waits is cut off
  net.pool_of_one();
  for (const uint32_t subnet : {1u, 2u, 3u, 4u, 9u}) net.set_rate(subnet, rate);
  net.router({1, 2, 9});
  net.router({9, 3, 4});
  net.settle();
  net.world.run_for(seconds(1));
  App& a = net.app(1);
  App& b = net.app(2);
  App& c = net.app(3);
  App& d = net.app(4);
  constexpr size_t bytes = 256u << 10;
  Putter putter(net, a, c, bytes);
  Flows flows(net);
  const size_t other = flows.add(b, d, 60'000'000);
  flows.start(other);
  Shares shares;
  const Instant until = after(net.world.now(), seconds(10));
  const uint64_t before = d.counters.get(Counter::bytes_in);
  size_t posted = 0;
  while (net.world.now() < until) {
    if (with_receiver) {
      if (!stops && posted < putter.placed + 4) {
        putter.post();
        ++posted;
      }
      putter.drive(2, milliseconds(20));
    }
    net.world.run_for(milliseconds(5));
  }
  shares.others = d.counters.get(Counter::bytes_in) - before;
  shares.refused = putter.refused;
  shares.placed = putter.placed;
  return shares;
}

}  // namespace

TEST_CASE("T7 a receiver posts nothing for 10 s: the others keep nine tenths of their rate") {
  const Shares alone = ten_seconds(false, false, true);
  const Shares beside_one_that_posts = ten_seconds(true, false, true);
  const Shares beside_one_that_stopped = ten_seconds(true, true, true);
  std::printf("others: %llu bytes alone, %llu beside a receiver that posts, %llu beside one that does not (%zu puts refused)\n",
              static_cast<unsigned long long>(alone.others), static_cast<unsigned long long>(beside_one_that_posts.others),
              static_cast<unsigned long long>(beside_one_that_stopped.others), beside_one_that_stopped.refused);
  CHECK(beside_one_that_posts.placed > 20);
  CHECK(beside_one_that_stopped.placed == 0);
  CHECK(beside_one_that_stopped.refused > 20);
  CHECK(beside_one_that_stopped.others >= beside_one_that_posts.others * 9 / 10);
}

TEST_CASE("T7 control: with the last router waiting for a buffer the others have less") {
  const Shares beside_one_that_posts = ten_seconds(true, false, true);
  const Shares beside_one_that_stopped = ten_seconds(true, true, false);
  std::printf("others: %llu bytes with the last router waiting\n", static_cast<unsigned long long>(beside_one_that_stopped.others));
  CHECK(beside_one_that_stopped.others < beside_one_that_posts.others * 9 / 10);
}

namespace {

// Three flows from left to a crawling LAN fill r0 and r1 of what class they use; messages go the same way, beside and back.
struct Messages {
  size_t sent = 0;
  Duration longest{0};
  bool full_all_the_time = true;
};

Messages talk_while_full(bool messages_apart, Duration at_most) {
  Net net(3);
  net.options.mechanisms.messages_apart = messages_apart;
  net.pool_of_one();
  for (const uint32_t subnet : {1u, 2u, 9u}) net.set_rate(subnet, 100'000'000);
  net.set_rate(3, 100'000);
  net.router({1, 9});
  net.router({9, 2, 3});
  net.settle();
  net.world.run_for(seconds(1));
  App& left = net.app(1);
  App& right = net.app(2);
  App& crawling = net.app(3);
  Flows flows(net);
  for (int i = 0; i < 3; ++i) flows.add(left, crawling, 8u << 20);
  const cci::Event beside = net.connect_event(left, right.uri());
  const cci::Event back = net.connect_event(right, left.uri());
  const cci::Event from_crawling = net.connect_event(crawling, left.uri());
  for (const cci::Event* event : {&beside, &back, &from_crawling}) REQUIRE(event->status == Status::success);
  flows.start_all();
  net.world.run_for(seconds(2));  // of 64 KiB each, at 100 kB/s: every buffer of the way is taken
  struct Way {
    App* from;
    cci::Connection connection;
  };
  const Way ways[] = {
      {&left, beside.connection}, {&right, back.connection}, {&crawling, from_crawling.connection}, {&left, flows[0].connection}};
  Messages result;
  for (int round = 0; round < 5; ++round) {
    for (const Way& way : ways) {
      const bool full = net.routers[0]->router->fragments_in_use() == 1 && net.routers[1]->router->fragments_in_use() == 1;
      result.full_all_the_time = result.full_all_the_time && full;
      REQUIRE(way.from->endpoint->send(way.connection, as_bytes("credit"), 9) == Status::success);
      const Instant began = net.world.now();
      way.from->wake();
      const auto ended = [&] {
        return std::any_of(way.from->events.begin(), way.from->events.end(),
                           [](const cci::Event& event) { return event.type == EventType::send && event.context == 9; });
      };
      if (!net.run(ended, at_most)) return result;
      CHECK(way.from->take(EventType::send)->status == Status::success);
      ++result.sent;
      result.longest = std::max(result.longest, net.world.now() - began);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("T8 every data buffer of the way is full: messages, acks and credits go on") {
  const Messages messages = talk_while_full(true, seconds(30));
  CHECK(messages.sent == 20);
  CHECK(messages.full_all_the_time);
  // On the crawling link they wait for what is on its way there already, a window of the stream at most: 256 KiB at 100 kB/s.
  CHECK(messages.longest < seconds(4));
}

TEST_CASE("T8 control: messages that need a data buffer do not") {
  const Messages messages = talk_while_full(false, seconds(5));
  CHECK(messages.sent < 20);
}

namespace {

// Sixteen flows in transit through r1 keep its way out busy; one flow begins on r1's own LAN.
Duration local_wait(RouterMechanisms mechanisms, Duration at_most) {
  Net net(7);
  net.options.mechanisms = mechanisms;
  net.options.memory_bytes = 12u * net.options.fragment_bytes;
  for (const uint32_t subnet : {1u, 2u, 9u}) net.set_rate(subnet, 100'000'000);
  net.set_rate(3, 10'000'000);
  net.router({1, 9});
  net.router({9, 2, 3});
  net.settle();
  net.world.run_for(seconds(1));
  App& far = net.app(1);
  App& near = net.app(2);
  App& out = net.app(3);
  Flows flows(net);
  for (int i = 0; i < 16; ++i) flows.add(far, out, 8u << 20);
  const size_t local = flows.add(near, out, net.options.fragment_bytes);
  for (size_t i = 0; i < local; ++i) flows.start(i);
  net.world.run_for(seconds(1));
  flows.start(local);
  if (!flows.run_until_ended(local, at_most)) return forever;
  CHECK(flows[local].delivered());
  CHECK(flows.ended() == 1);  // transit still goes on
  return flows[local].took_until - flows[local].began;
}

}  // namespace

TEST_CASE("T11 what is in transit goes first, and what begins here waits a bounded time") {
  // 64 KiB take 6.5 ms on the way out, which sixteen connections and ours share; twice that round is plenty.
  const Duration wait = local_wait({}, seconds(20));
  std::printf("a local fragment waited %.3f s\n", seconds_of(wait));
  CHECK(wait < milliseconds(300));
}

TEST_CASE("T11 control: without a buffer of its class it waits for the end of all transit") {
  RouterMechanisms none_reserved;
  none_reserved.reserved = false;
  CHECK(local_wait(none_reserved, seconds(10)) == forever);
}

namespace {

// 64 connections between as many pairs of applications share a router's way out. The slowest and the mean, in bytes, after 2 s.
struct Spread {
  double slowest = 0, mean = 0;
};

Spread sixty_four(bool turns) {
  Net net(9);
  net.options.mechanisms.turns = turns;
  for (const uint32_t subnet : {1u, 2u}) net.set_rate(subnet, 40'000'000);
  net.router({1, 2});
  net.settle();
  App& from = net.app(1);
  std::vector<App*> ends;
  Flows flows(net);
  for (int i = 0; i < 64; ++i) {
    ends.push_back(&net.app(2));
    flows.add(from, *ends.back(), 3u << 20);
  }
  flows.start_all();
  net.world.run_for(seconds(2));
  Spread spread;
  spread.slowest = 1e18;
  for (const App* end : ends) {
    const auto got = static_cast<double>(end->counters.get(Counter::bytes_in));
    spread.slowest = std::min(spread.slowest, got);
    spread.mean += got / 64;
  }
  return spread;
}

}  // namespace

TEST_CASE("Fairness: of 64 flows through a router the slowest has at least 0.7 of the mean") {
  const Spread spread = sixty_four(true);
  std::printf("64 flows: the slowest %.0f bytes, the mean %.0f\n", spread.slowest, spread.mean);
  CHECK(spread.mean > 5e5);
  CHECK(spread.slowest >= 0.7 * spread.mean);
}

TEST_CASE("Fairness control: first come, first served") {
  const Spread spread = sixty_four(false);
  CHECK(spread.slowest < 0.7 * spread.mean);
}
