// The further workers of a router: threads of which each has its own endpoints, buffers and routed
// connections. The router of the process, worker 0, accepts all connections, speaks to routers and
// administrators, and knows the map. It hands each routed connection that came over tcp to the
// worker that has the fewest, before anything of it is answered. A worker whose reload has failed is
// given no connection until one succeeds.
// In: what worker 0 is told (a stop, a changed configuration, a rate). Out: its log, its audit
// records and its counters, all through worker 0.
// Guarantees: workers share the map snapshot and nothing else; no lock is taken on the data path.
// Errors: create(): those of Router::create and make_node.
// Threads: all methods are worker 0's. begin() comes after the process was confined.
// Source: app/main/README.md 'Workers of a router'.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/main/commands.h"
#include "app/main/process_trust.h"
#include "app/main/router_status.h"
#include "app/main/security.h"
#include "app/report/events.h"
#include "routing/router/router.h"
#include "transports/stream/moved_connection.h"

namespace ccixfer::program {

// What one worker is told of its devices and its routing, without endpoints.
struct WorkerSettings {
  Config config;
  std::vector<routing::RouterDevice> devices;  // with their URIs, in the order of worker 0's: its numbers of them
  routing::RouterOptions options;              // its share of the memory and of the rate
};

class RouterWorkers {
 public:
  using Audit = std::function<void(policy::AuditRecord record)>;  // called by worker 0's thread
  // `count`: without worker 0. `settings` of each; `audit`: empty if nobody reads it.
  [[nodiscard]] static Result<std::unique_ptr<RouterWorkers>> create(const Process& process, size_t count,
                                                                     const std::optional<Security>& security,
                                                                     const std::function<WorkerSettings()>& settings,
                                                                     const Audit& audit);
  ~RouterWorkers();
  RouterWorkers(const RouterWorkers&) = delete;
  RouterWorkers& operator=(const RouterWorkers&) = delete;

  // For the transport of that device of worker 0; `router` is worker 0's.
  [[nodiscard]] std::shared_ptr<stream::Placement> placement(const std::string& device);
  [[nodiscard]] Result<void> begin(routing::Router& router);  // file_io: no thread can be made
  void turn(Instant now);                                     // what workers have said, and a new map for them
  [[nodiscard]] Instant next_deadline() const;

  void set_rate(uint64_t bytes_per_s);  // of each
  void reconfigure(const std::optional<TrustNews>& news, const std::function<WorkerSettings()>& settings);
  void drain();
  [[nodiscard]] bool drained() const;
  void stop();  // waits for the threads; what they had to say is said

  [[nodiscard]] size_t connections_open() const;
  [[nodiscard]] WorkersShare share() const;        // for the status page; without worker 0, buffers in use as of a second ago
  [[nodiscard]] bool are_well(Instant now) const;  // false: one has not come back from a turn
  // Counters of the process are those of all workers when this was called; done once a second.
  void add_counters();
  [[nodiscard]] std::vector<report::WorkerLine> lines() const;  // of each, worker 0 first

 private:
  struct Worker;
  struct Placer;
  RouterWorkers(const Process& process, const Audit& audit);
  [[nodiscard]] bool take_turns(const std::string& device);  // whether a routed connection that comes now is for another than 0
  void move(const std::string& device, stream::MovedConnection connection);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ccixfer::program
