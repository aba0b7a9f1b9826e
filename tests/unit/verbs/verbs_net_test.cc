// Nets of verbs over a real device: what is sent, read and written arrives as it was, and everything that goes wrong has its words.
#include <algorithm>
#include <cstring>

#include "tests/unit/verbs/forgetful_card.h"
#include "tests/unit/verbs/hosts.h"

namespace ccixfer::verbs {
namespace {

constexpr rdma::Access everything{true, true, true};

TEST_CASE("verbs_net__dial_and_accept__both_are_told") {
  Host a, b;
  const Connected pairs = connect(a, b);
  REQUIRE(b.told.requests.size() == 1);
  CHECK(b.told.requests[0].second.starts_with("verbs://10.9.0.1:"));
  CHECK(a.net->reads_max(pairs.at_dialler) >= 1);
  CHECK(b.net->reads_max(pairs.at_acceptor) >= 1);
  CHECK(a.told.closed_pairs.empty());
  CHECK(b.net->uri().starts_with("verbs://10.9.0.1:"));
}

TEST_CASE("verbs_net__sends_of_all_sizes__arrive_in_order_each_once") {
  Host a, b;
  const Connected pairs = connect(a, b);
  std::vector<Memory> sent;
  for (const size_t size : {1u, 2u, 219u, 220u, 221u, 1000u, 4096u, 8191u, 8192u})
    sent.push_back(pattern(size, static_cast<unsigned>(sent.size())));
  for (const Memory& bytes : sent) REQUIRE(send(a, pairs.at_dialler, bytes));
  for (const Memory& bytes : sent) REQUIRE(send(b, pairs.at_acceptor, bytes));
  until({&a, &b}, [&] {
    return a.told.came[pairs.at_dialler].size() == sent.size() && b.told.came[pairs.at_acceptor].size() == sent.size() &&
           a.net->unsent(pairs.at_dialler) == 0 && a.told.rooms[pairs.at_dialler] > 0;
  });
  CHECK((a.told.came[pairs.at_dialler] == sent));
  CHECK((b.told.came[pairs.at_acceptor] == sent));
}

TEST_CASE("verbs_net__more_sends_than_the_peer_has_slots__wait_and_arrive") {
  VerbsNetOptions few;
  few.receive_slots = 4;
  few.send_slots = 8;
  Host a(few), b(few);
  const Connected pairs = connect(a, b);
  constexpr unsigned count = 500;
  unsigned posted = 0;
  bool was_full = false;
  const auto post_some = [&] {
    while (posted < count && send(a, pairs.at_dialler, pattern(1000, posted))) ++posted;
    was_full = was_full || posted < count;
  };
  post_some();
  until({&a, &b}, [&] {
    post_some();
    return b.told.came[pairs.at_acceptor].size() == count;
  });
  CHECK(was_full);
  CHECK(a.told.rooms[pairs.at_dialler] > 0);
  for (unsigned i = 0; i < count; ++i) REQUIRE(is_same(b.told.came[pairs.at_acceptor][i], pattern(1000, i)));
}

TEST_CASE("verbs_net__write_then_send__the_bytes_are_there_when_the_send_is") {
  Host a, b;
  const Connected pairs = connect(a, b);
  const size_t size = (3u << 20) + 5;
  Region source(a, size, {}, 1), target(b, size, everything, 2);
  REQUIRE(a.net->post_write(pairs.at_dialler, work(7, source, target, size)));
  REQUIRE(send(a, pairs.at_dialler, pattern(10, 3)));
  until({&a, &b}, [&] { return !b.told.came[pairs.at_acceptor].empty(); });
  CHECK(is_same(target.bytes, source.bytes));
  until({&a, &b}, [&] { return !a.told.endings[pairs.at_dialler].empty(); });
  CHECK(a.told.endings[pairs.at_dialler] == std::vector<Told::Completed>{{7, WorkStatus::success}});
  CHECK(b.told.endings[pairs.at_acceptor].empty());
}

TEST_CASE("verbs_net__reads__bring_the_peers_bytes_in_order") {
  Host a, b;
  const Connected pairs = connect(a, b);
  constexpr size_t piece = 70'001;
  constexpr uint64_t count = 100;  // more than a card has under way
  Region into(a, piece * count, {true, false, false}, 1), source(b, piece * count, {false, true, false}, 2);
  for (uint64_t i = 0; i < count; ++i) {
    rdma::Work one = work(i, into, source, piece);
    one.local = MutableBytes(into.bytes).subspan(i * piece, piece);
    one.remote_address += i * piece;
    REQUIRE(a.net->post_read(pairs.at_dialler, one));
  }
  until({&a, &b}, [&] { return a.told.endings[pairs.at_dialler].size() == count; });
  for (uint64_t i = 0; i < count; ++i) REQUIRE(a.told.endings[pairs.at_dialler][i] == Told::Completed{i, WorkStatus::success});
  CHECK(is_same(into.bytes, source.bytes));
}

// The peer's card refuses it, and the pair is broken at both ends; no byte was written.
void refused(Host& a, Host& b, const Connected& pairs) {
  until({&a, &b}, [&] { return a.told.closed_pairs.count(pairs.at_dialler) + b.told.closed_pairs.count(pairs.at_acceptor) == 2; });
  CHECK(a.told.closed_pairs[pairs.at_dialler].status == Status::disconnected);
  CHECK(!a.told.closed_pairs[pairs.at_dialler].reason.empty());
  CHECK(b.told.closed_pairs[pairs.at_acceptor].status == Status::disconnected);
  CHECK(!b.told.closed_pairs[pairs.at_acceptor].reason.empty());
}

TEST_CASE("verbs_net__what_the_peer_does_not_grant__is_refused_and_breaks_the_pair") {
  Host a, b;
  const Connected pairs = connect(a, b);
  Region mine(a, 5000, everything, 1), readable(b, 5000, {false, true, false}, 2), writable(b, 5000, {false, false, true}, 3);
  bool is_write = true;
  rdma::Work wrong = work(5, mine, writable, 5000);
  SECTION("a key that nobody has") { wrong.remote_key ^= 0x5a5a00; }
  SECTION("one byte too many") { wrong.remote_address += 1; }
  SECTION("a write into what may be read") { wrong = work(5, mine, readable, 5000); }
  SECTION("a read of what may be written") { is_write = false; }
  REQUIRE((is_write ? a.net->post_write(pairs.at_dialler, wrong) : a.net->post_read(pairs.at_dialler, wrong)));
  REQUIRE(a.net->post_write(pairs.at_dialler, work(6, mine, writable, 100)));
  refused(a, b, pairs);
  CHECK(a.told.endings[pairs.at_dialler] == std::vector<Told::Completed>{{5, WorkStatus::remote_access}, {6, WorkStatus::flushed}});
  CHECK(is_same(readable.bytes, pattern(5000, 2)));
  CHECK(is_same(writable.bytes, pattern(5000, 3)));
  CHECK(is_same(mine.bytes, pattern(5000, 1)));
}

TEST_CASE("verbs_net__deregistered__neither_side_reaches_the_memory") {
  Host a, b;
  const Connected pairs = connect(a, b);
  Region mine(a, 4096, everything, 1), theirs(b, 4096, everything, 2);
  REQUIRE(a.net->post_write(pairs.at_dialler, work(1, mine, theirs, 4096)));
  until({&a, &b}, [&] { return !a.told.endings[pairs.at_dialler].empty(); });
  REQUIRE(is_same(theirs.bytes, mine.bytes));
  theirs.deregister();
  theirs.fill(3);
  REQUIRE(a.net->post_write(pairs.at_dialler, work(2, mine, theirs, 4096)));
  refused(a, b, pairs);
  CHECK(a.told.endings[pairs.at_dialler].back() == Told::Completed{2, WorkStatus::remote_access});
  CHECK(is_same(theirs.bytes, pattern(4096, 3)));
}

TEST_CASE("verbs_net__deregistered_under_the_peers_reads__nothing_is_read_after_it") {
  Host a, b;
  const Connected pairs = connect(a, b);
  const size_t size = 4u << 20;
  Region into(a, size, {true, false, false}, 0), source(b, size, {false, true, false}, 7);
  for (uint64_t i = 0; i < 20; ++i) REQUIRE(a.net->post_read(pairs.at_dialler, work(i, into, source, size)));
  until({&a}, [&] { return !a.told.endings[pairs.at_dialler].empty(); });
  source.deregister();
  source.fill(8);
  until({&a, &b}, [&] { return a.told.endings[pairs.at_dialler].size() == 20; });
  const auto& endings = a.told.endings[pairs.at_dialler];
  REQUIRE(endings.size() == 20);
  CHECK(endings.front().status == WorkStatus::success);
  // As far as anything came, it is of before the deregistration.
  const Memory old = pattern(size, 7);
  CHECK(std::equal(into.bytes.begin(), into.bytes.end(), old.begin()));
}

TEST_CASE("verbs_net__close__the_peer_has_all_that_was_sent_and_is_told") {
  Host a, b;
  const Connected pairs = connect(a, b);
  for (unsigned i = 0; i < 100; ++i) REQUIRE(send(a, pairs.at_dialler, pattern(500, i)));
  REQUIRE(a.net->flush(pairs.at_dialler, std::chrono::seconds(20)));
  a.net->close(pairs.at_dialler);
  until({&b}, [&] { return b.told.closed_pairs.count(pairs.at_acceptor) == 1; });
  CHECK(b.told.came[pairs.at_acceptor].size() == 100);
  CHECK(b.told.closed_pairs[pairs.at_acceptor].status == Status::disconnected);
  CHECK(b.told.closed_pairs[pairs.at_acceptor].reason == "the peer has closed the connection");
  CHECK_FALSE(send(a, pairs.at_dialler, pattern(1, 1)));
  CHECK_FALSE(send(b, pairs.at_acceptor, pattern(1, 1)));
}

// A net whose peers have to wait as long as it is not turned: what they post behind more sends than it has slots.
VerbsNetOptions with_few_slots() {
  VerbsNetOptions options;
  options.receive_slots = 4;
  return options;
}

// Posts more sends than the other end has slots, and writes behind them with tags from 1 to `writes`.
void post_what_waits(Host& a, PairId pair, Region& source, const Region& target, uint64_t writes) {
  for (unsigned i = 0; i < 10; ++i) REQUIRE(send(a, pair, pattern(1000, i)));
  for (uint64_t tag = 1; tag <= writes; ++tag) REQUIRE(a.net->post_write(pair, work(tag, source, target, source.bytes.size())));
}

TEST_CASE("verbs_net__peer_closes_with_work_in_flight__all_of_it_comes_back_once") {
  Host a, b(with_few_slots());
  const Connected pairs = connect(a, b);
  Region source(a, 10'000, {}, 1), target(b, 10'000, everything, 2);
  post_what_waits(a, pairs.at_dialler, source, target, 50);
  b.net->close(pairs.at_acceptor);
  until({&a}, [&] { return a.told.closed_pairs.count(pairs.at_dialler) == 1; });
  std::vector<Told::Completed> expected;
  for (uint64_t tag = 1; tag <= 50; ++tag) expected.push_back({tag, WorkStatus::flushed});
  CHECK((a.told.endings[pairs.at_dialler] == expected));
  CHECK(is_same(target.bytes, pattern(10'000, 2)));
  CHECK(a.net->unsent(pairs.at_dialler) == 0);
}

TEST_CASE("verbs_net__our_close_with_work_in_flight__no_event_and_no_byte_follow") {
  Host a, b(with_few_slots());
  const Connected pairs = connect(a, b);
  Region source(a, 10'000, {}, 1), target(b, 10'000, everything, 2);
  post_what_waits(a, pairs.at_dialler, source, target, 50);
  a.net->close(pairs.at_dialler);
  until({&a, &b}, [&] { return b.told.closed_pairs.count(pairs.at_acceptor) == 1; });
  CHECK(a.told.endings.empty());
  CHECK(a.told.closed_pairs.empty());
  CHECK(is_same(target.bytes, pattern(10'000, 2)));
  for (const Memory& bytes : b.told.came[pairs.at_acceptor]) CHECK(bytes.size() == 1000);
  // The next connection has nothing of the last one.
  const Connected again = connect(a, b);
  REQUIRE(a.net->post_write(again.at_dialler, work(99, source, target, 10'000)));
  until({&a, &b}, [&] { return !a.told.endings[again.at_dialler].empty(); });
  CHECK((a.told.endings[again.at_dialler] == std::vector<Told::Completed>{{99, WorkStatus::success}}));
  CHECK(is_same(target.bytes, source.bytes));
}

TEST_CASE("verbs_net__closed_with_messages_that_nobody_took__their_slots_serve_the_next_pairs") {
  const bool is_late = GENERATE(false, true);
  Host a, b(with_few_slots());
  for (int i = 0; i < 2; ++i) {
    const Connected pairs = connect(a, b);
    for (unsigned n = 0; n < 4; ++n) REQUIRE(send(a, pairs.at_dialler, pattern(500, n)));
    REQUIRE(a.net->flush(pairs.at_dialler, std::chrono::seconds(20)));  // they fill the slots
    const ForgetfulCard card(is_late);
    b.net->close(pairs.at_acceptor);
  }
  const Connected next = connect(a, b);
  for (unsigned n = 0; n < 20; ++n) REQUIRE(send(a, next.at_dialler, pattern(500, n)));
  until({&a, &b}, [&] { return b.told.came[next.at_acceptor].size() == 20; });
  CHECK(b.told.came[next.at_acceptor][19] == pattern(500, 19));
}

TEST_CASE("verbs_net__await_and_flush__block_until_it_is_done_and_tell_it_later") {
  Host a, b(with_few_slots());
  const Connected pairs = connect(a, b);
  Region source(a, 10'000, {}, 1), target(b, 10'000, everything, 2);
  post_what_waits(a, pairs.at_dialler, source, target, 2);
  CHECK_FALSE(a.net->await(pairs.at_dialler, 1, std::chrono::milliseconds(5)));
  CHECK_FALSE(a.net->flush(pairs.at_dialler, std::chrono::milliseconds(5)));
  until({&b}, [&] { return b.told.came[pairs.at_acceptor].size() == 10; });
  CHECK(a.net->flush(pairs.at_dialler, std::chrono::seconds(20)));
  CHECK(a.net->unsent(pairs.at_dialler) == 0);
  CHECK(a.net->await(pairs.at_dialler, 2, std::chrono::seconds(20)));
  CHECK(is_same(target.bytes, source.bytes));
  CHECK(a.told.endings.empty());
  until({&a}, [&] { return a.told.endings[pairs.at_dialler].size() == 2; });
  CHECK(a.told.endings[pairs.at_dialler][1] == Told::Completed{2, WorkStatus::success});
  CHECK(a.net->await(pairs.at_dialler, 2, Duration::zero()));
}

TEST_CASE("verbs_net__nobody_listens__refused") {
  Host a;
  const auto pair = a.net->dial("verbs://10.9.0.1:7");
  REQUIRE(pair);
  until({&a}, [&] { return a.told.closed_pairs.count(*pair) == 1; });
  CHECK(a.told.closed_pairs[*pair].status == Status::refused);
  CHECK(a.told.closed_pairs[*pair].reason == "nobody listens there");
}

TEST_CASE("verbs_net__a_request_that_is_closed__refused") {
  Host a, b;
  b.told.on_request = [&](PairId request) { b.net->close(request); };
  const auto pair = a.net->dial(b.net->uri());
  REQUIRE(pair);
  until({&a, &b}, [&] { return a.told.closed_pairs.count(*pair) == 1; });
  CHECK(a.told.closed_pairs[*pair].status == Status::refused);
}

TEST_CASE("verbs_net__a_dial_that_ends_before_the_answer__nobody_is_connected") {
  Host a, b;
  b.told.on_request = nullptr;
  const auto pair = a.net->dial(b.net->uri());
  REQUIRE(pair);
  until({&a, &b}, [&] { return b.told.requests.size() == 1; });
  const PairId request = b.told.requests[0].first;
  a.net->close(*pair);
  b.net->accept(request);
  until({&b}, [&] { return b.told.closed_pairs.count(request) == 1; });
  CHECK(b.told.connected_pairs.empty());
}

TEST_CASE("verbs_net__an_address_that_nobody_has__unreachable") {
  Host a;
  const auto pair = a.net->dial("verbs://10.9.0.99:4000");
  REQUIRE(pair);
  until({&a}, [&] { return a.told.closed_pairs.count(*pair) == 1; });
  CHECK(a.told.closed_pairs[*pair].status == Status::unreachable);
  CHECK(!a.told.closed_pairs[*pair].reason.empty());
  CHECK_FALSE(a.net->dial("verbs://10.9.0.99"));
  CHECK_FALSE(a.net->dial("tcp://10.9.0.99:4000"));
}

TEST_CASE("verbs_net__a_message_that_is_longer_than_the_peers_slots__both_are_closed") {
  VerbsNetOptions small;
  small.slot_bytes = 4096;
  Host a, b(small), c;
  const Connected pairs = connect(a, b);
  const Connected others = connect(c, b);
  REQUIRE(send(a, pairs.at_dialler, pattern(4097, 1)));
  until({&a, &b, &c},
        [&] { return a.told.closed_pairs.count(pairs.at_dialler) + b.told.closed_pairs.count(pairs.at_acceptor) == 2; });
  CHECK(b.told.came[pairs.at_acceptor].empty());
  // Nobody else is harmed.
  REQUIRE(send(c, others.at_dialler, pattern(4096, 2)));
  until({&a, &b, &c}, [&] { return b.told.came[others.at_acceptor].size() == 1; });
  CHECK(b.told.closed_pairs.count(others.at_acceptor) == 0);
}

TEST_CASE("verbs_net__many_connections_one_after_the_other__each_is_as_new") {
  Host a, b;
  for (unsigned i = 0; i < 100; ++i) {
    const Connected pairs = connect(a, b);
    for (unsigned n = 0; n < 3; ++n) REQUIRE(send(a, pairs.at_dialler, pattern(300, 3 * i + n)));
    until({&a, &b}, [&] { return !b.told.came[pairs.at_acceptor].empty(); });
    REQUIRE(is_same(b.told.came[pairs.at_acceptor][0], pattern(300, 3 * i)));
    (i % 2 == 0 ? a : b).net->close(i % 2 == 0 ? pairs.at_dialler : pairs.at_acceptor);
  }
  until({&a, &b}, [&] { return a.told.closed_pairs.size() + b.told.closed_pairs.size() == 100; });
}

TEST_CASE("verbs_net__an_address_without_a_device__says_so") {
  VerbsNetOptions options;
  options.listen_host = "192.0.2.1";
  const auto opened = open_net(options);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().message.find("no RDMA device (InfiniBand or RoCE) has 192.0.2.1") == 0);
}

TEST_CASE("verbs_net__any_address__the_device_is_found") {
  const auto opened = open_net({});
  REQUIRE(opened);
  CHECK(opened->device == "rxe0");
  REQUIRE(opened->uris.size() == 1);
  CHECK(opened->uris[0].starts_with("verbs://10.9.0.1:"));
  const auto devices = devices_of_host();
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].name == "rxe0");
  CHECK(devices[0].port_state == "active");
  CHECK(devices[0].addresses == std::vector<std::string>{device_address});
}

}  // namespace
}  // namespace ccixfer::verbs
