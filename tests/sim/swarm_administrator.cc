// The administrator of a swarm: moves, removes and replaces directories of the destination, its root and its staging directory,
// between jobs and in the middle of one.
#include <fmt/format.h>

#include <algorithm>

#include "tests/sim/swarm.h"

namespace ccixfer::testing {
namespace {

const std::string root = "/dst";
const std::string staging = "/dst/.ccixfer";
const std::string archive = "/archive";

}  // namespace

void Swarm::plan_administrator() {
  destination_->files.make_directory(archive);
  destination_->files.set_hook([this](std::string_view call, std::string_view) {
    if (call == "syncfs") last_sync_call_ = destination_->files.calls();
    if (destination_->files.calls() >= act_at_call_) {
      act_at_call_ = ~uint64_t{0};
      acted_in_event_ = world_.events();
      act_as_administrator();
    }
    return 0;
  });
  for (unsigned i = 0; i < options_.administrator_acts; ++i) {
    const Duration when = random_.exponential(options_.faults_within / 8);
    const bool in_a_job = random_.chance(0.5);
    world_.at(after(world_.now(), when), [this, in_a_job] {
      if (acts_ >= options_.administrator_acts || destination_->files.down() || over_) return;
      if (in_a_job) {
        act_at_call_ = destination_->files.calls() + random_.below(100);
      } else {
        act_as_administrator();
      }
    });
  }
}

// One that is there, the root and its staging now and then; empty: none.
std::string Swarm::some_directory() {
  if (random_.chance(0.1)) return root;
  if (random_.chance(0.1)) return staging;
  std::vector<std::string> directories;
  for (const auto& [path, entry] : destination_->files.tree(root)) {
    if (entry.stat.type == ports::FileType::directory && !path.starts_with(".ccixfer")) directories.push_back(path);
  }
  if (directories.empty()) return {};
  return root + "/" + directories[static_cast<size_t>(random_.below(directories.size()))];
}

void Swarm::act_as_administrator() {
  const std::string path = some_directory();
  if (path.empty()) return;
  sim::SimFileSystem& files = destination_->files;
  const std::string moved = fmt::format("{}/{}", archive, acts_++);
  const bool removes = path != root && random_.chance(0.4);
  if (!(removes ? files.remove_all(path) : files.move(path, moved))) return;
  acted_at_call_ = files.calls();
  ++faults_;
  if (path == staging) moved_staging_.insert(moved);
  // A root that is not there would only be told of; others may come back later, be made anew at once, or be gone.
  if (path == root || random_.chance(0.4)) {
    files.make_directory(path);
  } else if (!removes && path != staging && random_.chance(0.5)) {
    world_.at(after(world_.now(), random_.exponential(options_.faults_within / 8)), [this, moved, path] {
      if (destination_->files.down() || over_ || acts_ > options_.administrator_acts) return;
      if (destination_->files.move(moved, path)) acted_at_call_ = destination_->files.calls();
    });
  }
}

// The staging of a root that was moved is its sessions' until they end; and one job may be surprised in its middle.
bool Swarm::may_be_elsewhere(const std::string& path) const {
  if (options_.administrator_acts == 0 || !path.starts_with(archive + "/")) return false;
  if (path.find("/.ccixfer") != std::string::npos || world_.events() == acted_in_event_) return true;
  return std::any_of(moved_staging_.begin(), moved_staging_.end(),
                     [&path](const std::string& moved) { return path.starts_with(moved + "/"); });
}

}  // namespace ccixfer::testing
