// Two transports over the simulated network.
#include "tests/unit/datagram/rig.h"

namespace ccixfer::datagram::testing {
namespace {

sim::DatagramLinkOptions bad(double loss) {
  sim::DatagramLinkOptions link;
  link.loss_chance = loss;
  link.duplicate_chance = 0.05;
  link.corrupt_chance = 0.05;
  link.reorder_chance = 0.2;
  link.partial_chance = 0.3;
  link.fail_chance = 0.01;
  return link;
}

TEST_CASE("datagram__one_message__through_and_completed") {
  Rig rig;
  rig.connect();
  const Buffer message = filled(100, 1);
  REQUIRE(rig.a.send(rig.at_a, message, 7) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(7).has_value(); }));
  REQUIRE(rig.a.status_of(7) == Status::success);
  REQUIRE(rig.b.sink.messages.size() == 1);
  REQUIRE(rig.b.sink.messages[0] == message);
  REQUIRE(rig.a.transport->hops(rig.at_a)[0].round_trip > 0ns);
}

TEST_CASE("datagram__messages_over_a_bad_network__once_each_in_order") {
  uint64_t lost = 0, rejected = 0, duplicate = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Rig rig(bad(0.1), {}, seed);
    rig.connect();
    constexpr uint64_t count = 300;
    uint64_t sent = 0;
    REQUIRE(rig.run([&] {
      while (sent < count && rig.a.send(rig.at_a, filled(50 + sent % 3000, sent), sent) == Status::success) ++sent;
      return rig.a.sink.completions.size() == count;
    }));
    REQUIRE(rig.b.sink.messages.size() == count);
    for (uint64_t i = 0; i < count; ++i) {
      REQUIRE(rig.b.sink.messages[i] == filled(50 + i % 3000, i));
      REQUIRE(rig.a.sink.completions[i].token == i);
      REQUIRE(rig.a.sink.completions[i].status == Status::success);
    }
    REQUIRE(rig.b.transport->held_bytes() == 0);
    lost += rig.a.counters.get(Counter::datagrams_lost);
    rejected += rig.b.counters.get(Counter::datagrams_rejected);
    duplicate += rig.b.counters.get(Counter::datagrams_duplicate);
  }
  REQUIRE(lost > 0);
  REQUIRE(rejected > 0);
  REQUIRE(duplicate > 0);
}

TEST_CASE("datagram__unordered_messages__once_each") {
  Rig rig(bad(0.1));
  rig.connect(ports::Attribute::reliable_unordered);
  constexpr uint64_t count = 300;
  constexpr size_t size = 2000;  // four of them in a packet
  uint64_t sent = 0;
  REQUIRE(rig.run([&] {
    while (sent < count && rig.a.send(rig.at_a, filled(size, sent), sent) == Status::success) ++sent;
    return rig.a.sink.completions.size() == count;
  }));
  REQUIRE(rig.b.sink.messages.size() == count);
  bool in_order = true;
  for (uint64_t i = 0; i < count; ++i) {
    in_order = in_order && rig.b.sink.messages[i] == filled(size, i);
    REQUIRE(std::count(rig.b.sink.messages.begin(), rig.b.sink.messages.end(), filled(size, i)) == 1);
  }
  REQUIRE_FALSE(in_order);  // nothing waits for what is missing
}

TEST_CASE("datagram__unreliable_messages__go_out_once_and_complete_here") {
  sim::DatagramLinkOptions link;
  link.loss_chance = 0.3;
  Rig rig(link);
  rig.connect(ports::Attribute::unreliable);
  for (uint64_t i = 0; i < 200; ++i) REQUIRE(rig.a.send(rig.at_a, filled(1000, i), i) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == 200; }));
  rig.pass(5s);
  REQUIRE(rig.b.sink.messages.size() > 80);
  REQUIRE(rig.b.sink.messages.size() < 190);
}

TEST_CASE("datagram__write_and_read_over_a_bad_network__every_byte_and_no_other") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    Rig rig(bad(0.05), {}, seed);
    rig.connect();
    constexpr size_t size = 1'500'013;
    Buffer target(size + 20, std::byte{0xee});
    const Buffer source = filled(size, seed);
    const auto remote = rig.b.memory.register_region(target, cci::access_read | cci::access_write);
    ports::RmaRequest write;
    write.remote.handle = remote;
    write.remote.offset_bytes = 10;
    write.source = source;
    REQUIRE(rig.a.rma(rig.at_a, write, 1) == Status::success);
    REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value(); }));
    REQUIRE(rig.a.status_of(1) == Status::success);
    REQUIRE(std::equal(source.begin(), source.end(), target.begin() + 10));
    REQUIRE(target[9] == std::byte{0xee});
    REQUIRE(target[size + 10] == std::byte{0xee});
    Buffer back(size);
    ports::RmaRequest read;
    read.write = false;
    read.remote = write.remote;
    read.destination = back;
    REQUIRE(rig.a.rma(rig.at_a, read, 2) == Status::success);
    REQUIRE(rig.run([&] { return rig.a.status_of(2).has_value(); }));
    REQUIRE(rig.a.status_of(2) == Status::success);
    REQUIRE(back == source);
  }
}

TEST_CASE("datagram__hints_over_a_bad_network__every_one_of_them") {
  Rig rig(bad(0.2));
  rig.connect();
  constexpr uint64_t count = 200;
  for (uint64_t i = 0; i < count; ++i) {  // a packet each
    rig.b.transport->hint(rig.at_b, i, i + 7);
    rig.world.wake(rig.b.node);
    rig.pass(2ms);
  }
  const auto every = [&] {
    for (uint64_t i = 0; i < count; ++i) {
      const auto& hints = rig.a.sink.hints;
      if (std::find(hints.begin(), hints.end(), std::pair<uint64_t, uint64_t>{i, i + 7}) == hints.end()) return false;
    }
    return true;
  };
  REQUIRE(rig.run(every));
  REQUIRE(rig.b.counters.get(Counter::datagrams_lost) > 0);
}

TEST_CASE("datagram__a_clean_network__nothing_goes_out_twice_and_nothing_is_rejected") {
  Rig rig;
  rig.connect();
  Buffer target(4u << 20);
  const Buffer source = filled(target.size(), 3);
  const auto remote = rig.b.memory.register_region(target, cci::access_write);
  ports::RmaRequest write;
  write.remote.handle = remote;
  write.source = source;
  REQUIRE(rig.a.rma(rig.at_a, write, 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value(); }));
  REQUIRE((target == source));
  if (rig.fabric.totals().dropped == 0) REQUIRE(rig.a.counters.get(Counter::datagrams_lost) == 0);
  REQUIRE(rig.b.counters.get(Counter::datagrams_rejected) == 0);
  REQUIRE(rig.b.counters.get(Counter::datagrams_duplicate) == 0);
  // 2.5 % for headers, acks and the handshake.
  REQUIRE(rig.a.counters.get(Counter::bytes_out) < target.size() + target.size() / 40 + rig.fabric.totals().dropped * 8192);
}

// Who only waits on the network's handle is woken in time.
TEST_CASE("datagram__its_deadline__is_the_networks_after_each_turn_and_at_each_call") {
  ports::TransportOptions options;
  options.keepalive = 3s;
  Rig rig({}, options);
  rig.connect();
  rig.pass(100ms);
  REQUIRE(rig.a.net->next_deadline() == rig.a.transport->next_deadline());
  REQUIRE(rig.a.net->next_deadline() != never);
  const Buffer bytes = filled(10, 1);
  const Bytes part(bytes);
  REQUIRE(rig.a.transport->send(rig.at_a, {&part, 1}, 1) == Status::success);
  REQUIRE(rig.a.net->next_deadline() <= rig.world.now());
  rig.a.transport->turn(rig.world.now());
  REQUIRE(rig.a.net->next_deadline() > rig.world.now());
  REQUIRE(rig.a.net->next_deadline() == rig.a.transport->next_deadline());
}

TEST_CASE("datagram__the_hosts_buffers_are_full_often__all_goes_on_when_there_is_room") {
  sim::DatagramLinkOptions link;
  link.again_chance = 0.2;
  link.again_max = 5ms;
  ports::TransportOptions options;
  options.keepalive = 0s;  // nothing else wakes anybody
  Rig rig(link, options);
  rig.connect();
  const Buffer source = filled(300'000, 1);
  Buffer target(source.size());
  ports::RmaRequest request;
  request.write = true;
  request.source = source;
  request.remote.handle = rig.b.memory.register_region(target, cci::access_write);
  REQUIRE(rig.a.rma(rig.at_a, request, 1) == Status::success);
  for (uint64_t i = 2; i < 20; ++i) REQUIRE(rig.a.send(rig.at_a, filled(100, i), i) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == 19; }, 5s));
  REQUIRE(target == source);
  REQUIRE(rig.b.sink.messages.size() == 18);
  REQUIRE(rig.a.counters.get(Counter::datagrams_lost) == 0);  // what was not taken has waited
}

TEST_CASE("datagram__the_hosts_buffers_are_full_at_first__the_hello_goes_when_there_is_room") {
  sim::DatagramLinkOptions link;
  link.again_chance = 1;
  link.again_max = 2ms;
  Rig rig(link);
  ports::DialRequest dial;
  dial.uri = "sim-datagram://b:1";
  REQUIRE(rig.a.transport->dial(dial));
  rig.world.wake(rig.a.node);
  rig.pass(1ms);
  link.again_chance = 0;
  rig.fabric.set_link(link);
  rig.pass(hello_pause_first + 50ms);
  REQUIRE(rig.b.sink.requests.size() == 1);
}

// All that was out is lost: the window begins anew, small.
TEST_CASE("datagram__silence_until_all_is_lost__goes_on_gently") {
  ports::TransportOptions options;
  options.keepalive = 0s;
  Rig rig({}, options);
  rig.connect();
  const Buffer source = filled(20'000'000, 1);
  Buffer target(source.size());
  ports::RmaRequest request;
  request.write = true;
  request.source = source;
  request.remote.handle = rig.b.memory.register_region(target, cci::access_write);
  REQUIRE(rig.a.rma(rig.at_a, request, 1) == Status::success);
  rig.pass(4ms);  // the window has grown
  const uint64_t before = rig.fabric.totals().sent;
  REQUIRE(before > 200);
  rig.fabric.cut("b");
  rig.pass(100s);
  const uint64_t silent = rig.fabric.totals().sent;
  rig.pass(reliability::rto_max);  // the next probes, still into nothing
  REQUIRE(rig.fabric.totals().sent - silent < 20);
  rig.fabric.join("b");
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == 1; }, 100s));
  REQUIRE(target == source);
}

TEST_CASE("datagram__a_link_that_drops_what_is_too_fast__the_window_finds_its_rate") {
  sim::DatagramLinkOptions link;
  link.rate_bytes_per_s = 10'000'000;
  link.queue_bytes = 100'000;
  link.delay_min = link.delay_max = 5ms;
  Rig rig(link);
  rig.connect();
  Buffer target(20u << 20);
  const Buffer source = filled(target.size(), 3);
  ports::RmaRequest write;
  write.remote.handle = rig.b.memory.register_region(target, cci::access_write);
  write.source = source;
  const Instant before = rig.world.now();
  REQUIRE(rig.a.rma(rig.at_a, write, 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.a.status_of(1).has_value(); }));
  REQUIRE((target == source));
  const double seconds = std::chrono::duration<double>(rig.world.now() - before).count();
  CAPTURE(seconds, rig.fabric.totals().dropped);
  REQUIRE(seconds < 2.1 / 0.8);  // 0.8 of the link
  REQUIRE(rig.fabric.totals().dropped * 20 < rig.fabric.totals().sent);
}

TEST_CASE("datagram__abort__what_is_in_flight_ends_in_the_next_turn_also_of_one_that_was_left") {
  const bool left = GENERATE(false, true);
  Rig rig;
  rig.connect();
  rig.b.sink.buffers = 0;
  REQUIRE(rig.a.send(rig.at_a, filled(10, 1), 1) == Status::success);
  rig.pass(100ms);
  if (left) rig.a.transport->disconnect(rig.at_a);
  rig.world.wake(rig.a.node);
  rig.pass(100ms);
  REQUIRE(rig.a.sink.completions.empty());
  rig.a.transport->abort(rig.at_a);
  CHECK(rig.a.send(rig.at_a, filled(10, 1), 2) == Status::disconnected);
  rig.a.transport->turn(rig.world.now());
  CHECK(rig.a.status_of(1) == Status::disconnected);
  CHECK(rig.a.sink.completions.size() == 1);
  rig.pass(1s);
  CHECK(rig.b.sink.disconnected.size() == 1);
  CHECK(rig.a.sink.disconnected.empty());
}

TEST_CASE("datagram__one_way_is_cut__both_ends_learn_in_time") {
  Rig rig;
  rig.connect();
  rig.fabric.cut_way("a", "b");
  REQUIRE(rig.a.send(rig.at_a, filled(10, 1), 1) == Status::success);
  REQUIRE(rig.run([&] { return !rig.a.sink.disconnected.empty() && !rig.b.sink.disconnected.empty(); }, 45s));
  REQUIRE(rig.b.sink.disconnected[0].status == Status::timed_out);
  REQUIRE(rig.a.status_of(1).has_value());
  REQUIRE(rig.a.status_of(1) != Status::success);
}

TEST_CASE("datagram__a_partition_that_heals__goes_on_within_the_longest_pause") {
  ports::TransportOptions options;
  options.keepalive = 0s;
  Rig rig({}, options);
  rig.connect();
  rig.fabric.cut("b");
  for (uint64_t i = 0; i < 20; ++i) REQUIRE(rig.a.send(rig.at_a, filled(100, i), i) == Status::success);
  rig.pass(100s);
  REQUIRE(rig.a.sink.completions.empty());
  rig.fabric.join("b");
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == 20; }, reliability::rto_max + 1s));
  REQUIRE(rig.b.sink.messages.size() == 20);
}

TEST_CASE("datagram__the_peer_restarted__its_answer_ends_the_connection_at_once") {
  Rig rig;
  rig.connect();
  rig.fabric.cut("b");  // so that it cannot say goodbye
  rig.b.transport.reset();
  rig.fabric.join("b");
  auto net = std::make_unique<sim::SimDatagramNet>(rig.fabric, rig.b.node, "b", uint16_t{1});
  rig.b.transport = std::make_unique<DatagramTransport>(DatagramOptions{}, std::move(net), rig.b.entropy, rig.b.counters);
  rig.b.transport->bind(rig.b.sink, rig.b.memory);
  REQUIRE(rig.a.send(rig.at_a, filled(10, 1), 1) == Status::success);
  REQUIRE(rig.run([&] { return !rig.a.sink.disconnected.empty(); }, 2s));
  REQUIRE(rig.a.sink.disconnected[0].status == Status::disconnected);
}

TEST_CASE("datagram__nobody_there__unreachable_after_the_handshake_timeout") {
  Rig rig;
  ports::DialRequest dial;
  dial.uri = "sim-datagram://b:9";
  REQUIRE(rig.a.transport->dial(dial));
  rig.world.wake(rig.a.node);
  rig.pass(9s);
  REQUIRE(rig.a.sink.connected.empty());
  rig.pass(2s);
  REQUIRE(rig.a.sink.connected.size() == 1);
  REQUIRE(rig.a.sink.connected[0].status == Status::unreachable);
  dial.uri = "sim-datagram://nobody:9";
  REQUIRE(rig.a.transport->dial(dial));
  rig.world.wake(rig.a.node);
  rig.pass(1s);
  REQUIRE(rig.a.sink.connected.size() == 2);
  REQUIRE(rig.a.sink.connected[1].status == Status::not_found);
}

TEST_CASE("datagram__same_seed__same_trace") {
  const auto trace = [](uint64_t seed) {
    Rig rig(bad(0.1), {}, seed);
    rig.connect();
    for (uint64_t i = 0; i < 100; ++i) REQUIRE(rig.a.send(rig.at_a, filled(500, i), i) == Status::success);
    REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == 100; }));
    return rig.world.trace_hash();
  };
  REQUIRE(trace(5) == trace(5));
  REQUIRE(trace(5) != trace(6));
}

TEST_CASE("datagram__idle__costs_keepalives_only") {
  Rig rig;
  rig.connect();
  rig.pass(1s);
  const uint64_t before = rig.fabric.totals().sent;
  rig.pass(100s);
  REQUIRE(rig.fabric.totals().sent - before <= 100);
  REQUIRE(rig.a.sink.disconnected.empty());
}

}  // namespace
}  // namespace ccixfer::datagram::testing
