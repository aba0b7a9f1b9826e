// Routing endpoints and a router against a peer that sends routing messages as it likes, in the simulated world. First byte of the
// input: whom it meets and how far it goes honestly before. Then steps: a byte for what happens (its low three bits), then what
// that takes. Checked: nothing crashes, nobody's bytes go where they may not, all that was begun ends, buffers come back, and
// others are served afterwards.
#include <memory>

#include "core/base/log.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_nodes.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;

namespace {

constexpr size_t steps_max = 200;
constexpr const char* router_uri = "sim://10.0.0.1:7000";

enum class Meets : uint8_t {
  router_as_initiator,    // a router, on the way to an application beyond
  router_as_destination,  // the same, as that application
  application_as_router,  // an application, as the last router before it
  application_dials,      // the same, which dials through it
  router_as_router,
  router_as_administrator,
};
constexpr uint8_t meets_count = 6;

struct World {
  explicit World(Meets how) : meets(how), peer(world, fabric, how == Meets::router_as_destination ? "right" : "left", "10.0.0.66") {
    RouterOptions options;
    options.fragment_bytes = 16u << 10;
    options.memory_bytes = 12u * (16u << 10);
    router = std::make_unique<RouterNode>(
        world, fabric, "router", std::vector<DeviceSpec>{{"left", "10.0.0.1", {1, 1}, {}}, {"right", "10.0.0.1", {1, 2}, {}}},
        options);
    const bool through_peer = meets == Meets::application_dials;
    left = std::make_unique<App>(world, fabric, "left", "10.0.0.2", SubnetId{1, 1},
                                 std::vector<std::string>{through_peer ? "sim://10.0.0.66:7000" : router_uri});
    right = std::make_unique<App>(world, fabric, "right", "10.0.0.2", SubnetId{1, 2}, std::vector<std::string>{router_uri});
    region = std::vector<std::byte>(60'000, std::byte{0x55});
    remote = victim().memory->register_region(MutableBytes(region).subspan(1000, 50'000), cci::access_read | cci::access_write);
    exposed = peer.memory->register_region(Bytes(theirs));
    peer.accepts = true;
    world.run_for(std::chrono::milliseconds(50));
  }
  // The application that is dealt with.
  [[nodiscard]] App& victim() {
    const bool at_left =
        meets == Meets::application_as_router || meets == Meets::application_dials || meets == Meets::router_as_destination;
    return at_left ? *left : *right;
  }
  [[nodiscard]] cci::Connection connection() {
    return meets == Meets::application_dials || meets == Meets::router_as_destination ? dialled : victim().accepted;
  }

  void dial(const std::string& uri) {
    cci::ConnectOptions how;
    how.timeout = std::chrono::seconds(10);
    const auto made = left->endpoint->connect(uri, how);
    fuzz::must(made.has_value());
    left->wake();
    peer.run([&] { return peer.last(MessageKind::connect_request).has_value(); }, std::chrono::seconds(5));
    fuzz::must(peer.last(MessageKind::connect_request).has_value());
  }
  void begin(bool honest) {
    switch (meets) {
      case Meets::router_as_initiator:
        fuzz::must(honest ? peer.open(router_uri, right->uri()) : peer.connect(router_uri, ports::Role::hop));
        break;
      case Meets::application_as_router:
        fuzz::must(honest ? peer.open("sim://10.0.0.2:7000", left->uri()) : peer.connect("sim://10.0.0.2:7000", ports::Role::hop));
        break;
      case Meets::application_dials:
      case Meets::router_as_destination:
        dial(meets == Meets::application_dials ? "cci://1:7:10.0.0.9:7000" : "cci://1:2:10.0.0.66:7000");
        if (honest) peer.say(ConnectReply{Status::success, {}, 1392, 16u << 10, {}, 0});
        break;
      case Meets::router_as_router:
        fuzz::must(honest ? peer.greet(router_uri, 99, {1, 1}) : peer.connect(router_uri, ports::Role::router));
        break;
      case Meets::router_as_administrator:
        fuzz::must(peer.connect(router_uri, ports::Role::admin));
    }
    turn();
  }
  void turn() {
    world.run_for(std::chrono::milliseconds(2));
    take();
  }
  // Of the application that is dealt with.
  void take() {
    while (const auto event = victim().take(cci::EventType::connect)) dialled = event->connection;
    while (victim().take(cci::EventType::send)) fuzz::must(++completed <= issued);
    victim().events.clear();
  }
  // Fragments name handle 0 for the real ones: a fuzzer cannot guess a key.
  void send(std::vector<std::byte> bytes) {
    if (auto fragment = decode_fragment(bytes)) {
      if (fragment->exposed.number == 0) fragment->exposed = exposed;
      if (fragment->remote.handle.number == 0) fragment->remote.handle = remote;
      bytes.clear();
      encode(*fragment, bytes);
    }
    if (!bytes.empty()) peer.send(bytes);
  }
  void act(uint8_t what) {
    cci::Endpoint& endpoint = *victim().endpoint;
    const bool large = (what & 0x80) != 0;
    switch (what & 7) {
      case 0:
        issued += endpoint.send(connection(), Bytes(ours).first(large ? 1000 : 5), 1) == Status::success ? 1u : 0u;
        break;
      case 1:
      case 2: {
        cci::RmaOptions rma;
        rma.write = (what & 7) == 1;
        rma.local = own;
        if (!own.key) own = rma.local = victim().memory->register_region(MutableBytes(ours), cci::access_write);
        rma.remote.handle = exposed;
        rma.length_bytes = large ? ours.size() : 100;
        rma.fence = (what & 0x40) != 0;
        issued += endpoint.rma(connection(), rma) == Status::success ? 1u : 0u;
        break;
      }
      case 3:
        endpoint.disconnect(connection());
        break;
      case 4:
        static_cast<void>(endpoint.set_send_timeout(connection(), std::chrono::milliseconds(20)));
        break;
      case 5:
        static_cast<void>(endpoint.set_keepalive(connection(), std::chrono::seconds(1)));
        break;
      case 6:
        static_cast<void>(peer.memory->deregister_region(exposed));
        exposed = peer.memory->register_region(Bytes(theirs));
        break;
      default:
        peer.endpoint->disconnect(peer.connection);
        peer.wake();
    }
    victim().wake();
  }
  void finish() {
    peer.endpoint->disconnect(peer.connection);
    peer.wake();
    if (connection()) victim().endpoint->disconnect(connection());
    victim().wake();
    world.run_for(std::chrono::seconds(40));
    take();
    fuzz::must(completed == issued);
    for (size_t i = 0; i < region.size(); ++i) fuzz::must((i >= 1000 && i < 51'000) || region[i] == std::byte{0x55});
    fuzz::must(router->router->fragments_in_use() == 0);
    // Another is served: the other way round, so that it meets what was met.
    right->answer = left->answer = App::Answer::accept;
    right->events.clear();
    left->events.clear();
    fuzz::must(right->endpoint->connect(left->uri(), {.timeout = std::chrono::seconds(30)}).has_value());
    right->wake();
    peer.run([&] { return right->count(cci::EventType::connect) > 0; }, std::chrono::seconds(60));
    const auto event = right->take(cci::EventType::connect);
    fuzz::must(event && event->status == Status::success);
    fuzz::must(right->endpoint->send(event->connection, as_bytes("fine"), 1) == Status::success);
    right->wake();
    peer.run([&] { return right->count(cci::EventType::send) > 0; }, std::chrono::seconds(60));
    const auto sent = right->take(cci::EventType::send);
    fuzz::must(sent && sent->status == Status::success);
  }

  Meets meets;
  sim::World world{1};
  sim::Fabric fabric{world, {}};
  std::vector<std::byte> region, ours = std::vector<std::byte>(40'000, std::byte{1});
  const std::vector<std::byte> theirs = std::vector<std::byte>(40'000, std::byte{2});
  std::unique_ptr<RouterNode> router;
  RawPeer peer;
  std::unique_ptr<App> left, right;
  cci::Handle remote, exposed, own;
  cci::Connection dialled;
  size_t issued = 0, completed = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const bool silent = [] {
    set_log_sink([](LogLevel, std::string_view) {}, LogLevel::error);
    return true;
  }();
  static_cast<void>(silent);
  World world(static_cast<Meets>((data[0] & 7) % meets_count));
  world.begin((data[0] & 8) != 0);
  size_t steps = 0;
  for (size_t at = 1; at < size && steps < steps_max; ++steps) {
    const uint8_t step = data[at++];
    const uint8_t operand = at < size ? data[at] : uint8_t{0};
    switch (step & 7) {
      case 4:
        ++at;
        world.act(operand);
        break;
      case 5:
        world.world.run_for(std::chrono::milliseconds(1) * (1 << (step >> 3 & 15)));
        world.take();
        break;
      case 6:
      case 7:
        world.turn();
        break;
      default: {  // a length of a byte, and so many bytes of a routing message
        const size_t begin = std::min(at + 1, size);
        const Bytes bytes = fuzz::bytes_of(data + begin, std::min<size_t>(operand, size - begin));
        at = begin + bytes.size();
        world.send({bytes.begin(), bytes.end()});
        if ((step & 7) < 2) world.turn();
      }
    }
  }
  world.finish();
  return 0;
}
