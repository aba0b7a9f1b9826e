// Both sides with one another.
#include <map>

#include "tests/unit/bench/rig.h"

using namespace ccixfer;
using namespace ccixfer::bench;

TEST_CASE("bench__known_link__figures_are_the_links") {
  Pair pair(1, {.sizes = "4KiB,1MiB", .count = "20"});
  REQUIRE(pair.run() == sim::RunEnd::reached);
  INFO(pair.asker.error().message);
  REQUIRE(pair.asker.error().kind == ErrorKind::ok);
  CHECK(pair.rows.size() == 1 + 1 + 1 + 3 * 2 + 3);
  const Duration slack = std::chrono::microseconds(200);
  CHECK(pair.row("message-latency").count == 20);
  CHECK(pair.row("completion-put").count == 20);
  CHECK(pair.row("completion-exchange").count == 20);
  between(pair.row("message-latency").latency.min, one_way, one_way + slack);
  between(pair.row("message-latency").latency.p50, one_way, one_way + slack);
  between(pair.row("message-latency").latency.p99_9, one_way, one_way + slack);
  between(pair.row("completion-put").latency.p50, one_way, one_way + slack);
  // write, its answer, then the message: three ways; the exchange before it two more
  between(pair.row("completion-message").latency.p50, 3 * one_way, 3 * one_way + 3 * slack);
  between(pair.row("completion-exchange").latency.p50, 5 * one_way, 5 * one_way + 5 * slack);
  CHECK(pair.row("completion-message").reduction == Approx(1.0 - 1.0 / 3).margin(0.05));
  CHECK(pair.row("completion-exchange").reduction == Approx(1.0 - 1.0 / 5).margin(0.05));
  CHECK(pair.row("completion-message").reduction_paper == 0.658);
  for (const char* test : {"rma-write", "rma-read", "rvma-put"}) {
    for (const uint64_t size : {4096u, 1u << 20}) {
      const Row& row = pair.row(test, size);
      CHECK(row.count == 20);
      CHECK(row.depth == 16);
      // 16 MiB a round trip of 2 ms at the most, and no faster than the link
      CHECK(static_cast<double>(row.count * size) / std::chrono::duration<double>(row.took).count() <= 1.3e9);
      CHECK(row.took >= 2 * one_way);
    }
  }
  // dial, hello, accept, acknowledgement
  CHECK(pair.row("connect").latency.p50 >= 2 * one_way);
  CHECK(pair.row("connect").count == 20);
  // One after the other, from the first to the last: the time is that of all of them and of nothing before.
  for (const char* test : {"connect", "message-latency"}) {
    const Row& row = pair.row(test);
    const Duration each = row.latency_of == "connect" ? row.latency.p99_9 : 2 * row.latency.p99_9;
    between(row.took, 20 * one_way, 20 * each);
  }
  CHECK(pair.asker.peer_wait() == Wait::spin);
  REQUIRE(pair.world.run_until([&] { return pair.server.sessions() == 0; }, after(pair.world.now(), std::chrono::seconds(30))) ==
          sim::RunEnd::reached);
  CHECK(pair.server.ended() == 1);
  CHECK(pair.server.dropped() == 0);
}

TEST_CASE("bench__plot__latency_of_each_power_of_two_and_of_the_longest_message") {
  Pair pair(1, {.tests = "message-latency,rma-write", .sizes = "1,3", .count = "2", .plots = true});
  REQUIRE(pair.run() == sim::RunEnd::reached);
  REQUIRE(pair.asker.error().kind == ErrorKind::ok);
  std::vector<uint64_t> sizes;
  for (const Row& row : pair.rows) {
    CHECK(row.count == 2);
    if (row.test == "message-latency") sizes.push_back(row.size_bytes);
  }
  CHECK(pair.rows.size() == sizes.size() + 2);
  REQUIRE(sizes.size() > 10);
  for (size_t i = 0; i + 1 < sizes.size(); ++i) CHECK(sizes[i] == uint64_t{1} << i);
  CHECK(sizes.back() == 8192);  // the longest message of a stream
}

TEST_CASE("bench__empty_turn__rows_for_one_and_for_many_connections") {
  Pair pair(2, {.tests = "empty-turn", .count = "4", .connections = "100"});
  REQUIRE(pair.run() == sim::RunEnd::reached);
  REQUIRE(pair.asker.error().kind == ErrorKind::ok);
  REQUIRE(pair.rows.size() == 2);
  CHECK(pair.rows[0].test == "empty-turn");
  CHECK(pair.rows[1].latency_of == "turn");
  CHECK(pair.rows[0].connections == 1);
  CHECK(pair.rows[1].connections == 100);
  CHECK(pair.rows[0].count == 4 * 256);
  CHECK(pair.rows[1].count == 4 * 256);
  // In this world a turn of who does not wait takes so long: all of a sample's turns are counted, but for the one that finds it
  // quiet.
  for (const Row& row : pair.rows) {
    const Duration turns = static_cast<int64_t>(row.count) * sim::WorldOptions{}.turn_spacing;
    between(row.took, turns, turns + sim::WorldOptions{}.turn_spacing);
  }
}

TEST_CASE("bench__peer_crashes_in_the_middle__network_error_and_no_row_half_done") {
  Pair pair(3, {.tests = "rma-write", .sizes = "1MiB", .seconds = "1000"});
  pair.world.at(after(Instant{}, std::chrono::milliseconds(500)), [&] { pair.world.crash(pair.west); });
  REQUIRE(pair.run() == sim::RunEnd::reached);
  CHECK(pair.asker.error().kind == ErrorKind::network);
  CHECK(pair.rows.empty());
}

TEST_CASE("bench__peer_falls_silent__timeout") {
  Pair pair(4, {.tests = "message-latency", .seconds = "1000", .timeout = "2"});
  pair.world.at(after(Instant{}, std::chrono::milliseconds(500)), [&] { pair.fabric.cut("lan", "10.0.0.1"); });
  REQUIRE(pair.run() == sim::RunEnd::reached);
  CHECK(pair.asker.error().kind == ErrorKind::timeout);
}

TEST_CASE("bench__asker_vanishes__server_gives_its_memory_back_and_serves_on") {
  Pair pair(5, {.tests = "rvma-put", .sizes = "1MiB", .seconds = "1000"});
  pair.world.run_until([&] { return pair.server.sessions() == 1; }, after(pair.world.now(), std::chrono::seconds(5)));
  pair.world.run_for(std::chrono::milliseconds(300));
  CHECK(pair.server.sessions() == 1);
  pair.fabric.reset_all(pair.east);
  const auto both_know = [&] { return pair.server.sessions() == 0 && pair.asker.ended(); };
  REQUIRE(pair.world.run_until(both_know, after(pair.world.now(), std::chrono::seconds(30))) == sim::RunEnd::reached);
  CHECK(pair.asker.error().kind == ErrorKind::network);

  Asker second(*pair.here.endpoint, pair.here.entropy, *make_plan({.tests = "completion", .count = "3"}), uri);
  pair.here.work = [&](Instant now) { second.turn(now); };
  pair.here.deadline = [&] { return second.next_deadline(); };
  pair.world.wake(pair.east);
  REQUIRE(pair.world.run_until([&] { return second.ended(); }, after(pair.world.now(), std::chrono::seconds(30))) ==
          sim::RunEnd::reached);
  CHECK(second.error().kind == ErrorKind::ok);
}

TEST_CASE("bench__message_longer_than_the_path_takes__usage") {
  Pair pair(6, {.tests = "message-latency", .message_size = "1MiB"});
  REQUIRE(pair.run() == sim::RunEnd::reached);
  CHECK(pair.asker.error().kind == ErrorKind::usage);
  CHECK(pair.asker.error().message.find("--message-size") != std::string::npos);
}

// A peer that speaks the protocol's frames and not the measurement's rules: dropped, and the next one is served.
TEST_CASE("bench__hostile_messages__dropped_with_a_reason") {
  Open open;
  open.slot_bytes = 4096;
  open.slots = 1;
  open.buffers = 1;
  open.reply_bytes = 64;
  open.landing.kind = ports::HandleKind::region;
  open.mailbox.kind = ports::HandleKind::mailbox;
  const std::vector<std::byte> fine = encode(open);
  open.slots = 1u << 31;
  const std::vector<std::byte> greedy = encode(open);
  const std::vector<std::vector<std::vector<std::byte>>> scripts{
      {encode_padded(Kind::echo, 8)},
      {{}},
      {{std::byte{200}}},
      {greedy},
      {fine, fine},
      {fine, encode_want(65)},
      {fine, encode_want(UINT64_MAX)},
      {fine, encode_padded(Kind::exchange, 1)},
      {fine, encode_padded(Kind::address, 3)},
      {fine, encode_padded(Kind::written, 1)},  // the landing is no region of ours: the write back fails
      {fine, encode_padded(Kind::opened, 1)},
  };
  for (size_t script = 0; script < scripts.size(); ++script) {
    INFO("script " << script);
    Pair pair(100 + script, {.tests = "message-latency", .count = "3"});
    cci::Endpoint& endpoint = *pair.here.endpoint;
    const std::vector<std::byte> hello = encode_hello(Purpose::session);
    cci::ConnectOptions options;
    options.data = hello;
    bool begun = false, ended = false;
    pair.here.work = [&](Instant now) {
      if (!begun) {
        begun = true;
        REQUIRE(endpoint.connect(uri, options));
      }
      endpoint.turn(now);
      while (auto event = endpoint.get_event()) {
        ended = ended || event->type == cci::EventType::disconnected;
        if (event->type != cci::EventType::connect) continue;
        for (const auto& message : scripts[script]) CHECK(endpoint.send(event->connection, message, 0) == Status::success);
      }
      endpoint.turn(now);
    };
    pair.here.deadline = [&] { return endpoint.next_deadline(); };
    REQUIRE(pair.world.run_until([&] { return ended && pair.server.sessions() == 0; },
                                 after(pair.world.now(), std::chrono::seconds(30))) == sim::RunEnd::reached);
    CHECK(pair.server.dropped() == 1);
    CHECK_FALSE(pair.server.last_drop().empty());
    pair.here.work = [&](Instant now) { pair.asker.turn(now); };
    pair.here.deadline = [&] { return pair.asker.next_deadline(); };
    pair.world.wake(pair.east);
    REQUIRE(pair.run() == sim::RunEnd::reached);
    CHECK(pair.asker.error().kind == ErrorKind::ok);
  }
}

TEST_CASE("bench__too_many_sessions__the_next_is_refused") {
  Pair pair(7, {.tests = "message-latency", .count = "1"});
  cci::Endpoint& endpoint = *pair.here.endpoint;
  const std::vector<std::byte> hello = encode_hello(Purpose::session);
  cci::ConnectOptions options;
  options.data = hello;
  size_t begun = 0;
  std::map<Status, size_t> answers;
  pair.here.work = [&](Instant now) {
    for (; begun <= sessions_max; ++begun) REQUIRE(endpoint.connect(uri, options));
    endpoint.turn(now);
    while (auto event = endpoint.get_event()) ++answers[event->status];
  };
  pair.here.deadline = [&] { return endpoint.next_deadline(); };
  REQUIRE(pair.world.run_until([&] { return answers[Status::success] + answers[Status::refused] == sessions_max + 1; },
                               after(pair.world.now(), std::chrono::seconds(30))) == sim::RunEnd::reached);
  CHECK(answers[Status::refused] == 1);
}
