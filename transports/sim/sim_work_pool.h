// The work pool of a simulated node: run() happens whole at one virtual instant, after a random time of work on one of a few
// simulated threads; done() in a reap() some time after. Jobs overtake one another. The node's actors are turned when there is
// something to reap.
// A crash of the node stops the jobs; they go uncalled with the pool. Machines that must be idle before they are destroyed can be
// led there by finish_dead(). To crash in the middle of a job, freeze the file system (freeze_after).
#pragma once
#include <memory>

#include "core/ports/work_pool.h"
#include "transports/sim/world.h"

namespace ccixfer::sim {

struct WorkPoolOptions {
  unsigned threads = 2;
  Duration work_min = std::chrono::microseconds(20);
  Duration work_max = std::chrono::milliseconds(2);
  double slow_chance = 0;  // of a job: it takes up to slow_max, as when one call of the disk does
  Duration slow_max = std::chrono::minutes(5);
  double stuck_chance = 0;  // of a job: it never ends, and its thread with it; a crash of the node alone takes it away
};

class SimWorkPool final : public ports::WorkPool {
 public:
  SimWorkPool(World& world, NodeId node, ports::FileSystem& files, const WorkPoolOptions& options = {});
  ~SimWorkPool() override;
  SimWorkPool(const SimWorkPool&) = delete;
  SimWorkPool& operator=(const SimWorkPool&) = delete;

  void submit(std::unique_ptr<ports::Job> job) override;
  size_t reap() override;
  [[nodiscard]] size_t in_flight() const override;
  [[nodiscard]] int os_handle() const override { return -1; }

  // On a dead node: calls run() of what is left, on a disk whose every call is -EIO, and done(). Returns how many.
  size_t finish_dead();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // pending events of the world know it weakly
};

}  // namespace ccixfer::sim
