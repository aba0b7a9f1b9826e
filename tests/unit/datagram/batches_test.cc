// Datagrams in batches: how many calls they take, and what becomes of those that a call does not take.
#include <cerrno>

#include "tests/unit/datagram/rig.h"
#include "transports/datagram/outbox.h"

namespace ccixfer::datagram::testing {
namespace {

// Says of each call what it is told to, and takes all when it is told nothing.
class ScriptedNet final : public DatagramNet {
 public:
  [[nodiscard]] std::string_view scheme() const override { return "script"; }
  [[nodiscard]] std::string uri() const override { return {}; }
  [[nodiscard]] uint32_t datagram_bytes_max() const override { return datagram_bytes_min; }
  [[nodiscard]] Result<uint64_t> resolve(std::string_view) override { return fail(ErrorKind::usage, "no"); }
  [[nodiscard]] Sent send(std::span<const Datagram> batch) override {
    REQUIRE_FALSE(batch.empty());
    REQUIRE(batch.size() <= batch_datagrams_max);
    ++calls;
    Sent sent{batch.size(), Sent::Stop::none};
    if (!script.empty()) {
      sent = script.front();
      script.pop_front();
      sent.taken = std::min(sent.taken, batch.size());
      if (sent.taken == batch.size()) sent.stop = Sent::Stop::none;
    }
    for (const Datagram& each : batch.first(sent.taken)) take(each);
    if (sent.stop == Sent::Stop::failed) refused.push_back(name_of(batch[sent.taken]));
    return sent;
  }
  void send_last(std::span<const Datagram> batch) override {
    for (const Datagram& each : batch) take(each);
  }
  void poll(Instant, DatagramEvents&) override {}
  void set_deadline(Instant) override {}
  [[nodiscard]] int os_handle() const override { return -1; }
  [[nodiscard]] std::string host_of(const Address&) const override { return "peer"; }

  [[nodiscard]] static uint64_t name_of(const Datagram& each) { return open_packet(each.bytes).value().header.number; }
  void take(const Datagram& each) {
    REQUIRE(each.peer.low == name_of(each));
    taken.push_back(name_of(each));
  }
  std::deque<Sent> script;
  std::vector<uint64_t> taken, refused;
  size_t calls = 0;
};

struct Post {
  void put(uint64_t number) { outbox.put_empty({0, number, 1, 0}, {.number = number}); }
  void put_all(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) put(i);
  }
  ScriptedNet net;
  Counters counters;
  Outbox outbox{net, counters};
};

std::vector<uint64_t> up_to(uint64_t count) {
  std::vector<uint64_t> numbers;
  for (uint64_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

}  // namespace

TEST_CASE("outbox__packets_of_a_turn__leave_in_as_few_calls_as_batches_hold_them") {
  for (const uint64_t count : {1u, 63u, 64u, 65u, 200u, 640u}) {
    CAPTURE(count);
    Post post;
    post.put_all(count);
    post.outbox.flush();
    CHECK(post.net.calls == (count + batch_datagrams_max - 1) / batch_datagrams_max);
    CHECK(post.net.taken == up_to(count));
    post.outbox.flush();  // nothing is left
    CHECK(post.net.taken.size() == count);
  }
}

TEST_CASE("outbox__a_part_is_taken__the_rest_is_offered_in_another_call") {
  Post post;
  post.net.script = {{10, Sent::Stop::none}, {1, Sent::Stop::none}};
  post.put_all(20);
  post.outbox.flush();
  CHECK(post.net.calls == 3);
  CHECK(post.net.taken == up_to(20));
}

TEST_CASE("outbox__no_room__the_rest_waits_and_leaves_first") {
  Post post;
  post.net.script = {{3, Sent::Stop::again}};
  post.put_all(10);
  post.outbox.flush();
  CHECK(post.outbox.blocked());
  CHECK_FALSE(post.outbox.has_room());
  post.put(10);  // an answer to a stranger, for example
  post.outbox.flush();
  CHECK(post.net.calls == 1);  // not before there is room
  CHECK(post.outbox.unblock());
  CHECK_FALSE(post.outbox.unblock());
  post.put(11);
  post.outbox.flush();
  CHECK(post.net.taken == up_to(12));
}

TEST_CASE("outbox__no_room_for_a_full_batch__what_comes_then_is_dropped") {
  Post post;
  post.net.script = {{0, Sent::Stop::again}};
  post.put_all(batch_datagrams_max);
  CHECK_FALSE(post.outbox.has_room());
  post.put(1000);
  CHECK(post.outbox.unblock());
  CHECK(post.outbox.has_room());
  post.put(batch_datagrams_max);
  post.outbox.flush();
  CHECK(post.net.taken == up_to(batch_datagrams_max + 1));
}

TEST_CASE("outbox__one_is_refused_for_good__it_alone_is_lost") {
  Post post;
  post.net.script = {{2, Sent::Stop::failed}, {0, Sent::Stop::failed}};
  post.put_all(6);
  post.outbox.flush();
  CHECK_FALSE(post.outbox.blocked());
  CHECK(post.net.refused == std::vector<uint64_t>{2, 3});
  CHECK(post.net.taken == std::vector<uint64_t>{0, 1, 4, 5});
  CHECK(post.counters.get(Counter::datagrams_refused) == 2);
}

TEST_CASE("outbox__a_peer_to_whom_nothing_can_be_sent__told_until_something_is_taken") {
  Post post;
  const Address second{0, 2, 1, 0}, third{0, 3, 1, 0};
  post.net.script = {{2, Sent::Stop::failed, ENETUNREACH}};
  post.put_all(4);
  post.outbox.flush();
  CHECK(post.outbox.refusal(second) == "this host cannot send there: Network is unreachable");
  CHECK(post.outbox.refusal(third).empty());
  post.put(3);
  post.outbox.flush();
  CHECK_FALSE(post.outbox.refusal(second).empty());
  post.put(2);
  post.outbox.flush();
  CHECK(post.outbox.refusal(second).empty());
}

TEST_CASE("outbox__the_last_words__leave_though_there_is_no_room") {
  Post post;
  post.net.script = {{1, Sent::Stop::again}};
  post.put_all(3);
  post.outbox.flush();
  post.put(3);
  post.outbox.flush_last();
  CHECK(post.net.taken == up_to(4));
}

TEST_CASE("outbox__any_answers__each_datagram_leaves_once_and_in_order_or_was_refused") {
  uint64_t refused = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    sim::Random random(seed);
    Post post;
    uint64_t next = 0;
    for (int turn = 0; turn < 50; ++turn) {
      for (uint64_t calls = random.below(4); calls > 0; --calls) {
        post.net.script.push_back({random.below(batch_datagrams_max), static_cast<Sent::Stop>(random.below(3))});
        if (post.net.script.back().stop == Sent::Stop::none) ++post.net.script.back().taken;
      }
      if (random.chance(0.7)) static_cast<void>(post.outbox.unblock());
      for (uint64_t count = random.below(100); count > 0 && post.outbox.has_room(); --count) post.put(next++);
      post.outbox.flush();
    }
    post.net.script.clear();
    static_cast<void>(post.outbox.unblock());
    post.outbox.flush();
    std::vector<uint64_t> ended = post.net.taken;
    REQUIRE(std::is_sorted(ended.begin(), ended.end()));
    ended.insert(ended.end(), post.net.refused.begin(), post.net.refused.end());
    std::sort(ended.begin(), ended.end());
    REQUIRE(ended == up_to(next));
    refused += post.net.refused.size();
  }
  CHECK(refused > 1000);
}

TEST_CASE("datagram__many_connections_have_something_to_send__a_turn_needs_few_calls") {
  constexpr uint64_t count = 150;
  Rig rig;
  std::vector<ConnectionId> ids;
  for (uint64_t i = 0; i < count; ++i) {
    rig.connect();
    ids.push_back(rig.at_a);
  }
  rig.pass(100ms);
  const sim::DatagramTotals before = rig.fabric.totals();
  for (uint64_t i = 0; i < count; ++i) {
    const Buffer bytes = filled(50, i);
    const Bytes part(bytes);
    REQUIRE(rig.a.transport->send(ids[i], {&part, 1}, i) == Status::success);
  }
  rig.a.transport->turn(rig.world.now());
  CHECK(rig.fabric.totals().sent - before.sent == count);
  CHECK(rig.fabric.totals().send_calls - before.send_calls == (count + batch_datagrams_max - 1) / batch_datagrams_max);
  REQUIRE(rig.run([&] { return rig.b.sink.messages.size() == count; }));
  CHECK(rig.fabric.totals().receive_calls < rig.fabric.totals().delivered);  // what came together was told together
}

}  // namespace ccixfer::datagram::testing
