// Peers that stand still, or that never mean to go on, and hold a router's buffers: what the others have of it, and what becomes of
// those. Virtual time, so the figures are exact.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "routing/router/standstill_watch.h"
#include "tests/sim/deadlock/world.h"
#include "tests/unit/routing/raw_peer.h"
#include "transports/stream/limits.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr size_t peers_count = 64;
constexpr size_t transfer_bytes = 4u << 20;
constexpr uint32_t buffers = 64;

enum class Kind { stopped_receivers, stopped_senders, hostile_senders, hostile_readers };

// One router between subnets 1 and 2, with a buffer for each of the 64 that stand still, and no more.
struct Scene {
  Net net{11};
  Flows flows{net};
  App* a = nullptr;
  App* b = nullptr;
  std::vector<std::unique_ptr<RawPeer>> raw;
  std::vector<App*> stopped;
  std::vector<std::byte> theirs = std::vector<std::byte>(64u << 10);
  std::vector<std::unique_ptr<ports::FillProgress>> arrivals;
  size_t before = 0;  // a connection that has moved something

  explicit Scene(bool progress) {
    net.options.mechanisms.progress = progress;
    net.options.memory_bytes = uint64_t{buffers} * net.options.fragment_bytes;
    for (const uint32_t subnet : {1u, 2u}) net.set_rate(subnet, 100'000'000);
    net.router({1, 2});
    net.settle();
    a = &net.app(1);
    b = &net.app(2);
    before = flows.add(*a, *b, transfer_bytes);
    REQUIRE(took(before) < seconds(1));
  }
  Router& router() { return *net.routers[0]->router; }
  Duration took(size_t flow, Duration at_most = seconds(20)) {
    flows.start(flow);
    if (!flows.run_until_ended(flow, at_most)) return at_most;
    CHECK(flows[flow].delivered());
    return flows[flow].took_until - flows[flow].began;
  }
  Duration again() { return took(flows.add(*a, *b, flows[before].connection, transfer_bytes)); }  // on the old connection
  Duration anew() { return took(flows.add(*a, *b, transfer_bytes)); }
  void stop(App& app) {
    net.world.remove_actor(app.node, &app);
    stopped.push_back(&app);
  }
  void ask_of_router(RawPeer& peer, Kind kind) {
    FragmentMessage fragment;
    fragment.length_bytes = 64u << 10;
    const bool sends = kind == Kind::hostile_senders;
    fragment.kind = sends ? MessageKind::write_request : MessageKind::read_request;
    fragment.remote.handle = b->memory->register_region(Bytes(theirs));
    for (uint64_t cookie = 1; cookie <= 4; ++cookie) {
      fragment.cookie = cookie;
      if (sends) {
        arrivals.push_back(std::make_unique<ports::FillProgress>());
        fragment.exposed = peer.memory->register_filling(Bytes(theirs), arrivals.back().get());
      }
      peer.say(fragment);
    }
  }
  void open_raw(RawPeer& peer, Kind kind) {
    REQUIRE(peer.open("sim://10.1.0.1:7000", b->uri()));
    peer.say_plain(MessageKind::end_to_end_keepalive);
    ask_of_router(peer, kind);
  }
  // All of them hold what they can get.
  void stand_still(Kind kind) {
    for (size_t i = 0; i < peers_count; ++i) {
      if (kind == Kind::hostile_senders || kind == Kind::hostile_readers) {
        raw.push_back(std::make_unique<RawPeer>(net.world, net.fabric, "n1", "10.1.1." + std::to_string(i + 1)));
        continue;
      }
      const bool receives = kind == Kind::stopped_receivers;
      App& app = net.app(receives ? 2 : 1);
      const size_t flow = flows.add(receives ? *a : app, receives ? app : *b, 1u << 20);
      flows[flow].from->endpoint->set_keepalive(flows[flow].connection, seconds(600));
      if (receives) stop(app);
    }
    net.world.run_for(milliseconds(100));
    if (kind == Kind::stopped_receivers || kind == Kind::stopped_senders) {
      for (size_t i = flows.size() - peers_count; i < flows.size(); ++i) flows.start(i);
      net.world.run_for(std::chrono::microseconds(10));  // the offers are on their way
    }
    if (kind == Kind::stopped_senders) {
      for (size_t i = flows.size() - peers_count; i < flows.size(); ++i) stop(*flows[i].from);
    }
    for (auto& peer : raw) open_raw(*peer, kind);
    net.world.run_for(milliseconds(5));
  }
};

double ratio(Duration one, Duration other) { return std::chrono::duration<double>(one) / std::chrono::duration<double>(other); }

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::stopped_receivers:
      return "stopped receivers";
    case Kind::stopped_senders:
      return "stopped senders";
    case Kind::hostile_senders:
      return "senders that never send";
    case Kind::hostile_readers:
      return "readers that never take";
  }
  return "";
}

}  // namespace

TEST_CASE("router_standstill__64_peers_that_stand_still__others_take_at_most_twice_as_long") {
  const Kind kind = GENERATE(Kind::stopped_receivers, Kind::stopped_senders, Kind::hostile_senders, Kind::hostile_readers);
  INFO(name_of(kind));
  Scene scene(true);
  const Duration alone = scene.again(), alone_anew = scene.anew();
  scene.stand_still(kind);
  CHECK(scene.router().fragments_in_use() > 0);
  const Duration at_once = scene.again();
  scene.net.world.run_for(seconds(3));
  const Duration later = scene.again(), anew = scene.anew();
  std::printf("64 %s: the others take %.2f, later %.2f, and over a new connection %.2f of what they take alone\n", name_of(kind),
              ratio(at_once, alone), ratio(later, alone), ratio(anew, alone_anew));
  CHECK(ratio(at_once, alone) <= 2);
  CHECK(ratio(later, alone) <= 2);
  CHECK(ratio(anew, alone_anew) <= 2);
  // In the end they hold nothing, though nobody waits, and though their ends said that they watch one another. Some got a buffer
  // only when others had lost theirs: each is given thirty seconds.
  scene.net.world.run_for(seconds(75));
  CHECK(scene.router().fragments_in_use() == 0);
  size_t told = 0;
  if (kind == Kind::stopped_receivers) {
    told = static_cast<size_t>(std::count_if(scene.a->events.begin(), scene.a->events.end(), [](const cci::Event& event) {
      return event.type == EventType::disconnected && event.reason.find("stands still: it takes nothing") != std::string::npos;
    }));
    CHECK(told == peers_count);
  }
  CHECK(scene.again() <= 2 * alone);
}

// What moves on their network shields those who wait their turn there, and these for no longer than a turn can take.
TEST_CASE("router_standstill__others_move_on_the_same_network__still_ones_are_cut_off") {
  Scene scene(true);
  scene.stand_still(Kind::stopped_receivers);
  for (int i = 0; i < 100; ++i) scene.again();
  const auto told = std::count_if(scene.a->events.begin(), scene.a->events.end(), [](const cci::Event& event) {
    return event.type == EventType::disconnected && event.reason.find("stands still: it takes nothing") != std::string::npos;
  });
  CHECK(told > static_cast<std::ptrdiff_t>(peers_count / 2));  // all that had a buffer
}

TEST_CASE("router_standstill__control__without_a_look_at_progress_the_others_wait") {
  const Kind kind = GENERATE(Kind::stopped_receivers, Kind::stopped_senders, Kind::hostile_senders, Kind::hostile_readers);
  INFO(name_of(kind));
  Scene scene(false);
  const Duration alone = scene.again();
  scene.stand_still(kind);
  scene.net.world.run_for(seconds(3));
  CHECK(ratio(scene.again(), alone) > 1.9);
}

// They come again and again, each time from where they were. Nobody knows them but by that.
TEST_CASE("router_standstill__hostile_peers_that_come_again__others_take_at_most_twice") {
  const Kind kind = GENERATE(Kind::hostile_senders, Kind::hostile_readers);
  INFO(name_of(kind));
  Scene scene(true);
  const Duration alone = scene.again(), alone_anew = scene.anew();
  scene.stand_still(kind);
  double worst = 0, worst_anew = 0;
  size_t came = 0;
  for (int round = 0; round < 20; ++round) {
    scene.net.world.run_for(seconds(2));
    for (auto& peer : scene.raw) {
      if (!peer->gone) continue;
      scene.open_raw(*peer, kind);
      ++came;
    }
    scene.net.world.run_for(milliseconds(5));
    worst = std::max(worst, ratio(scene.again(), alone));
    if (round >= 2) worst_anew = std::max(worst_anew, ratio(scene.anew(), alone_anew));
  }
  std::printf("64 %s that came again %zu times: the others take %.2f, over new connections %.2f\n", name_of(kind), came, worst,
              worst_anew);
  CHECK(worst <= 2);
  CHECK(worst_anew <= 2);
}

// What is owed by an end that has said goodbye is of no use. It may be one over which much has gone, and to which all buffers were
// open.
TEST_CASE("router_standstill__ends_that_say_bye_and_owe_fragments__their_buffers_come_back_at_once") {
  const bool is_proven = GENERATE(false, true);
  INFO((is_proven ? "of which something has moved" : "of which nothing has moved"));
  Scene scene(true);
  scene.stand_still(Kind::hostile_senders);
  if (is_proven) {
    RawPeer& peer = *scene.raw.emplace_back(std::make_unique<RawPeer>(scene.net.world, scene.net.fabric, "n1", "10.1.2.1"));
    REQUIRE(peer.open("sim://10.1.0.1:7000", scene.b->uri()));
    FragmentMessage fragment;
    fragment.kind = MessageKind::write_request;
    fragment.length_bytes = 64u << 10;
    fragment.exposed = peer.memory->register_region(Bytes(scene.theirs));
    fragment.remote.handle = scene.b->memory->register_region(MutableBytes(scene.theirs), cci::access_write);
    peer.say(fragment);
    scene.net.world.run_for(milliseconds(20));
    scene.ask_of_router(peer, Kind::hostile_senders);
    scene.net.world.run_for(milliseconds(5));
  }
  CHECK(scene.router().fragments_in_use() > buffers / 4);
  for (auto& peer : scene.raw) peer->say(Bye{Status::disconnected, "bye"});
  scene.net.world.run_for(milliseconds(5));
  CHECK(scene.router().fragments_in_use() == 0);
  CHECK(scene.router().connections_open() == 1);
}

// They stand still, nearly for as long as the router waits for them, and leave by themselves.
TEST_CASE("router_standstill__ends_that_stand_still_and_say_bye__are_remembered") {
  Scene scene(true);
  const uint32_t count = buffers / 4;
  for (uint32_t i = 0; i < count; ++i)
    scene.raw.push_back(std::make_unique<RawPeer>(scene.net.world, scene.net.fabric, "n1", "10.1.1." + std::to_string(i + 1)));
  for (auto& peer : scene.raw) scene.open_raw(*peer, Kind::hostile_senders);
  scene.net.world.run_for(milliseconds(400));
  CHECK(scene.router().fragments_in_use() == count);
  for (auto& peer : scene.raw) peer->say(Bye{Status::disconnected, "bye"});
  scene.net.world.run_for(milliseconds(400));
  CHECK(scene.router().fragments_in_use() == 0);
  for (auto& peer : scene.raw) scene.open_raw(*peer, Kind::hostile_senders);
  scene.net.world.run_for(milliseconds(5));
  CHECK(scene.router().fragments_in_use() <= buffers / 8 + 1);  // the share of those that stood still, and the reserved one
}

// The other end says goodbye, and they still owe what was asked of them. While others wait, that is no reason to wait longer.
TEST_CASE("router_standstill__the_other_end_says_bye__ends_that_owe_fragments_are_cut_off") {
  Scene scene(true);
  RawPeer left(scene.net.world, scene.net.fabric, "n2", "10.2.2.1");
  left.accepts = true;
  std::vector<cci::Connection> ends;
  for (size_t i = 0; i < peers_count; ++i) {
    RawPeer& peer = *scene.raw.emplace_back(
        std::make_unique<RawPeer>(scene.net.world, scene.net.fabric, "n1", "10.1.1." + std::to_string(i + 1)));
    REQUIRE(peer.connect("sim://10.1.0.1:7000", ports::Role::hop));
    peer.say(RawPeer::usual_request("cci://1:2:10.2.2.1:7000"));
    REQUIRE(left.run([&] { return left.last(MessageKind::connect_request).has_value(); }, seconds(5)));
    ends.push_back(left.connection);
    left.received.clear();
    left.say(ConnectReply{Status::success, {}, 1392, 64u << 10, {}, 0});
    REQUIRE(peer.run([&] { return peer.last(MessageKind::connect_reply).has_value(); }, seconds(5)));
    scene.ask_of_router(peer, Kind::hostile_senders);
  }
  scene.net.world.run_for(milliseconds(5));
  CHECK(scene.router().fragments_in_use() > buffers / 4);
  for (const cci::Connection& end : ends) {
    left.connection = end;
    left.say(Bye{Status::disconnected, "bye"});
  }
  scene.net.world.run_for(milliseconds(5));
  CHECK(scene.router().connections_open() > peers_count / 4);  // and one sees who has the buffers
  CHECK(scene.anew() < seconds(2));
  CHECK(scene.router().fragments_in_use() == 0);
}

// Two routers in a row: the receivers are behind the second one, which has buffers enough. The first cannot see them.
TEST_CASE("router_standstill__receivers_behind_another_router_stop__first_buffers_come_back") {
  Net net(12);
  for (const uint32_t subnet : {1u, 2u, 9u}) net.set_rate(subnet, 100'000'000);
  net.options.memory_bytes = 24u * net.options.fragment_bytes;
  net.router({1, 9});
  net.options.memory_bytes = 512u * net.options.fragment_bytes;
  net.router({9, 2});
  net.settle();
  net.world.run_for(seconds(1));
  App& a = net.app(1);
  App& b = net.app(2);
  Flows flows(net);
  std::vector<App*> receivers;
  for (int i = 0; i < 16; ++i) {
    receivers.push_back(&net.app(2));
    flows.add(a, *receivers.back(), 256u << 10);
    flows[flows.size() - 1].from->endpoint->set_keepalive(flows[flows.size() - 1].connection, seconds(600));
  }
  flows.start_all();
  REQUIRE(flows.run());  // each has moved something
  for (App* app : receivers) net.world.remove_actor(app->node, app);
  for (size_t i = 0; i < receivers.size(); ++i) flows.start(flows.add(a, *receivers[i], flows[i].connection, 2u << 20));
  net.world.run_for(milliseconds(200));
  CHECK(net.routers[0]->router->fragments_in_use() > 8);
  const size_t other = flows.add(a, b, 1u << 20);
  flows.start(other);
  REQUIRE(flows.run_until_ended(other, seconds(5)));  // and not in thirty
  CHECK(flows[other].delivered());
  net.world.run_for(seconds(5));
  const size_t later = flows.add(a, b, 1u << 20);
  flows.start(later);
  REQUIRE(flows.run_until_ended(later, milliseconds(100)));
}

// Slow is not still: a receiver on a crawling network, with others waiting for its buffers all the while, gets all.
TEST_CASE("router_standstill__a_slow_receiver__is_never_cut_off") {
  Net net(4);
  net.pool_of_one();
  net.set_rate(1, 100'000'000);
  net.set_rate(3, 50'000);
  net.router({1, 3});
  net.settle();
  App& from = net.app(1);
  Flows flows(net);
  for (int i = 0; i < 3; ++i) flows.add(from, net.app(3), 512u << 10);
  flows.start_all();
  REQUIRE(flows.run(seconds(30)));
  CHECK(flows.all_delivered());
}

namespace {

// A fragment comes over subnet 1 in ten seconds, a chunk of it in 2.7 s. Nobody has told that this is the slower way, so it is
// offered with its first bytes. There is one buffer, and others wait for it.
struct SlowWayIn {
  Net net{5};
  Flows flows{net};
  App* from = nullptr;
  App* to = nullptr;
  SlowWayIn() {
    net.options.fragment_bytes = 1u << 20;
    net.pool_of_one();
    net.set_rate(1, 100'000);
    net.set_rate(3, 100'000'000);
    net.rates[1] = net.rates[3];
    net.router({1, 3});
    net.settle();
    from = &net.app(1);
    to = &net.app(3);
    for (int i = 0; i < 3; ++i) flows.add(*from, i == 0 ? *to : net.app(3), 3u << 19);
  }
};

}  // namespace

// Its way out sends nothing of a fragment before a whole chunk has come: the destination waits as we do.
TEST_CASE("router_standstill__a_slow_way_in__the_destination_is_not_blamed_for_it") {
  static_assert(arriving_chunk_bytes >= stream::chunk_bytes_min);
  SlowWayIn slow;
  slow.flows.start_all();
  REQUIRE(slow.flows.run(seconds(60)));
  CHECK(slow.flows.all_delivered());
}

TEST_CASE("router_standstill__a_slow_way_in_and_a_stopped_destination__it_is_cut_off_before_all_has_come") {
  SlowWayIn slow;
  slow.flows.start(0);
  slow.net.world.run_for(milliseconds(500));
  slow.net.world.remove_actor(slow.to->node, slow.to);
  slow.flows.start(1);
  REQUIRE(slow.flows.run_until_ended(0, seconds(6)));
  CHECK_FALSE(slow.flows[0].delivered());
  REQUIRE(slow.flows.run_until_ended(1, seconds(60)));
  CHECK(slow.flows[1].delivered());
}

namespace {

// Subnet 3 crawls, and more connections than the router has buffers share it: each waits its turn there for many seconds.
struct Crawl {
  Net net{6};
  Flows flows{net};
  App* fast = nullptr;
  App* slow = nullptr;
  explicit Crawl(uint32_t fragment_bytes = 256u << 10, uint32_t count = 16) {
    net.options.fragment_bytes = fragment_bytes;
    net.options.memory_bytes = uint64_t{count} * fragment_bytes;
    net.set_rate(1, 100'000'000);
    net.set_rate(3, 200'000);
    net.router({1, 3});
    net.settle();
    fast = &net.app(1);
    slow = &net.app(3);
  }
  void stop() { net.world.remove_actor(slow->node, slow); }
  void go_on() {
    net.world.add_actor(slow->node, slow);
    slow->wake();
  }
  void add(bool slow_sends, size_t bytes) { flows.add(slow_sends ? *slow : *fast, slow_sends ? *fast : *slow, bytes); }
};

}  // namespace

TEST_CASE("router_standstill__many_connections_of_a_slow_network__are_never_cut_off") {
  const bool slow_sends = GENERATE(false, true);
  INFO((slow_sends ? "senders" : "receivers"));
  Crawl crawl;
  for (int i = 0; i < 24; ++i) crawl.add(slow_sends, 512u << 10);
  crawl.flows.start_all();
  REQUIRE(crawl.flows.run(seconds(30)));
  CHECK(crawl.flows.all_delivered());
}

namespace {

// The slow peer stands still for 40 s, and is back. Where the flows begin that it starts then.
size_t stand_still_and_come_again(Crawl& crawl, bool slow_sends) {
  for (int i = 0; i < 12; ++i) crawl.add(slow_sends, 256u << 10);
  crawl.flows.start_all();
  crawl.net.world.run_for(milliseconds(1500));
  crawl.stop();
  const Instant stopped = crawl.net.world.now();
  while (crawl.net.world.now() < after(stopped, seconds(40))) crawl.net.world.run_for(milliseconds(500));
  crawl.go_on();
  REQUIRE(crawl.flows.run(seconds(30)));
  CHECK_FALSE(crawl.flows.all_delivered());  // some were cut off
  const size_t before = crawl.flows.size();
  for (int i = 0; i < 24; ++i) crawl.add(slow_sends, 512u << 10);
  for (size_t i = before; i < crawl.flows.size(); ++i) crawl.flows.start(i);
  return before;
}

}  // namespace

// Nobody takes what he has not asked for. If it were pulled, it would stay here, and he would be cut off for that with all his
// connections.
TEST_CASE("router_standstill__a_read_reply_that_was_not_asked_for__its_destination_is_not_blamed") {
  Crawl crawl;
  crawl.add(false, 8u << 20);  // 42 s
  RawPeer liar(crawl.net.world, crawl.net.fabric, "n1", "10.1.1.1");
  REQUIRE(liar.open("sim://10.1.0.1:7000", crawl.slow->uri()));
  const auto data = pattern(64u << 10, 3);
  FragmentMessage reply;
  reply.kind = MessageKind::read_reply;
  reply.cookie = 7;
  reply.length_bytes = 64u << 10;
  reply.exposed = liar.memory->register_region(Bytes(data));
  crawl.flows.start_all();
  liar.say(reply);
  REQUIRE(liar.run([&] { return liar.gone; }, seconds(20)));
  REQUIRE(crawl.flows.run(seconds(30)));
  CHECK(crawl.flows.all_delivered());
  CHECK(crawl.net.routers[0]->counters.get(Counter::routed_rejected) == 1);
}

// One connection of an end is cut off because it takes nothing. Another one of that host moves, though no fragment of it has ended
// lately.
TEST_CASE("router_standstill__an_end_is_cut_off__its_connections_that_move_stay") {
  Crawl crawl(1u << 20, buffers);
  crawl.add(true, 8u << 20);  // 42 s, 5 s for each fragment
  const sim::NodeId host = crawl.slow->node;
  RawPeer still(crawl.net.world, crawl.net.fabric, "n3", "10.3.0.102", {}, {.node = host, .port = 7001});
  REQUIRE(still.connect("sim://10.3.0.1:7000", ports::Role::hop));
  ConnectRequest request = RawPeer::usual_request(crawl.fast->uri());
  request.source = {1, 3};
  still.say(request);
  REQUIRE(still.run([&] { return still.last(MessageKind::connect_reply).has_value(); }, seconds(5)));
  still.say_plain(MessageKind::connect_ack);
  const auto data = pattern(64u << 10, 3);
  FragmentMessage question;
  question.kind = MessageKind::read_request;
  question.cookie = 7;
  question.length_bytes = 64u << 10;
  question.remote.handle = crawl.fast->memory->register_region(Bytes(data));
  still.say(question);
  crawl.flows.start_all();
  REQUIRE(crawl.flows.run(seconds(30)));
  CHECK(crawl.flows.all_delivered());
  CHECK(still.gone);
}

// It did stand still, and was cut off for that. When it comes again it is no longer patiently waited for; but as soon as anything
// moves it is one like any other.
TEST_CASE("router_standstill__stood_still_and_comes_again_over_a_slow_network__gets_through") {
  const bool slow_sends = GENERATE(false, true);
  INFO((slow_sends ? "a sender" : "a receiver"));
  Crawl crawl;
  const size_t before = stand_still_and_come_again(crawl, slow_sends);
  REQUIRE(crawl.flows.run(seconds(30)));
  for (size_t i = before; i < crawl.flows.size(); ++i) CHECK(crawl.flows[i].delivered());
}

TEST_CASE("router_standstill__stood_still_and_comes_again__is_waited_for_as_others_are") {
  const bool slow_sends = GENERATE(false, true);
  INFO((slow_sends ? "a sender" : "a receiver"));
  Crawl crawl;
  const size_t before = stand_still_and_come_again(crawl, slow_sends);
  for (int i = 0; i < 10; ++i) {
    crawl.net.world.run_for(seconds(2));
    crawl.stop();
    crawl.net.world.run_for(milliseconds(500));  // longer than the router waits for one that never moved since
    crawl.go_on();
  }
  REQUIRE(crawl.flows.run(seconds(30)));
  for (size_t i = before; i < crawl.flows.size(); ++i) CHECK(crawl.flows[i].delivered());
}

// It stopped for a while, nobody waited, and it goes on where it was.
TEST_CASE("router_standstill__stopped_for_a_while_and_nobody_waits__goes_on") {
  Scene scene(true);
  App& app = scene.net.app(2);
  const size_t flow = scene.flows.add(*scene.a, app, 1u << 20);
  scene.flows[flow].from->endpoint->set_keepalive(scene.flows[flow].connection, seconds(600));
  scene.net.world.run_for(milliseconds(50));
  scene.net.world.remove_actor(app.node, &app);
  scene.flows.start(flow);
  scene.net.world.run_for(seconds(20));
  CHECK(scene.router().fragments_in_use() == 1);  // and it holds no more than that
  scene.net.world.add_actor(app.node, &app);
  app.wake();
  REQUIRE(scene.flows.run_until_ended(flow, seconds(10)));
  CHECK(scene.flows[flow].delivered());
}

// The ends watch one another, so no keepalive is on the hops; but what a router that is gone holds up is asked for.
TEST_CASE("router_standstill__the_next_router_is_gone_and_the_ends_watch__buffers_come_back") {
  Site site;
  site.chain(2);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  REQUIRE(site.left->endpoint->set_keepalive(connection, seconds(600)) == Status::success);
  REQUIRE(site.right->endpoint->set_keepalive(site.right->accepted, seconds(600)) == Status::success);
  site.world.run_for(milliseconds(100));
  const auto data = pattern(4u << 20, 3);
  std::vector<std::byte> target(data.size());
  cci::RmaOptions write;
  write.local = site.left->memory->register_region(Bytes(data));
  write.remote.handle = site.right->memory->register_region(MutableBytes(target), cci::access_write);
  write.length_bytes = data.size();
  REQUIRE(site.left->endpoint->rma(connection, write) == Status::success);
  site.left->wake();
  REQUIRE(site.run([&] { return site.routers[0]->router->fragments_in_use() > 1; }));
  site.fabric.cut("mid1", "10.9.0.2");
  site.world.run_for(seconds(90));
  CHECK(site.routers[0]->router->fragments_in_use() == 0);
  CHECK(site.routers[0]->router->connections_open() == 0);
}
