// RMA over routed connections: writes and reads of regions and puts into mailboxes, from either end.
#include <set>

#include "tests/unit/routing/routed_world.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

struct Ends {
  App* from;
  App* to;
  cci::Connection connection;
};

// Dialler to acceptor, and acceptor to dialler.
Ends ends_of(Site& site, bool backwards) {
  const cci::Connection connection = site.connect(*site.left, *site.right);
  return backwards ? Ends{site.right.get(), site.left.get(), site.right->accepted}
                   : Ends{site.left.get(), site.right.get(), connection};
}

cci::RmaOptions whole(const cci::Handle& local, const cci::Handle& remote, uint64_t length, bool write) {
  cci::RmaOptions rma;
  rma.write = write;
  rma.local = local;
  rma.remote.handle = remote;
  rma.length_bytes = length;
  return rma;
}

// Every pool is whole again once all traffic has ended: connections that end give back all they had.
void check_nothing_left(Site& site) {
  for (const auto& router : site.routers) {
    if (router == nullptr) continue;
    router->router->drain();
    CHECK(site.run([&] { return router->router->drained(); }, seconds(60)));
    CHECK(router->router->fragments_in_use() == 0);
  }
}

}  // namespace

TEST_CASE("routed_rma__write_into_a_region__arrives_whole") {
  const size_t routers = GENERATE(1u, 2u, 3u, 4u, 5u);
  const bool backwards = GENERATE(false, true);
  Site site(routers);
  site.chain(routers);
  const Ends ends = ends_of(site, backwards);
  for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{65536}, size_t{65537}, size_t{3} << 20}) {
    auto data = pattern(bytes, bytes);
    std::vector<std::byte> target(bytes + 64, std::byte{0xee});
    const auto local = ends.from->memory->register_region(Bytes(data));
    const auto remote = ends.to->memory->register_region(MutableBytes(target), cci::access_write);
    auto rma = whole(local, remote, bytes, true);
    rma.remote.offset_bytes = 32;
    CHECK(site.rma(*ends.from, ends.connection, rma) == Status::success);
    CHECK(std::equal(data.begin(), data.end(), target.begin() + 32));
    CHECK(target[31] == std::byte{0xee});
    CHECK(target[bytes + 32] == std::byte{0xee});
    CHECK(ends.from->memory->deregister_region(local) == Status::success);
    CHECK(ends.to->memory->deregister_region(remote) == Status::success);
  }
  for (const auto& router : site.routers) CHECK(router->counters.get(Counter::routed_bytes) >= (3u << 20));
  ends.from->endpoint->disconnect(ends.connection);
  ends.from->wake();
  check_nothing_left(site);
}

// Between streams a fragment's bytes need not come into the router's memory: all of them pass, or as many as there is room for.
TEST_CASE("routed_rma__through_splice_pipes__arrives_whole_and_passes_the_memory_by") {
  const uint32_t room_bytes = GENERATE(0u, 7000u, 1u << 20);
  const bool write = GENERATE(false, true);
  sim::LinkOptions links;
  links.splice_pipe_bytes = room_bytes;
  Site site(3, links);
  site.chain(3);
  const Ends ends = ends_of(site, false);
  const size_t bytes = 3u << 20;
  auto data = pattern(bytes, 5);
  std::vector<std::byte> target(bytes);
  App& owner = write ? *ends.from : *ends.to;
  App& getter = write ? *ends.to : *ends.from;
  const auto source = owner.memory->register_region(Bytes(data));
  const auto sink = getter.memory->register_region(MutableBytes(target), cci::access_write);
  CHECK(site.rma(*ends.from, ends.connection, whole(write ? source : sink, write ? sink : source, bytes, write)) ==
        Status::success);
  CHECK((target == data));
  for (const auto& router : site.routers) {
    const uint64_t passed = router->counters.get(Counter::routed_bytes_passed);
    CHECK(router->counters.get(Counter::routed_bytes) >= bytes);
    if (room_bytes == 0) CHECK(passed == 0);
    if (room_bytes == 1u << 20) CHECK(passed > bytes / 4);
  }
  ends.from->endpoint->disconnect(ends.connection);
  ends.from->wake();
  check_nothing_left(site);
}

// Nearby few buffers keep both networks busy; far away many are needed, and where the rate is not known nobody can say.
TEST_CASE("routed_rma__buffers_of_one_connection__as_many_as_its_networks_keep_busy") {
  struct Way {
    Duration delay;
    uint64_t rate_bits_per_s;
    bool windows;
    uint32_t at_least, at_most;
  };
  const Way way = GENERATE(Way{std::chrono::microseconds(10), 10'000'000'000, true, 2, 32},
                           Way{std::chrono::microseconds(10), 10'000'000'000, false, 60, 512},
                           Way{milliseconds(20), 10'000'000'000, true, 64, 512}, Way{milliseconds(20), 0, true, 64, 512});
  sim::LinkOptions links;
  links.delay_min = links.delay_max = way.delay;
  links.window_bytes = 16u << 20;
  Site site(1, links);
  site.options.memory_bytes = 512u * (64u << 10);
  site.options.mechanisms.windows = way.windows;
  site.add_router("r", {{"lan1", "10.0.0.1", {1, 1}, {}, false, {}, way.rate_bits_per_s},
                        {"lan2", "10.0.0.1", {1, 2}, {}, false, {}, way.rate_bits_per_s}});
  const std::vector<std::string> routers{"sim://10.0.0.1:7000"};
  site.left = std::make_unique<App>(site.world, site.fabric, "lan1", "10.0.0.2", SubnetId{1, 1}, routers);
  site.right = std::make_unique<App>(site.world, site.fabric, "lan2", "10.0.0.2", SubnetId{1, 2}, routers);
  site.settle();
  const Ends ends = ends_of(site, false);
  const auto data = pattern(24u << 20, 1);
  std::vector<std::byte> target(data.size());
  auto rma = whole(ends.from->memory->register_region(Bytes(data)),
                   ends.to->memory->register_region(MutableBytes(target), cci::access_write), data.size(), true);
  REQUIRE(ends.from->endpoint->rma(ends.connection, rma) == Status::success);
  ends.from->wake();
  uint32_t most = 0;
  REQUIRE(site.run([&] {
    most = std::max(most, site.routers[0]->router->fragments_in_use());
    return ends.from->count(EventType::send) > 0;
  }));
  CHECK((target == data));
  INFO(way.delay.count() << " ns, rate " << way.rate_bits_per_s << ", windows " << way.windows);
  CHECK(most >= way.at_least);
  CHECK(most <= way.at_most);
}

// Each router's window full of what goes to the other one, which has no room for it: so the window is of one direction, whose
// buffers wait for the next router's of the same direction, and the last for nobody.
TEST_CASE("routed_rma__windows_full_both_ways_over_two_routers__all_arrive") {
  sim::LinkOptions links;
  links.delay_min = links.delay_max = std::chrono::microseconds(10);
  links.window_bytes = 16u << 20;
  Site site(GENERATE(1u, 2u, 3u), links);
  links.delay_min = links.delay_max = milliseconds(1);  // so that both are full before anything of the other one's comes
  site.fabric.set_link("mid", links);
  site.options.memory_bytes = 512u * (64u << 10);
  constexpr uint64_t rate = 10'000'000'000;
  site.add_router("r1", {{"lan1", "10.0.0.1", {1, 1}, {}, false, {}, rate}, {"mid", "10.1.0.1", {1, 2}, {}, false, {}, rate}});
  site.add_router("r2", {{"mid", "10.1.0.2", {1, 2}, {"sim://10.1.0.1:7000"}, false, {}, rate},
                         {"lan2", "10.0.0.1", {1, 3}, {}, false, {}, rate}});
  const std::vector<std::string> routers{"sim://10.0.0.1:7000"};
  site.left = std::make_unique<App>(site.world, site.fabric, "lan1", "10.0.0.2", SubnetId{1, 1}, routers);
  site.right = std::make_unique<App>(site.world, site.fabric, "lan2", "10.0.0.2", SubnetId{1, 3}, routers);
  site.settle();
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const Ends both[2] = {{site.left.get(), site.right.get(), connection}, {site.right.get(), site.left.get(), site.right->accepted}};
  const auto data = pattern(16u << 20, 1);
  std::vector<std::vector<std::byte>> targets(4, std::vector<std::byte>(data.size()));
  for (size_t i = 0; i < targets.size(); ++i) {
    const Ends& ends = both[i % 2];
    const bool write = i < 2;
    const auto source = [&](App& app) { return app.memory->register_region(Bytes(data)); };
    const auto target = [&](App& app) { return app.memory->register_region(MutableBytes(targets[i]), cci::access_write); };
    const auto rma = write ? whole(source(*ends.from), target(*ends.to), data.size(), true)
                           : whole(target(*ends.from), source(*ends.to), data.size(), false);
    REQUIRE(ends.from->endpoint->rma(ends.connection, rma) == Status::success);
    ends.from->wake();
  }
  for (const Ends& ends : both) {
    REQUIRE(site.run([&] { return ends.from->count(EventType::send) == 2; }));
    while (auto event = ends.from->take(EventType::send)) CHECK(event->status == Status::success);
  }
  for (const auto& target : targets) CHECK((target == data));
}

TEST_CASE("routed_rma__read_from_a_region__arrives_whole") {
  const size_t routers = GENERATE(1u, 2u, 3u, 4u, 5u);
  const bool backwards = GENERATE(false, true);
  Site site(routers);
  site.chain(routers);
  const Ends ends = ends_of(site, backwards);
  for (const size_t bytes : {size_t{1}, size_t{65536}, size_t{65537}, size_t{3} << 20}) {
    auto data = pattern(bytes, bytes);
    std::vector<std::byte> into(bytes, std::byte{0});
    const auto remote = ends.to->memory->register_region(Bytes(data));
    const auto local = ends.from->memory->register_region(MutableBytes(into), 0);
    CHECK(site.rma(*ends.from, ends.connection, whole(local, remote, bytes, false)) == Status::success);
    CHECK(into == data);
    CHECK(ends.from->memory->deregister_region(local) == Status::success);
    CHECK(ends.to->memory->deregister_region(remote) == Status::success);
  }
  ends.from->endpoint->disconnect(ends.connection);
  ends.from->wake();
  check_nothing_left(site);
}

TEST_CASE("routed_rma__put_into_a_mailbox__is_one_operation") {
  const size_t routers = GENERATE(1u, 2u, 3u, 4u, 5u);
  const bool backwards = GENERATE(false, true);
  Site site(routers);
  site.chain(routers);
  const Ends ends = ends_of(site, backwards);
  auto& mailboxes = ends.to->endpoint->mailboxes();
  constexpr size_t bytes = (2u << 20) + 12345;
  REQUIRE(mailboxes.open(4711, {.key = 99}) == Status::success);
  std::vector<std::vector<std::byte>> buffers(3, std::vector<std::byte>(bytes + 100));
  for (size_t i = 0; i < buffers.size(); ++i) REQUIRE(mailboxes.post(4711, MutableBytes(buffers[i]), i) == Status::success);
  cci::Handle mailbox;
  mailbox.kind = ports::HandleKind::mailbox;
  mailbox.number = 4711;
  mailbox.key = 99;
  for (uint64_t n = 0; n < buffers.size(); ++n) {
    const auto data = pattern(bytes, n);
    const auto local = ends.from->memory->register_region(Bytes(data));
    auto put = whole(local, mailbox, bytes, true);
    put.remote.put.epoch = n;
    CHECK(site.rma(*ends.from, ends.connection, put) == Status::success);
    const auto completion = mailboxes.next_completion();
    REQUIRE(completion);
    CHECK(completion->epoch == n);
    CHECK(completion->count == 1);
    CHECK(completion->length_bytes == bytes);
    CHECK_FALSE(completion->has_holes);
    CHECK(std::equal(data.begin(), data.end(), buffers[n].begin()));
    CHECK_FALSE(mailboxes.next_completion());
    CHECK(ends.from->memory->deregister_region(local) == Status::success);
  }
  // No buffer is posted any more: told, not waited for; the router is free for others.
  const auto data = pattern(1000, 1);
  const auto local = ends.from->memory->register_region(Bytes(data));
  CHECK(site.rma(*ends.from, ends.connection, whole(local, mailbox, 1000, true)) == Status::mailbox_empty);
  mailbox.key = 98;
  CHECK(site.rma(*ends.from, ends.connection, whole(local, mailbox, 1000, true)) == Status::mailbox_key);
  mailbox.number = 1;
  CHECK(site.rma(*ends.from, ends.connection, whole(local, mailbox, 1000, true)) == Status::mailbox_unknown);
}

TEST_CASE("routed_rma__put_of_several_fragments__the_first_one_alone_until_it_is_admitted") {
  const size_t routers = GENERATE(1u, 3u);
  Site site(routers);
  site.chain(routers);
  const Ends ends = ends_of(site, false);
  const auto data = pattern(3u << 20, 1);
  const auto local = ends.from->memory->register_region(Bytes(data));
  auto put = whole(local, {ports::HandleKind::mailbox, 0, 0, 0, 4711, 99, 0}, data.size(), true);
  const auto refused = [&] { return ends.to->counters.get(Counter::mailbox_rejected); };
  CHECK(site.rma(*ends.from, ends.connection, put) == Status::mailbox_unknown);
  CHECK(refused() == 1);
  put.buffer_is_posted = true;  // a lie: then they all go at once
  CHECK(site.rma(*ends.from, ends.connection, put) == Status::mailbox_unknown);
  CHECK(refused() > 2);
  // What is admitted binds: the rest follows.
  std::vector<std::byte> buffer(data.size());
  REQUIRE(ends.to->endpoint->mailboxes().open(4711, {.key = 99}) == Status::success);
  REQUIRE(ends.to->endpoint->mailboxes().post(4711, MutableBytes(buffer), 1) == Status::success);
  put.buffer_is_posted = false;
  CHECK(site.rma(*ends.from, ends.connection, put) == Status::success);
  CHECK(buffer == data);
}

TEST_CASE("routed_rma__target_refuses__its_status_comes_and_no_byte_is_written") {
  Site site;
  site.chain(2);
  const Ends ends = ends_of(site, false);
  auto data = pattern(200'000, 1);
  std::vector<std::byte> target(200'000, std::byte{7});
  const auto local = ends.from->memory->register_region(MutableBytes(data), 0);
  const auto read_only = ends.to->memory->register_region(Bytes(target));
  CHECK(site.rma(*ends.from, ends.connection, whole(local, read_only, target.size(), true)) == Status::rma_op);
  auto forged = read_only;
  forged.key ^= 1;
  CHECK(site.rma(*ends.from, ends.connection, whole(local, forged, target.size(), true)) == Status::rma_handle);
  CHECK(site.rma(*ends.from, ends.connection, whole(local, forged, target.size(), false)) == Status::rma_handle);
  const auto write_only = ends.to->memory->register_region(MutableBytes(target), cci::access_write);
  CHECK(site.rma(*ends.from, ends.connection, whole(local, write_only, target.size(), false)) == Status::rma_op);
  auto beyond = whole(local, write_only, target.size(), true);
  beyond.remote.offset_bytes = 1u << 30;
  CHECK(site.rma(*ends.from, ends.connection, beyond) == Status::rma_handle);
  CHECK(target == std::vector<std::byte>(200'000, std::byte{7}));
  ends.from->endpoint->disconnect(ends.connection);
  ends.from->wake();
  check_nothing_left(site);
}

TEST_CASE("routed_rma__completion_message__after_all_data_and_never_after_a_failure") {
  Site site;
  site.chain(GENERATE(1u, 2u, 5u));
  const Ends ends = ends_of(site, false);
  const auto data = pattern(1u << 20, 3);
  std::vector<std::byte> target(data.size());
  const auto local = ends.from->memory->register_region(Bytes(data));
  const auto remote = ends.to->memory->register_region(MutableBytes(target), cci::access_write);
  auto rma = whole(local, remote, data.size(), true);
  rma.completion_message = as_bytes("done");
  REQUIRE(ends.from->endpoint->rma(ends.connection, rma) == Status::success);
  ends.from->wake();
  REQUIRE(site.run([&] { return ends.to->count(EventType::receive) > 0; }));
  CHECK(target == data);
  CHECK(as_text(ends.to->take(EventType::receive)->data()) == "done");
  REQUIRE(site.run([&] { return ends.from->count(EventType::send) > 0; }));
  CHECK(ends.from->take(EventType::send)->status == Status::success);
  rma.remote.handle.key ^= 1;
  CHECK(site.rma(*ends.from, ends.connection, rma) == Status::rma_handle);
  site.world.run_for(seconds(1));
  CHECK(ends.to->count(EventType::receive) == 0);
}

// Eight smaller buffers, one a class, take the place of four: nothing else about the path differs.
TEST_CASE("routed_rma__memory_for_four_fragments__writes_reads_and_messages_both_ways") {
  const size_t routers = GENERATE(1u, 3u, 5u);
  Site site(routers);
  site.options.memory_bytes = 4u * site.options.fragment_bytes;
  site.chain(routers);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const Ends both[2] = {{site.left.get(), site.right.get(), connection}, {site.right.get(), site.left.get(), site.right->accepted}};
  constexpr size_t each = (4u << 20) + 77;
  std::vector<std::unique_ptr<std::vector<std::byte>>> sources, targets;
  for (const Ends& ends : both) {
    for (const bool write : {true, false}) {
      sources.push_back(std::make_unique<std::vector<std::byte>>(pattern(each, sources.size())));
      targets.push_back(std::make_unique<std::vector<std::byte>>(each));
      const auto of_source = [&](App& app) { return app.memory->register_region(Bytes(*sources.back())); };
      const auto of_target = [&](App& app, uint8_t access) {
        return app.memory->register_region(MutableBytes(*targets.back()), access);
      };
      auto rma = write ? whole(of_source(*ends.from), of_target(*ends.to, cci::access_write), each, true)
                       : whole(of_target(*ends.from, 0), of_source(*ends.to), each, false);
      rma.completion_message = as_bytes(write ? "written" : "read");
      REQUIRE(ends.from->endpoint->rma(ends.connection, rma) == Status::success);
    }
    ends.from->wake();
  }
  for (const Ends& ends : both) {
    REQUIRE(site.run([&] { return ends.from->count(EventType::send) == 2 && ends.from->count(EventType::receive) == 2; }));
    while (auto event = ends.from->take(EventType::send)) CHECK(event->status == Status::success);
    std::set<std::string> told;
    while (auto event = ends.from->take(EventType::receive)) told.insert(std::string(as_text(event->data())));
    CHECK(told == std::set<std::string>{"read", "written"});
  }
  for (size_t i = 0; i < sources.size(); ++i) CHECK(*targets[i] == *sources[i]);
  for (const auto& router : site.routers) CHECK(router->counters.get(Counter::routed_fragments) == 4 * (each / (32u << 10) + 1));
  site.left->endpoint->disconnect(connection);
  site.left->wake();
  check_nothing_left(site);
}

TEST_CASE("routed_rma__many_at_once_both_ways_reads_and_writes__all_arrive") {
  const size_t routers = GENERATE(1u, 3u);
  Site site(7);
  site.chain(routers);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const Ends both[2] = {{site.left.get(), site.right.get(), connection}, {site.right.get(), site.left.get(), site.right->accepted}};
  constexpr size_t each = 700'000;
  constexpr size_t count = 8;
  struct Transfer {
    std::vector<std::byte> from, to;
  };
  std::vector<std::unique_ptr<Transfer>> transfers;
  for (const Ends& ends : both) {
    for (uint64_t i = 0; i < count; ++i) {
      transfers.push_back(std::make_unique<Transfer>(Transfer{pattern(each, i), std::vector<std::byte>(each)}));
      Transfer& transfer = *transfers.back();
      const bool write = i % 2 == 0;
      const auto local = write ? ends.from->memory->register_region(Bytes(transfer.from))
                               : ends.from->memory->register_region(MutableBytes(transfer.to), 0);
      const auto remote = write ? ends.to->memory->register_region(MutableBytes(transfer.to), cci::access_write)
                                : ends.to->memory->register_region(Bytes(transfer.from));
      REQUIRE(ends.from->endpoint->rma(ends.connection, whole(local, remote, each, write)) == Status::success);
    }
    ends.from->wake();
  }
  REQUIRE(site.run([&] { return both[0].from->count(EventType::send) == count && both[1].from->count(EventType::send) == count; }));
  for (const Ends& ends : both) {
    while (auto event = ends.from->take(EventType::send)) CHECK(event->status == Status::success);
  }
  for (const auto& transfer : transfers) CHECK(transfer->from == transfer->to);
  site.left->endpoint->disconnect(connection);
  site.left->wake();
  check_nothing_left(site);
}

TEST_CASE("routed_rma__pool_of_one_per_class__ring_of_traffic_does_not_deadlock") {
  // Many connections both ways through three routers that hold the least possible: eight fragments.
  Site site(3);
  site.options.memory_bytes = 8u * site.options.fragment_bytes;
  site.chain(3);
  constexpr size_t each = 300'000;
  std::vector<std::unique_ptr<std::vector<std::byte>>> memory;
  size_t left_count = 0, right_count = 0;
  const auto data = pattern(each, 5);
  for (int i = 0; i < 6; ++i) {
    const bool from_left = i % 2 == 0;
    const cci::Connection connection = from_left ? site.connect(*site.left, *site.right) : site.connect(*site.right, *site.left);
    App& from = from_left ? *site.left : *site.right;
    App& to = from_left ? *site.right : *site.left;
    memory.push_back(std::make_unique<std::vector<std::byte>>(each));
    const auto local = from.memory->register_region(Bytes(data));
    const auto remote = to.memory->register_region(MutableBytes(*memory.back()), cci::access_write);
    REQUIRE(from.endpoint->rma(connection, whole(local, remote, each, true)) == Status::success);
    memory.push_back(std::make_unique<std::vector<std::byte>>(each));
    const auto into = from.memory->register_region(MutableBytes(*memory.back()), 0);
    const auto source = to.memory->register_region(Bytes(data));
    REQUIRE(from.endpoint->rma(connection, whole(into, source, each, false)) == Status::success);
    (from_left ? left_count : right_count) += 2;
    from.wake();
  }
  REQUIRE(
      site.run([&] { return site.left->count(EventType::send) == left_count && site.right->count(EventType::send) == right_count; },
               seconds(120)));
  for (const auto& buffer : memory) CHECK(*buffer == data);
}

TEST_CASE("routed_rma__fence__earlier_operations_complete_first") {
  Site site;
  site.chain(2);
  const Ends ends = ends_of(site, false);
  const auto data = pattern(1u << 20, 3);
  std::vector<std::byte> target(data.size()), flag(8, std::byte{0});
  const auto local = ends.from->memory->register_region(Bytes(data));
  const auto remote = ends.to->memory->register_region(MutableBytes(target), cci::access_write);
  const auto remote_flag = ends.to->memory->register_region(MutableBytes(flag), cci::access_write);
  auto first = whole(local, remote, data.size(), true);
  first.context = 1;
  auto second = whole(local, remote_flag, 8, true);
  second.fence = true;
  second.context = 2;
  REQUIRE(ends.from->endpoint->rma(ends.connection, first) == Status::success);
  REQUIRE(ends.from->endpoint->rma(ends.connection, second) == Status::success);
  REQUIRE(ends.from->endpoint->send(ends.connection, as_bytes("after"), 3) == Status::success);
  ends.from->wake();
  REQUIRE(site.run([&] { return flag != std::vector<std::byte>(8, std::byte{0}); }));
  CHECK(target == data);
  REQUIRE(site.run([&] { return ends.from->count(EventType::send) == 3; }));
  CHECK(ends.from->take(EventType::send)->context == 1);
}

TEST_CASE("routed_rma__a_router_dies_in_the_middle__operations_fail_and_buffers_come_back") {
  const size_t victim = GENERATE(0u, 1u, 2u);
  const bool write = GENERATE(true, false);
  Site site(victim + 10);
  site.chain(3);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const auto data = pattern(8u << 20, 3);
  std::vector<std::byte> target(data.size());
  const auto local =
      write ? site.left->memory->register_region(Bytes(data)) : site.left->memory->register_region(MutableBytes(target), 0);
  const auto remote = write ? site.right->memory->register_region(MutableBytes(target), cci::access_write)
                            : site.right->memory->register_region(Bytes(data));
  REQUIRE(site.left->endpoint->rma(connection, whole(local, remote, data.size(), write)) == Status::success);
  site.left->wake();
  REQUIRE(site.run([&] { return site.routers[1]->counters.get(Counter::routed_bytes) > (1u << 20); }));
  site.kill(victim);
  REQUIRE(site.run(
      [&] {
        return site.left->count(EventType::send) > 0 && site.left->count(EventType::disconnected) > 0 &&
               site.right->count(EventType::disconnected) > 0;
      },
      seconds(90)));
  CHECK(site.left->take(EventType::send)->status == Status::disconnected);
  check_nothing_left(site);
}

TEST_CASE("routed_rma__own_disconnect_in_the_middle__what_was_begun_ends_first") {
  const bool write = GENERATE(true, false);
  Site site(4);
  site.chain(2);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const auto data = pattern(8u << 20, 3);
  std::vector<std::byte> target(data.size());
  const auto local =
      write ? site.left->memory->register_region(Bytes(data)) : site.left->memory->register_region(MutableBytes(target), 0);
  const auto remote = write ? site.right->memory->register_region(MutableBytes(target), cci::access_write)
                            : site.right->memory->register_region(Bytes(data));
  REQUIRE(site.left->endpoint->rma(connection, whole(local, remote, data.size(), write)) == Status::success);
  site.left->wake();
  REQUIRE(site.run([&] { return site.routers[1]->counters.get(Counter::routed_bytes) > (1u << 20); }));
  site.left->endpoint->disconnect(connection);
  site.left->wake();
  REQUIRE(site.run([&] { return site.left->count(EventType::send) > 0 && site.right->count(EventType::disconnected) > 0; },
                   seconds(30)));
  CHECK(site.left->take(EventType::send)->status == Status::success);
  CHECK(target == data);
  check_nothing_left(site);
}

TEST_CASE("routed_rma__own_disconnect_and_no_end_in_sight__the_flush_is_bounded") {
  Site site;
  site.options.rate_bytes_per_s = 1u << 20;
  site.chain(1);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const auto data = pattern(64u << 20, 3);  // a minute of it
  std::vector<std::byte> target(data.size());
  const auto local = site.left->memory->register_region(Bytes(data));
  const auto remote = site.right->memory->register_region(MutableBytes(target), cci::access_write);
  REQUIRE(site.left->endpoint->rma(connection, whole(local, remote, data.size(), true)) == Status::success);
  site.left->endpoint->disconnect(connection);
  site.left->wake();
  const Instant start = site.world.now();
  REQUIRE(site.run([&] { return site.left->count(EventType::send) > 0 && site.right->count(EventType::disconnected) > 0; },
                   seconds(30)));
  CHECK(site.left->take(EventType::send)->status == Status::disconnected);
  CHECK(site.world.now() - start < seconds(12));
  check_nothing_left(site);
}

TEST_CASE("routed_rma__rate_limit__is_kept") {
  Site site;
  site.options.rate_bytes_per_s = 1u << 20;
  site.chain(1);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const auto data = pattern(4u << 20, 3);
  std::vector<std::byte> target(data.size());
  const auto local = site.left->memory->register_region(Bytes(data));
  const auto remote = site.right->memory->register_region(MutableBytes(target), cci::access_write);
  const Instant start = site.world.now();
  CHECK(site.rma(*site.left, connection, whole(local, remote, data.size(), true)) == Status::success);
  const Duration took = site.world.now() - start;  // virtual time
  CHECK(took > milliseconds(3500));
  CHECK(took < milliseconds(4500));
  CHECK(target == data);
}

TEST_CASE("routed_rma__a_slow_destination__leaves_buffers_to_others") {
  Site site(5);
  sim::LinkOptions slow;
  slow.rate_bytes_per_s = 1'000'000;
  site.fabric.set_link("lan3", slow);
  site.add_router("r", {{"lan1", "10.0.0.1", {1, 1}, {}}, {"lan2", "10.0.0.1", {1, 2}, {}}, {"lan3", "10.0.0.1", {1, 3}, {}}});
  site.left = std::make_unique<App>(site.world, site.fabric, "lan1", "10.0.0.2", SubnetId{1, 1},
                                    std::vector<std::string>{"sim://10.0.0.1:7000"});
  site.right = std::make_unique<App>(site.world, site.fabric, "lan2", "10.0.0.2", SubnetId{1, 2},
                                     std::vector<std::string>{"sim://10.0.0.1:7000"});
  App crawl(site.world, site.fabric, "lan3", "10.0.0.2", {1, 3}, {"sim://10.0.0.1:7000"});
  site.settle();
  const cci::Event to_slow = site.connect_event(*site.left, crawl.uri());
  REQUIRE(to_slow.status == Status::success);
  const auto data = pattern(8u << 20, 3);
  std::vector<std::byte> target(data.size()), slow_target(data.size());
  const auto local = site.left->memory->register_region(Bytes(data));
  const auto remote = site.right->memory->register_region(MutableBytes(target), cci::access_write);
  const auto slow_remote = crawl.memory->register_region(MutableBytes(slow_target), cci::access_write);
  REQUIRE(site.left->endpoint->rma(to_slow.connection, whole(local, slow_remote, data.size(), true)) == Status::success);
  site.left->wake();
  site.world.run_for(seconds(1));
  const cci::Connection fast = site.connect(*site.left, *site.right);
  const Instant start = site.world.now();
  CHECK(site.rma(*site.left, fast, whole(local, remote, data.size(), true)) == Status::success);
  CHECK(site.world.now() - start < seconds(2));  // virtual time
  CHECK(target == data);
}

// A clock that is far from 0, as real ones are: the budget of all that time was not saved up.
TEST_CASE("routed_rma__rate_limit_after_a_long_time__is_kept") {
  Site site;
  site.options.rate_bytes_per_s = 1u << 20;
  site.chain(1);
  site.world.run_for(seconds(3600));
  const cci::Connection connection = site.connect(*site.left, *site.right);
  const auto data = pattern(2u << 20, 3);
  std::vector<std::byte> target(data.size());
  const auto local = site.left->memory->register_region(Bytes(data));
  const auto remote = site.right->memory->register_region(MutableBytes(target), cci::access_write);
  for (int i = 0; i < 2; ++i) {
    const Instant start = site.world.now();
    CHECK(site.rma(*site.left, connection, whole(local, remote, data.size(), true)) == Status::success);
    CHECK(site.world.now() - start > milliseconds(1700));
    site.world.run_for(seconds(60));
  }
}
