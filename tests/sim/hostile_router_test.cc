// A whole transfer through a router that is somebody else's: it reads and changes whatever it passes on, messages of every kind and
// fragments, pushes and pulls. It learns no word, nothing wrong is ever taken for right, and every transfer ends with success or a
// named error. The hops here have no seals, as whoever owns the router has opened those.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "app/session/open.h"
#include "app/simulate/site.h"
#include "app/simulate/tree.h"
#include "tests/sim/seeds.h"
#include "tests/sim/tampering_transport.h"
#include "transports/stream/stream_transport.h"

namespace ccixfer::testing {
namespace {

using namespace std::chrono_literals;
using simulate::Site;

const std::string canary_name = "the-canary-in-a-name";
const std::string canary_text = "a canary in the text, unseen by whoever passes it on. ";
constexpr uint32_t archive = session::option_recursive | session::option_directory | session::option_links |
                             session::option_permissions | session::option_times;

class HostileRouter final : public sim::Actor {
 public:
  HostileRouter(Site& site, Tampering& tampering)
      : site_(site), entropy_(site.world.random().next()), memory_(std::make_shared<cci::MemoryTable>(entropy_, site.counters)) {
    std::vector<routing::RouterDevice> devices;
    for (size_t index = 0; index < site.networks.size(); ++index) {
      sim::SimNetOptions net;
      net.networks = {site.networks[index]};
      net.listen = true;
      net.port = simulate::router_port;
      auto inner = std::make_unique<stream::StreamTransport>(
          ports::TransportOptions{}, std::make_unique<sim::SimNet>(site.fabric, site.node, net), site.counters);
      routing::RouterDevice& device = devices.emplace_back();
      device.name = site.networks[index].network;
      device.subnet = {1, static_cast<uint32_t>(index)};
      device.scheme = "sim";
      device.rate_bits_per_s = 1'000'000'000;
      device.endpoint = std::make_unique<cci::Endpoint>(
          cci::EndpointOptions{}, make_tampering_transport(std::move(inner), index, tampering), memory_, site.counters);
    }
    routing::RouterOptions options;
    options.fragment_bytes = 64u << 10;
    options.memory_bytes = 2u << 20;
    auto router = routing::Router::create(options, std::move(devices), memory_, entropy_, site.counters);
    REQUIRE(router);
    router_ = std::move(*router);
    site_.world.add_actor(site_.node, this);
  }
  ~HostileRouter() override { site_.world.remove_actor(site_.node, this); }
  void turn(Instant now) override { router_->turn(now); }
  [[nodiscard]] Instant next_deadline() const override { return router_->next_deadline(); }

 private:
  Site& site_;
  sim::SimEntropy entropy_;
  std::shared_ptr<cci::MemoryTable> memory_;
  std::unique_ptr<routing::Router> router_;
};

session::SealSetup someone() {
  static const std::array<trust::Identity, 2> who = {trust::Identity::generate().value(), trust::Identity::generate().value()};
  static size_t next = 0;
  return {who[next++ % 2], std::nullopt, [] { return int64_t{1'800'000'000}; }};
}

// Source - router - destination.
class Scene {
 public:
  Scene(uint64_t seed, bool pull, bool sealed, std::optional<Tampering::Plan> plan = std::nullopt)
      : tampering(seed, plan),
        pull_(pull),
        world_(seed),
        fabric_(world_),
        source_(fabric_, "S", {{"near", "10.0.0.2"}}),
        destination_(fabric_, "D", {{"far", "10.0.0.2"}}),
        between_(fabric_, "R", {{"near", "10.0.0.10"}, {"far", "10.0.0.20"}}) {
    source_.routing = simulate::Routing{{1, 0}, {"sim://10.0.0.10:" + std::to_string(simulate::router_port)}};
    destination_.routing = simulate::Routing{{1, 1}, {"sim://10.0.0.20:" + std::to_string(simulate::router_port)}};
    if (sealed) {
      source_.seal = someone();
      destination_.seal = someone();
    }
    source_.verbose = destination_.verbose = verbose() ? 2 : 0;
    fill();
    router_ = std::make_unique<HostileRouter>(between_, tampering);
    simulate::ListenPlan listen{pull, pull ? "/src" : "/dst"};
    listener_ = std::make_unique<simulate::Listener>(pull ? source_ : destination_, listen);
    simulate::DialPlan dial;
    dial.pull = pull;
    dial.uri = listener_->uri();
    dial.directory = pull ? "/dst" : "/src";
    dial.options = archive;
    dial.timeout = 30s;
    dialler_ = std::make_unique<simulate::Dialler>(pull ? destination_ : source_, dial);
  }
  ~Scene() {
    for (Site* site : {&source_, &destination_}) world_.crash(site->node);
    listener_->bury();
    dialler_->bury();
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  [[nodiscard]] bool run() {
    return world_.run_until([&] { return dialler_->ended(); }, after(world_.now(), 30min), 5'000'000) == sim::RunEnd::reached;
  }
  [[nodiscard]] const Error& result() const { return dialler_->result(); }
  [[nodiscard]] std::string missing() const { return simulate::difference(wanted_, destination_.files.tree("/dst"), true); }
  // "": all that has its final name is what was sent.
  [[nodiscard]] std::string wrong() const {
    for (const auto& [path, entry] : destination_.files.tree("/dst")) {
      if (path.starts_with(".ccixfer")) continue;
      const auto found = wanted_.find(path);
      if (found == wanted_.end()) return path + " was never sent";
      if (entry.stat.type != found->second.stat.type) return path + " is of another type";
      if (entry.stat.type != ports::FileType::directory && entry.content != found->second.content) return path + " has wrong bytes";
    }
    return "";
  }
  [[nodiscard]] bool told(std::string_view words) const { return tampering.recording().find(words) != std::string::npos; }

  Tampering tampering;

 private:
  void fill() {
    sim::SimFileSystem& files = source_.files;
    files.make_directory("/dst");
    destination_.files.make_directory("/dst");
    files.make_directory("/src/" + canary_name);
    std::string large;
    while (large.size() < (4u << 20) + 100'000) large += canary_text;
    files.put("/src/two pieces", large);
    files.put("/src/" + canary_name + "/" + canary_name, canary_text);
    for (int i = 0; i < 5; ++i) files.put("/src/f" + std::to_string(i), std::to_string(i) + canary_text);
    files.sync_all();
    wanted_ = files.tree("/src");
  }

  const bool pull_;
  sim::World world_;
  sim::Fabric fabric_;
  Site source_, destination_, between_;
  sim::Tree wanted_;
  std::unique_ptr<HostileRouter> router_;
  std::unique_ptr<simulate::Listener> listener_;
  std::unique_ptr<simulate::Dialler> dialler_;
};

// What may be the end of a transfer that a router spoilt. It cannot make either end say that a file or the peer is to blame.
bool is_an_end(ErrorKind kind) {
  const std::set<ErrorKind> kinds{ErrorKind::ok,        ErrorKind::protocol,  ErrorKind::network,        ErrorKind::timeout,
                                  ErrorKind::no_answer, ErrorKind::integrity, ErrorKind::authentication, ErrorKind::no_route};
  return kinds.contains(kind);
}

std::map<Place, uint64_t> honest(bool pull, bool sealed) {
  Scene scene(1, pull, sealed);
  REQUIRE(scene.run());
  REQUIRE(scene.result().message == "");
  REQUIRE(scene.missing() == "");
  for (const std::string& words : {canary_name, canary_text}) CHECK(scene.told(words) != sealed);
  CHECK(scene.tampering.recording().size() > (4u << 20));
  return scene.tampering.seen();
}

}  // namespace

TEST_CASE("hostile_router__without_encryption__its_recording_has_every_word") {
  for (const bool pull : {false, true}) static_cast<void>(honest(pull, false));
}

TEST_CASE("hostile_router__messages_of_every_kind_and_fragments_harmed__nothing_read_nothing_wrong") {
  const bool pull = GENERATE(false, true);
  const std::map<Place, uint64_t> seen = honest(pull, true);
  std::map<ErrorKind, unsigned> ends;
  uint64_t seed = 100;
  const uint64_t only = number_from_environment("CCIXFER_SIM_FIRST", 0);  // to replay one
  for (const auto& [place, count] : seen) {
    for (const Harm harm : harms) {
      for (const uint64_t number : std::set<uint64_t>{0, count / 2, count - 1}) {
        for (const bool on : {false, true}) {
          INFO((pull ? "pull" : "push") << ", device " << place.device << ", " << name_of_kind(place.kind) << ": " << name_of(harm)
                                        << (on ? " from " : " ") << number << " on, of " << count << ", seed " << seed);
          if (only != 0 && seed != only) {
            ++seed;
            continue;
          }
          Scene scene(seed++, pull, true, Tampering::Plan{place, harm, number, on});
          REQUIRE(scene.run());
          REQUIRE(is_an_end(scene.result().kind));
          REQUIRE((scene.result().kind == ErrorKind::ok) == scene.result().message.empty());
          REQUIRE(scene.wrong() == "");
          if (scene.result().kind == ErrorKind::ok) REQUIRE(scene.missing() == "");
          for (const std::string& words : {canary_name, canary_text}) REQUIRE_FALSE(scene.told(words));
          ++ends[scene.result().kind];
        }
      }
    }
  }
  if (verbose()) {
    for (const auto& [place, count] : seen) WARN("device " << place.device << ": " << name_of_kind(place.kind) << " x " << count);
    for (const auto& [kind, count] : ends) WARN(error_row(kind).name << " x " << count);
  }
  CHECK(ends[ErrorKind::ok] > 0);
}

// What is damaged is asked for again, but not for ever.
TEST_CASE("hostile_router__every_fragment_changed__ends_with_integrity") {
  for (const bool pull : {false, true}) {
    Scene scene(7, pull, true, Tampering::Plan{{0, pulled_fragment}, Harm::flip, 0, true});
    REQUIRE(scene.run());
    CHECK(scene.result().kind == ErrorKind::integrity);
    CHECK(scene.result().message.find("100 segments in a row were damaged on their way") != std::string::npos);
    CHECK(scene.wrong() == "");
    CHECK(scene.tampering.done() >= 100);
  }
}

}  // namespace ccixfer::testing
