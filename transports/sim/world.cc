#include "transports/sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "core/base/check.h"

namespace ccixfer::sim {
namespace {

constexpr NodeId no_node = ~NodeId{0};

struct Scheduled {
  Instant when;
  uint64_t sequence = 0;
  NodeId node = no_node;
  uint64_t incarnation = 0;
  uint64_t turn_ticket = 0;  // not 0: a turn of the node, stale unless it is the node's latest ticket
  std::function<void()> action;
};
struct Later {
  bool operator()(const Scheduled& a, const Scheduled& b) const {
    return a.when != b.when ? a.when > b.when : a.sequence > b.sequence;
  }
};

struct Node {
  std::string name;
  bool alive = true;
  uint64_t incarnation = 1;
  std::vector<Actor*> actors;  // nullptr: removed during a turn
  std::vector<NodePart*> parts;
  Instant turn_at = never;
  uint64_t turn_ticket = 0;
  bool turning = false;
  ProcessorOptions processor;
  Instant busy_until = Instant::min();
  Duration worked{};
};

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9fb21c651e98df25u;
  return hash ^ (hash >> 32);
}

}  // namespace

struct World::Impl {
  Impl(uint64_t seed_value, const WorldOptions& world_options)
      : seed(seed_value), options(world_options), random(seed_value), now(world_options.start) {}

  const uint64_t seed;
  const WorldOptions options;
  Random random;
  Instant now;
  uint64_t next_sequence = 0;
  uint64_t next_ticket = 0;
  uint64_t events = 0;
  uint64_t hash = 0x243f6a8885a308d3u;
  std::vector<std::string> violations;
  std::deque<Node> nodes;        // references survive add_node
  std::vector<Scheduled> queue;  // a heap by Later: std::priority_queue would not let an event be moved out
  std::function<void(std::string_view)> sink;

  Node& node(NodeId id) {
    CHECK(id < nodes.size());
    return nodes[id];
  }

  void push(Scheduled event) {
    event.when = std::max(event.when, now);
    event.sequence = next_sequence++;
    queue.push_back(std::move(event));
    std::push_heap(queue.begin(), queue.end(), Later{});
  }

  void plan_turn(NodeId id, Instant when) {
    Node& n = node(id);
    if (when == never || !n.alive || when >= n.turn_at) return;
    n.turn_at = when;
    n.turn_ticket = ++next_ticket;
    Scheduled event;
    event.when = when;
    event.node = id;
    event.incarnation = n.incarnation;
    event.turn_ticket = n.turn_ticket;
    push(std::move(event));
  }

  void work(NodeId id, Duration time) {
    if (time <= Duration(0)) return;
    Node& n = node(id);
    n.busy_until = std::max(n.busy_until, now) + time;
    n.worked += time;
  }

  void wake(NodeId id) {
    if (!node(id).alive) return;
    plan_turn(id, now + random.between(Duration(1), options.turn_delay_max));
  }

  void turn(NodeId id) {
    Node& n = node(id);
    n.turn_at = never;
    n.turning = true;
    work(id, n.processor.turn);
    for (size_t i = 0; i < n.actors.size(); ++i) {  // by index: a turn may add and remove actors
      if (n.actors[i] != nullptr) n.actors[i]->turn(now);
    }
    n.turning = false;
    std::erase(n.actors, nullptr);
    look(id);
  }

  void look(NodeId id) {
    Instant deadline = never;
    for (const Actor* actor : node(id).actors) deadline = std::min(deadline, actor->next_deadline());
    if (deadline != never) plan_turn(id, std::max(deadline, now + options.turn_spacing));
  }

  // Takes the next event off the queue and lets it happen. False: it was stale, nothing happened.
  bool step() {
    std::pop_heap(queue.begin(), queue.end(), Later{});
    Scheduled event = std::move(queue.back());
    queue.pop_back();
    if (event.node != no_node) {
      const Node& n = node(event.node);
      if (!n.alive || n.incarnation != event.incarnation) return false;
      if (event.turn_ticket != 0 && (event.turn_ticket != n.turn_ticket || n.turn_at != event.when)) return false;
      if (event.turn_ticket != 0 && n.busy_until > event.when) {
        node(event.node).turn_at = never;
        plan_turn(event.node, n.busy_until);
        return false;
      }
    }
    now = event.when;
    ++events;
    hash = mix(mix(hash, static_cast<uint64_t>(now.time_since_epoch().count())),
               (uint64_t{event.node} << 1) | (event.turn_ticket != 0));
    if (event.turn_ticket != 0) {
      turn(event.node);
    } else {
      event.action();
      if (event.node != no_node) wake(event.node);
    }
    return true;
  }
};

World::World(uint64_t seed, const WorldOptions& options) : impl_(std::make_unique<Impl>(seed, options)) {}
World::~World() = default;

uint64_t World::seed() const { return impl_->seed; }
Instant World::now() const { return impl_->now; }
int64_t World::wall_ns() const {
  return static_cast<int64_t>(impl_->options.wall_start_ns) + (impl_->now - impl_->options.start).count();
}
Random& World::random() { return impl_->random; }

NodeId World::add_node(std::string name) {
  impl_->nodes.emplace_back().name = std::move(name);
  return static_cast<NodeId>(impl_->nodes.size() - 1);
}

const std::string& World::name(NodeId node) const { return impl_->node(node).name; }
bool World::alive(NodeId node) const { return impl_->node(node).alive; }
uint64_t World::incarnation(NodeId node) const { return impl_->node(node).incarnation; }

void World::crash(NodeId node) {
  CHECK(!impl_->node(node).turning);
  if (!impl_->node(node).alive) return;
  trace("crash", node);
  Node& n = impl_->node(node);
  n.alive = false;
  n.turn_at = never;
  n.actors.clear();
  const std::vector<NodePart*> parts = n.parts;
  for (NodePart* part : parts) part->on_crash();
}

void World::restart(NodeId node) {
  Node& n = impl_->node(node);
  CHECK(!n.alive);
  n.alive = true;
  ++n.incarnation;
  n.busy_until = Instant::min();
  trace("restart", node, n.incarnation);
}

void World::at(Instant when, std::function<void()> action) {
  Scheduled event;
  event.when = when;
  event.action = std::move(action);
  impl_->push(std::move(event));
}

void World::at_node(NodeId node, Instant when, std::function<void()> action) {
  Scheduled event;
  event.when = when;
  event.node = node;
  event.incarnation = impl_->node(node).incarnation;
  event.action = std::move(action);
  impl_->push(std::move(event));
}

void World::set_processor(NodeId node, const ProcessorOptions& options) { impl_->node(node).processor = options; }
void World::call(NodeId node, uint64_t bytes) {
  const ProcessorOptions& processor = impl_->node(node).processor;
  const auto share = static_cast<int64_t>(static_cast<uint64_t>(processor.per_mib.count()) * bytes >> 20);
  impl_->work(node, processor.call + Duration(share));
}
void World::work(NodeId node, Duration time) { impl_->work(node, time); }
Instant World::free_at(NodeId node) const { return std::max(impl_->node(node).busy_until, impl_->now); }
Duration World::worked(NodeId node) const { return impl_->node(node).worked; }

void World::wake(NodeId node) { impl_->wake(node); }
void World::look(NodeId node) { impl_->look(node); }

void World::add_actor(NodeId node, Actor* actor) {
  CHECK(impl_->node(node).alive);
  impl_->node(node).actors.push_back(actor);
  impl_->wake(node);
}

void World::remove_actor(NodeId node, Actor* actor) {
  Node& n = impl_->node(node);
  if (n.turning) {
    std::replace(n.actors.begin(), n.actors.end(), actor, static_cast<Actor*>(nullptr));
  } else {
    std::erase(n.actors, actor);
  }
}

void World::add_part(NodeId node, NodePart* part) { impl_->node(node).parts.push_back(part); }
void World::remove_part(NodeId node, NodePart* part) { std::erase(impl_->node(node).parts, part); }

RunEnd World::run_until(const std::function<bool()>& done, Instant until, uint64_t events_max) {
  const uint64_t last_event = impl_->events + events_max;
  if (done()) return RunEnd::reached;
  while (!impl_->queue.empty()) {
    if (impl_->queue.front().when > until) {
      impl_->now = std::max(impl_->now, until);
      return RunEnd::deadline;
    }
    if (impl_->events >= last_event) return RunEnd::too_many_events;
    if (impl_->step() && done()) return RunEnd::reached;
  }
  return RunEnd::idle;
}

RunEnd World::run_for(Duration duration) {
  return run_until([] { return false; }, after(now(), duration));
}

uint64_t World::trace_hash() const { return impl_->hash; }
void World::violated(std::string what) {
  if (impl_->violations.size() < violations_kept_max) impl_->violations.push_back(std::move(what));
}
const std::vector<std::string>& World::violations() const { return impl_->violations; }
uint64_t World::events() const { return impl_->events; }

void World::trace(std::string_view what, uint64_t a, uint64_t b) {
  for (const char c : what) impl_->hash = mix(impl_->hash, static_cast<unsigned char>(c));
  impl_->hash = mix(mix(impl_->hash, a), b);
  if (impl_->sink) {
    impl_->sink(fmt::format("{:.6f} {} {} {}", static_cast<double>(impl_->now.time_since_epoch().count()) * 1e-9, what, a, b));
  }
}

void World::set_trace_sink(std::function<void(std::string_view line)> sink) { impl_->sink = std::move(sink); }

}  // namespace ccixfer::sim
