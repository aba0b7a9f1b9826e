#include "transports/sim/sim_work_pool.h"

#include <cerrno>
#include <deque>
#include <map>
#include <vector>

#include "core/base/check.h"

namespace ccixfer::sim {
namespace {

// The disk of a node that is down: every call is -EIO, whatever the real one has become meanwhile.
class DeadDisk final : public ports::FileSystem {
 public:
  int open(int, std::string_view, ports::OpenFlags, uint32_t) override { return -EIO; }
  int close(int) override { return -EIO; }
  int64_t pread(int, MutableBytes, uint64_t) override { return -EIO; }
  int64_t pwrite(int, Bytes, uint64_t) override { return -EIO; }
  int fstat(int, ports::FileStat&) override { return -EIO; }
  int stat_at(int, std::string_view, ports::FileStat&, bool) override { return -EIO; }
  int read_directory_part(int, bool, const std::function<void(std::string_view)>&) override { return -EIO; }
  int mkdir_at(int, std::string_view, uint32_t) override { return -EIO; }
  int symlink_at(std::string_view, int, std::string_view) override { return -EIO; }
  int64_t readlink_at(int, std::string_view, std::string&) override { return -EIO; }
  int rename_at(int, std::string_view, int, std::string_view) override { return -EIO; }
  int unlink_at(int, std::string_view, bool) override { return -EIO; }
  int truncate(int, uint64_t) override { return -EIO; }
  int set_mode(int, uint32_t) override { return -EIO; }
  int set_owner(int, uint32_t, uint32_t) override { return -EIO; }
  int set_mtime(int, ports::FileTime) override { return -EIO; }
  int set_link_owner_at(int, std::string_view, uint32_t, uint32_t) override { return -EIO; }
  int set_link_mtime_at(int, std::string_view, ports::FileTime) override { return -EIO; }
  int fsync(int) override { return -EIO; }
  int syncfs(int) override { return -EIO; }
  int space(int, ports::SpaceInfo&) override { return -EIO; }
};

}  // namespace

using JobPtr = std::unique_ptr<ports::Job>;

struct SimWorkPool::Impl final : public NodePart, public std::enable_shared_from_this<Impl> {
  Impl(World& owner, NodeId node_id, ports::FileSystem& file_system, const WorkPoolOptions& pool_options)
      : world(owner), node(node_id), files(file_system), options(pool_options) {
    CHECK(options.threads > 0);
    world.add_part(node, this);
  }
  ~Impl() override { world.remove_part(node, this); }

  World& world;
  const NodeId node;
  ports::FileSystem& files;
  const WorkPoolOptions options;
  std::vector<JobPtr> queued;
  std::map<uint64_t, JobPtr> running;  // here and not in the world's events, so that a job never outlives the pool
  std::deque<JobPtr> finished;
  uint64_t next_number = 0;
  unsigned busy_threads = 0;
  size_t in_flight = 0;
  bool dead = false;

  void start() {
    while (busy_threads < options.threads && !queued.empty()) {
      ++busy_threads;
      // The pool promises no order: any of the queued ones is next.
      std::swap(queued[static_cast<size_t>(world.random().below(queued.size()))], queued.back());
      const uint64_t number = next_number++;
      running[number] = std::move(queued.back());
      queued.pop_back();
      if (options.stuck_chance > 0 && world.random().chance(options.stuck_chance)) continue;
      const bool slow = options.slow_chance > 0 && world.random().chance(options.slow_chance);
      const Duration work = slow ? world.random().between(options.work_max, options.slow_max)
                                 : world.random().between(options.work_min, options.work_max);
      world.at_node(node, after(world.now(), work), [weak = weak_from_this(), number] {
        const auto pool = weak.lock();
        if (pool == nullptr || pool->dead) return;
        JobPtr job = std::move(pool->running.at(number));
        pool->running.erase(number);
        job->run(pool->files);
        pool->finished.push_back(std::move(job));
        --pool->busy_threads;
        pool->start();
      });
    }
  }

  void on_crash() override {
    dead = true;
    for (auto& [number, job] : running) queued.push_back(std::move(job));
    running.clear();
    for (JobPtr& job : finished) queued.push_back(std::move(job));  // nobody reaps a dead node
    finished.clear();
  }
};

SimWorkPool::SimWorkPool(World& world, NodeId node, ports::FileSystem& files, const WorkPoolOptions& options)
    : impl_(std::make_shared<Impl>(world, node, files, options)) {}
SimWorkPool::~SimWorkPool() { impl_->dead = true; }

void SimWorkPool::submit(JobPtr job) {
  CHECK(job != nullptr);
  ++impl_->in_flight;
  impl_->queued.push_back(std::move(job));
  if (!impl_->dead) impl_->start();
}

size_t SimWorkPool::finish_dead() {
  CHECK(impl_->dead);
  DeadDisk disk;
  std::vector<JobPtr> jobs;
  jobs.swap(impl_->queued);
  for (JobPtr& job : jobs) {
    job->run(disk);
    job->done();
    job.reset();
    --impl_->in_flight;
  }
  return jobs.size();
}

size_t SimWorkPool::reap() {
  size_t count = 0;
  for (size_t left = impl_->finished.size(); left > 0 && !impl_->finished.empty(); --left, ++count) {
    const JobPtr job = std::move(impl_->finished.front());
    impl_->finished.pop_front();
    job->done();
    --impl_->in_flight;
  }
  return count;
}

size_t SimWorkPool::in_flight() const { return impl_->in_flight; }

}  // namespace ccixfer::sim
