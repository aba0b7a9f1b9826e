// A hop that says nothing any more and closes nothing: what went through it ends at both ends, within what the keepalive allows.
#include "tests/unit/routing/routed_world.h"
#include "transports/connection/limits.h"
#include "transports/stream/limits.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// A neighbour of what is silent has heard nothing for one keepalive when it asks for the first time, and gives up one keepalive
// after the last of its questions (stream::Engine::on_keepalive_timer): 5 s x (3 + 1). The endpoints of routers and ends alike are
// made with these options. What lies beyond the neighbour is told by its bye, at once; so the end-to-end keepalive of the routing
// transport (15 s x 4) is never what finds it.
constexpr Duration hop_keepalive = ports::TransportOptions{}.keepalive;
constexpr Duration hop_lost_after = hop_keepalive * (connection::keepalive_probes_max + 1);
// It was heard of one keepalive before at the longest: an idle hop is asked that often, and answers.
constexpr Duration hop_lost_not_before = hop_lost_after - hop_keepalive;
// What was on its way when it fell silent, and the byes: a few times the longest delay of a link (0.5 ms).
constexpr Duration travel = milliseconds(20);

enum class Silence { frozen, cut_off, cut_on_the_left, cut_on_the_right };
enum class Load { none, write, read };

}  // namespace

TEST_CASE("routed_silence__a_router_is_frozen_or_cut_off__both_ends_learn_within_keepalive") {
  const size_t victim = GENERATE(0u, 1u, 2u);
  const auto silence = GENERATE(Silence::frozen, Silence::cut_off, Silence::cut_on_the_left, Silence::cut_on_the_right);
  const auto traffic = GENERATE(Load::none, Load::write, Load::read);
  CAPTURE(victim, static_cast<int>(silence), static_cast<int>(traffic));
  Site site(1 + victim);
  site.chain(3);
  const cci::Connection connection = site.connect(*site.left, *site.right);
  site.world.run_for(seconds(7));  // somewhere between two probes
  const bool write = traffic == Load::write;
  const auto data = pattern(2u << 20, 3);
  std::vector<std::byte> target(data.size());
  if (traffic != Load::none) {
    App& owner = write ? *site.left : *site.right;
    App& getter = write ? *site.right : *site.left;
    const auto source = owner.memory->register_region(Bytes(data));
    const auto sink = getter.memory->register_region(MutableBytes(target), cci::access_write);
    cci::RmaOptions rma;
    rma.write = write;
    rma.local = write ? source : sink;
    rma.remote.handle = write ? sink : source;
    rma.length_bytes = data.size();
    REQUIRE(site.left->endpoint->rma(connection, rma) == Status::success);
    site.left->wake();
    REQUIRE(site.run([&] { return site.routers[victim]->counters.get(Counter::routed_bytes) > (512u << 10); }));
    REQUIRE(site.left->count(EventType::send) == 0);
  }
  RouterNode& router = *site.routers[victim];
  if (silence == Silence::frozen) site.world.remove_actor(router.node, &router);
  if (silence == Silence::cut_off || silence == Silence::cut_on_the_left) {
    site.fabric.cut(victim == 0 ? "lan1" : "mid" + std::to_string(victim), victim == 0 ? "10.0.0.1" : "10.9.0.2");
  }
  if (silence == Silence::cut_off || silence == Silence::cut_on_the_right) {
    site.fabric.cut(victim == 2 ? "lan2" : "mid" + std::to_string(victim + 1), victim == 2 ? "10.0.0.1" : "10.9.0.1");
  }
  const Instant silent_since = site.world.now();
  for (App* end : {site.left.get(), site.right.get()}) {
    CAPTURE(end == site.left.get());
    // The world stands still once both know, so the first is waited for on its own.
    CHECK(site.run([&] { return end->count(EventType::disconnected) > 0; },
                   after(silent_since, hop_lost_after + travel) - site.world.now()));
    CHECK(site.world.now() - silent_since > hop_lost_not_before - travel);
  }
  site.world.run_for(std::chrono::seconds(70));  // longer than the keepalive from end to end: nothing is told twice
  for (App* end : {site.left.get(), site.right.get()}) {
    CAPTURE(end == site.left.get());
    REQUIRE(end->count(EventType::disconnected) == 1);
    // Wherever it was noticed, the reason came along: in a bye, which a stream that has to be reset cannot bring any more. It is
    // reset where memory of the application or of a router lies in it by reference, and only with traffic does it.
    const auto ended = end->take(EventType::disconnected);
    INFO(ended->reason);
    const auto tells = [&ended](std::string_view words) { return ended->reason.find(words) != std::string::npos; };
    CHECK((tells("the peer does not answer") || (traffic != Load::none && tells("closed with lent memory unsent"))));
  }
  REQUIRE(site.left->count(EventType::send) == (traffic == Load::none ? 0 : 1));
  if (traffic != Load::none) CHECK(site.left->take(EventType::send)->status != Status::success);
  // Nothing of it is kept, for whoever goes on.
  for (size_t i = 0; i < site.routers.size(); ++i) {
    if (i == victim && silence == Silence::frozen) continue;
    CAPTURE(i);
    CHECK(site.routers[i]->router->connections_open() == 0);
    CHECK(site.routers[i]->router->fragments_in_use() == 0);
  }
}
