// Links over the real stream transport in the simulated world: streams that are reset all the time, seeded. Messages arrive once
// and in order, every put is reported once, and one that was reported placed is in its mailbox.
#include <algorithm>
#include <catch2/catch.hpp>

#include "core/base/log.h"
#include "tests/unit/session/link_fixture.h"
#include "transports/sim/sim_net.h"
#include "transports/sim/world.h"
#include "transports/stream/stream_transport.h"

using namespace ccixfer;
using namespace ccixfer::session;
using namespace ccixfer::session::fake;

namespace {

constexpr uint64_t message_count = 400;
constexpr uint64_t put_count = 300;
constexpr size_t put_bytes = 100'000;
constexpr uint64_t mailbox = 500;
constexpr uint64_t key = 501;
constexpr uint16_t lane_count = 3;

// One process: transport, endpoint and hub on a node, turned by the world.
struct SimSide final : sim::Actor {
  SimSide(sim::Fabric& fabric, sim::NodeId node, const char* address, bool listen, uint64_t seed, std::string proved = {})
      : identity(std::move(proved)), entropy(seed), memory(std::make_shared<cci::MemoryTable>(entropy, counters)) {
    sim::SimNetOptions options;
    options.networks = {{"lan", address}};
    options.listen = listen;
    options.port = 7000;
    options.identity = identity;
    auto transport = std::make_unique<stream::StreamTransport>(ports::TransportOptions{},
                                                               std::make_unique<sim::SimNet>(fabric, node, options), counters);
    endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(transport), memory, counters);
    hub = std::make_unique<Hub>(*endpoint, counters);
  }
  void turn(Instant now) override {
    hub->turn(now);
    if (work) work();
  }
  [[nodiscard]] Instant next_deadline() const override { return hub->next_deadline(); }

  const std::string identity;
  Counters counters;
  CountingEntropy entropy;
  std::shared_ptr<cci::MemoryTable> memory;
  std::unique_ptr<cci::Endpoint> endpoint;
  std::unique_ptr<Hub> hub;
  std::function<void()> work;
};

class SimAcceptor final : public AcceptHandler {
 public:
  explicit SimAcceptor(SimSide& side) : side_(side) { side.hub->set_accept_handler(this); }
  ~SimAcceptor() override { side_.hub->set_accept_handler(nullptr); }
  Result<Link*> on_new_session(const Hello& hello, Instant) override {
    ++sessions;
    link = std::make_unique<Link>(*side_.endpoint, hello, user);
    link->set_session(sessions);
    side_.hub->add_link(link.get());
    return link.get();
  }
  Link* find_session(const Hello& hello) override {
    return link != nullptr && link->session() == hello.session ? link.get() : nullptr;
  }
  uint64_t sessions = 0;
  Recorder user;
  std::unique_ptr<Link> link;

 private:
  SimSide& side_;
};

bool counts_up_to(const std::vector<uint64_t>& messages, uint64_t count) {
  if (messages.size() != count) return false;
  for (uint64_t i = 0; i < count; ++i) {
    if (messages[i] != i + 1) return false;
  }
  return true;
}

void play(uint64_t seed) {
  INFO("seed " << seed);
  sim::World world(seed);
  sim::Fabric fabric(world);
  const sim::NodeId near_node = world.add_node("near");
  const sim::NodeId far_node = world.add_node("far");
  SimSide near(fabric, near_node, "a", false, 1);
  SimSide far(fabric, far_node, "b", true, 2);
  SimAcceptor acceptor(far);
  Recorder user;
  Hello hello;
  hello.transfer[0] = static_cast<uint8_t>(seed);
  Link link(*near.endpoint, hello, user);
  near.hub->add_link(&link);
  Dialler dialler(*near.endpoint, link, "sim://b:7000", seed);
  near.hub->add_dialler(&dialler);

  // The far end posts one buffer an epoch; a put that did not arrive is put again, into the same epoch.
  std::vector<std::vector<std::byte>> sinks(put_count, std::vector<std::byte>(put_bytes));
  REQUIRE(far.memory->mailboxes().open(mailbox, {.key = key}) == Status::success);
  for (uint64_t i = 0; i < put_count; ++i) REQUIRE(far.memory->mailboxes().post(mailbox, sinks[i], i) == Status::success);
  std::vector<std::byte> source(put_bytes);
  for (size_t i = 0; i < put_bytes; ++i) source[i] = static_cast<std::byte>(i * 7);
  const ports::Handle region = near.memory->register_region(Bytes(source));

  uint64_t posted = 0;
  uint64_t puts_issued = 0;
  size_t puts_seen = 0;
  uint64_t placed = 0;
  bool under_way = false;
  near.work = [&] {
    const std::vector<LaneIndex> live = link.live_lanes();
    if (link.session() == 0 && !live.empty() && acceptor.link != nullptr) {  // stands for Opened
      link.set_session(acceptor.link->session());
      dialler.set_lanes(lane_count);
      fabric.set_link("lan", [] {
        sim::LinkOptions bad;
        bad.reset_mean = std::chrono::milliseconds(30);
        bad.dial_failure_chance = 0.05;
        return bad;
      }());
    }
    if (posted < message_count && link.control_queue_room() > 0) link.post(End{++posted});
    while (puts_seen < user.puts.size()) {
      const Recorder::Put& put = user.puts[puts_seen++];
      under_way = false;
      // mailbox_stale: it was placed, and the acknowledgement was lost with the lane.
      if (put.status == Status::success || put.status == Status::mailbox_stale) ++placed;
    }
    if (!under_way && placed < put_count && !live.empty()) {
      const LaneIndex lane = live[puts_issued % live.size()];
      if (link.put(lane, region, 0, put_bytes, mailbox, key, placed, puts_issued) == Status::success) {
        ++puts_issued;
        under_way = true;
      }
    }
  };
  uint64_t far_posted = 0;
  far.work = [&] {
    if (acceptor.link != nullptr && far_posted < message_count) acceptor.link->post(End{++far_posted});
  };
  world.add_actor(near_node, &near);
  world.add_actor(far_node, &far);
  world.wake(near_node);
  const auto done = [&] {
    return user.messages.size() >= message_count && acceptor.user.messages.size() >= message_count && placed == put_count &&
           link.messages_delivered() && acceptor.link->messages_delivered();
  };
  CHECK(world.run_until(done, Instant{} + std::chrono::minutes(30)) == sim::RunEnd::reached);
  CHECK(counts_up_to(user.messages, message_count));
  CHECK(counts_up_to(acceptor.user.messages, message_count));
  CHECK(acceptor.sessions == 1);
  CHECK(user.puts.size() == puts_issued);
  for (size_t i = 0; i < user.puts.size(); ++i) CHECK(user.puts[i].context == i);
  CHECK(fabric.resets() > 0);
  uint64_t completed = 0;
  while (const auto completion = far.memory->mailboxes().next_completion()) {
    if (completion->status != Status::success) continue;
    CHECK(completion->epoch == completed++);
    CHECK(std::equal(source.begin(), source.end(), completion->buffer, completion->buffer + completion->length_bytes));
  }
  CHECK(completed == put_count);
  CHECK(user.lost == nullptr);
  CHECK(dialler.failure() == nullptr);
  near.hub->remove_dialler(&dialler);
  world.remove_actor(near_node, &near);
  world.remove_actor(far_node, &far);
  acceptor.link.reset();
}

}  // namespace

// Who is refused, and whose session it is, goes by who the peer is and not by its connection.
TEST_CASE("sim_link__peer__is_known_by_what_it_proves_or_where_it_is") {
  sim::World world(1);
  sim::Fabric fabric(world);
  const sim::NodeId near_node = world.add_node("near"), far_node = world.add_node("far");
  SimSide near(fabric, near_node, "a", false, 1, GENERATE(std::string(), std::string("cx1near")));
  SimSide far(fabric, far_node, "b", true, 2);
  const std::string name = near.identity.empty() ? "a" : near.identity + " (proved)";
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); }, LogLevel::info);
  const std::shared_ptr<void> no_sink(nullptr, [](void*) { set_log_sink({}, LogLevel::error); });
  Recorder user;
  Link link(*near.endpoint, Hello{}, user);
  near.hub->add_link(&link);
  Dialler dialler(*near.endpoint, link, "sim://b:7000", 1);
  near.hub->add_dialler(&dialler);
  world.add_actor(near_node, &near);
  world.add_actor(far_node, &far);
  CHECK_FALSE(link.peer().is_known());
  const auto run = [&](const std::function<bool()>& done) {
    REQUIRE(world.run_until(done, after(world.now(), std::chrono::seconds(30))) == sim::RunEnd::reached);
  };
  run([&] { return !lines.empty(); });  // nobody takes sessions there
  CHECK(lines.front().find("session refused to " + name + ": ") == 0);
  SimAcceptor acceptor(far);
  near.hub->remove_dialler(&dialler);  // it has given up
  Dialler again(*near.endpoint, link, "sim://b:7000", 2);
  near.hub->add_dialler(&again);
  world.wake(near_node);
  run([&] { return acceptor.link != nullptr && !acceptor.link->live_lanes().empty(); });
  CHECK(acceptor.link->peer().name() == name);
  run([&] { return !link.live_lanes().empty(); });
  CHECK(link.peer().name() == "b");
  world.remove_actor(near_node, &near);
  world.remove_actor(far_node, &far);
  acceptor.link.reset();
}

TEST_CASE("link__streams_reset_all_the_time__messages_once_in_order_and_puts_as_reported") {
  for (uint64_t seed = 1; seed <= 8; ++seed) play(seed);
}
