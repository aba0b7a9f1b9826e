// Two ends of a session over the fake net: a dialler with a Link, and an acceptor that makes one Link a session.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/session/dialler.h"
#include "app/session/hub.h"
#include "app/session/link.h"
#include "app/session/link_seal.h"
#include "core/cci/endpoint.h"
#include "core/ports/entropy.h"
#include "tests/unit/session/fake_net.h"

namespace ccixfer::session::fake {

class CountingEntropy final : public ports::Entropy {
 public:
  explicit CountingEntropy(uint64_t seed) : state_(seed) {}
  uint64_t next_u64() override { return state_ += 0x9e3779b97f4a7c15u; }

 private:
  uint64_t state_;
};

// Records what a Link tells, as text for lanes and as values for messages and puts.
class Recorder final : public LinkHandler {
 public:
  struct Put {
    LaneIndex lane;
    uint64_t context;
    Status status;
  };
  std::vector<std::string> lanes;
  std::vector<uint64_t> messages;  // End::entries of each
  std::vector<Message> others;
  std::vector<std::pair<LaneIndex, Message>> lane_messages;
  std::vector<Put> puts;
  std::unique_ptr<Error> lost;
  size_t calls_after_lost = 0;
  std::function<void(LaneIndex)> lane_up;

  void on_lane_up(LaneIndex lane) override {
    note("up " + std::to_string(lane));
    if (lane_up) lane_up(lane);
  }
  void on_lane_down(LaneIndex lane) override { note("down " + std::to_string(lane)); }
  void on_lane_message(LaneIndex lane, const Message& message) override {
    alive();
    lane_messages.emplace_back(lane, message);
  }
  void on_message(const Message& message) override {
    alive();
    if (const auto* end = std::get_if<End>(&message)) {
      messages.push_back(end->entries);
    } else {
      others.push_back(message);
    }
  }
  void on_put(LaneIndex lane, uint64_t context, Status status) override {
    note("put " + std::to_string(lane));
    puts.push_back({lane, context, status});
  }
  void on_link_lost(const Error& error) override {
    alive();
    lost = std::make_unique<Error>(error);
  }

 private:
  void alive() {
    if (lost != nullptr) ++calls_after_lost;
  }
  void note(std::string what) {
    alive();
    lanes.push_back(std::move(what));
  }
};

struct Side {
  Side(Net& net, const std::string& uri, uint64_t seed)
      : entropy(seed), memory(std::make_shared<cci::MemoryTable>(entropy, counters)) {
    auto owned = std::make_unique<Transport>(net, uri);
    transport = owned.get();
    endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(owned), memory, counters);
    hub = std::make_unique<Hub>(*endpoint, counters);
  }
  Counters counters;
  CountingEntropy entropy;
  std::shared_ptr<cci::MemoryTable> memory;
  Transport* transport = nullptr;
  std::unique_ptr<cci::Endpoint> endpoint;
  std::unique_ptr<Hub> hub;
};

class Acceptor final : public AcceptHandler {
 public:
  explicit Acceptor(Side& side) : side_(side) { side.hub->set_accept_handler(this); }
  ~Acceptor() override { side_.hub->set_accept_handler(nullptr); }

  Result<Link*> on_new_session(const Hello& hello, Instant) override {
    if (refusal != nullptr) return tl::unexpected<Error>(*refusal);
    ++sessions;
    if (link != nullptr) old_links.push_back(std::move(link));
    link = std::make_unique<Link>(*side_.endpoint, hello, user);
    if (seal) link->secure(*seal);
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
  std::vector<std::unique_ptr<Link>> old_links;
  std::unique_ptr<Error> refusal;
  std::optional<SealSetup> seal;

 private:
  Side& side_;
};

// Everything together. The dialler learns the session's number by hand (Opened is the machines' business).
struct World {
  // With `seal`, both ends have an identity: the dialler this one, the acceptor one of its own.
  explicit World(uint16_t lanes = 1, Direction direction = Direction::push, const std::optional<SealSetup>& seal = std::nullopt)
      : near(net, "", 1), far(std::make_unique<Side>(net, "fake://far", 2)), acceptor(std::make_unique<Acceptor>(*far)) {
    Hello hello;
    hello.transfer[0] = 9;
    hello.direction = direction;
    hello.sealed = seal.has_value();
    link = std::make_unique<Link>(*near.endpoint, hello, user);
    if (seal) {
      link->secure(*seal);
      acceptor->seal = SealSetup{trust::Identity::generate().value(), seal->authority, seal->wall_time_s};
    }
    near.hub->add_link(link.get());
    dialler = std::make_unique<Dialler>(*near.endpoint, *link, "fake://far", 7);
    dialler->set_lanes(lanes);
    near.hub->add_dialler(dialler.get());
  }
  ~World() {
    near.hub->remove_dialler(dialler.get());
    dialler.reset();
    link.reset();
    acceptor.reset();
  }

  void turn() {
    near.hub->turn(now);
    if (learns_session && link != nullptr && link->session() == 0 && acceptor != nullptr && acceptor->link != nullptr &&
        !link->live_lanes().empty()) {
      link->set_session(acceptor->link->session());
    }
    if (far != nullptr) far->hub->turn(now);
    const Instant next = std::min(near.hub->next_deadline(), far != nullptr ? far->hub->next_deadline() : never);
    now = std::max(now + std::chrono::microseconds(10), next == never ? now : next);
  }
  // Turns until `what`, or `turns` have passed.
  bool run(const std::function<bool()>& what, size_t turns = 20000) {
    for (size_t i = 0; i < turns; ++i) {
      if (what()) return true;
      turn();
    }
    return what();
  }
  bool run_until_up(size_t lanes) {
    return run([&] {
      return link->live_lanes().size() == lanes && acceptor->link != nullptr && acceptor->link->live_lanes().size() == lanes;
    });
  }

  Net net;
  bool learns_session = true;
  const Instant began{std::chrono::hours(5)};  // clocks do not begin at 0
  Instant now = began;
  Side near;
  std::unique_ptr<Side> far;
  Recorder user;
  std::unique_ptr<Link> link;
  std::unique_ptr<Dialler> dialler;
  std::unique_ptr<Acceptor> acceptor;
};

// Dials by hand with any connect data; the reason of the refusal, or "accepted".
inline std::string knock(World& world, Bytes data, ports::Role role = ports::Role::application,
                         ports::Attribute attribute = ports::Attribute::reliable_ordered) {
  Side guest(world.net, "", 5);
  cci::ConnectOptions options;
  options.data = data;
  options.role = role;
  options.attribute = attribute;
  REQUIRE(guest.endpoint->connect("fake://far", options));
  std::string answer;
  REQUIRE(world.run(
      [&] {
        guest.endpoint->turn(world.now);
        while (auto event = guest.endpoint->get_event()) {
          if (event->type == cci::EventType::connect) answer = event->status == Status::success ? "accepted" : event->reason;
        }
        return !answer.empty();
      },
      1000));
  return answer;
}

}  // namespace ccixfer::session::fake
