// The deterministic world: one virtual clock, one queue of events ordered by (instant, sequence), one seeded generator, and nodes
// that crash and restart. Everything simulated (networks, disks, pools) is events of a World; nothing in it is concurrent.
//
// Guarantee: the same seed and the same calls give the same trace, event by event (trace_hash()); no clock, address or hash order
// of the machine enters it.
// Actors: the machines under test. A node's actors are turned, in the order they were added, soon after an event of the node
// (turn_delay_max), and when the deadline of one is reached.
// Crash: crash(node) ends the node's incarnation: its pending events are dropped, its actors forgotten, its parts (SimNet,
// SimFileSystem, SimWorkPool) go dead at once. The owner then destroys the actors and parts, whenever it likes: calls of a dead
// part fail or do nothing. Must not be called from within an actor's turn: schedule it with at().
// Bounds: run_until() ends after events_max events.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "transports/sim/random.h"

namespace ccixfer::sim {

using NodeId = uint32_t;

class Actor {
 public:
  virtual ~Actor() = default;
  virtual void turn(Instant now) = 0;
  [[nodiscard]] virtual Instant next_deadline() const = 0;
};

// A part of a node that must know of its crash. Registered by its constructor, forgotten by its destructor.
class NodePart {
 public:
  virtual ~NodePart() = default;
  virtual void on_crash() = 0;
};

struct WorldOptions {
  Duration turn_delay_max = std::chrono::microseconds(50);  // from an event to the turn of the node's actors
  Duration turn_spacing = std::chrono::microseconds(5);     // between turns of a node whose deadline stays in the past
  Instant start{};                                          // what the clock shows at first: that of a machine just booted
  uint64_t wall_start_ns = 1'750'000'000'000'000'000u;      // time of day at the start (mtimes), ns since 1970
};

// What a node's processor takes for what a process does on its protocol thread. A turn of the node's actors does what it does at
// one instant; then the processor is busy for as long as that takes, what was sent leaves when it is done, and so does the next
// turn begin. All zero: nothing takes any time.
struct ProcessorOptions {
  Duration turn{};     // a turn, whatever it does
  Duration call{};     // a call to the node's network, as a system call
  Duration per_mib{};  // of what such calls move
};

inline constexpr size_t violations_kept_max = 100;

enum class RunEnd : uint8_t { reached, deadline, idle, too_many_events };

class World {
 public:
  explicit World(uint64_t seed, const WorldOptions& options = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] uint64_t seed() const;
  [[nodiscard]] Instant now() const;
  [[nodiscard]] int64_t wall_ns() const;
  [[nodiscard]] Random& random();

  NodeId add_node(std::string name);
  [[nodiscard]] const std::string& name(NodeId node) const;
  [[nodiscard]] bool alive(NodeId node) const;
  [[nodiscard]] uint64_t incarnation(NodeId node) const;  // 1, 2, ... counts restarts
  void crash(NodeId node);
  void restart(NodeId node);  // of a crashed node; then give it new actors

  // The world's own events: happen whatever crashes. `when` in the past means now.
  void at(Instant when, std::function<void()> action);
  // An event of a node: dropped when the node crashes before it; its actors are turned after it.
  void at_node(NodeId node, Instant when, std::function<void()> action);
  void set_processor(NodeId node, const ProcessorOptions& options);
  void call(NodeId node, uint64_t bytes);            // of a part of the node
  void work(NodeId node, Duration time);             // its processor is busy for so much longer
  [[nodiscard]] Instant free_at(NodeId node) const;  // when it has done what it does; now, if it does nothing
  [[nodiscard]] Duration worked(NodeId node) const;  // so far

  void wake(NodeId node);  // turn its actors soon
  void look(NodeId node);  // at its actors' deadlines: one may have come nearer outside of a turn

  // `actor` must stay valid until removed or until its node crashed. Both are fine from within a turn of another actor or of
  // itself.
  void add_actor(NodeId node, Actor* actor);
  void remove_actor(NodeId node, Actor* actor);
  void add_part(NodeId node, NodePart* part);
  void remove_part(NodeId node, NodePart* part);

  // Runs events until done() holds (asked after every event), none is left, the clock passes `until`, or events_max events have
  // happened. On `deadline` the clock stands at `until`.
  RunEnd run_until(const std::function<bool()>& done, Instant until, uint64_t events_max = 50'000'000);
  RunEnd run_for(Duration duration);

  // A hash over all that happened so far; parts mix in what they do.
  [[nodiscard]] uint64_t trace_hash() const;
  [[nodiscard]] uint64_t events() const;
  void trace(std::string_view what, uint64_t a = 0, uint64_t b = 0);
  // Something that no program may do to what is simulated, in words. The first violations_kept_max are kept.
  void violated(std::string what);
  [[nodiscard]] const std::vector<std::string>& violations() const;
  void set_trace_sink(std::function<void(std::string_view line)> sink);  // for people who replay a seed

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::sim
