// The disks of a swarm: what is broken about them, and mending it.
#include <cerrno>

#include "tests/sim/swarm.h"

namespace ccixfer::testing {

// Names that no directory has, too: else what is below would be denied with it.
void Swarm::deny_files() {
  const auto last_part = [](std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); };
  std::set<std::string> directories, names;
  for (const auto& [path, entry] : wanted_) {
    if (entry.stat.type == ports::FileType::directory) directories.insert(last_part(path));
  }
  for (const auto& [path, entry] : wanted_) {
    const std::string name = last_part(path);
    if (entry.stat.type == ports::FileType::regular && !directories.contains(name) && random_.chance(options_.denied_chance))
      names.insert(name);
  }
  for (const auto& [path, entry] : wanted_) {
    if (names.contains(last_part(path))) denied_.insert(path);
  }
  disks_broken_ = true;
  source_->files.set_hook([this, names, last_part](std::string_view call, std::string_view name) {
    if (call != "open" || !names.contains(last_part(name))) return 0;
    ++faults_;
    return -EACCES;
  });
}

// Where some directory of the source will come; without one, the file system stays empty.
void Swarm::mount_second_disk() {
  std::vector<std::string> directories;
  for (const auto& [path, entry] : wanted_) {
    if (entry.stat.type == ports::FileType::directory) directories.push_back(path);
  }
  if (directories.empty()) return;
  destination_->files.mount_at(destination_root + "/" + directories[static_cast<size_t>(random_.below(directories.size()))]);
}

int Swarm::sync_error(std::string_view call, std::string_view name) {
  if (name.starts_with("ledger") && !options_.ledger_syncs_fail) return 0;
  const bool fails = (call == "fsync" || call == "syncfs") ? random_.chance(options_.sync_error_chance)
                     : call == "close"                     ? random_.chance(options_.close_error_chance)
                                                           : false;
  if (!fails || sync_errors_ == options_.sync_errors_max) return 0;
  ++faults_;
  ++sync_errors_;
  return call == "close" && random_.chance(0.5) ? -EDQUOT : -EIO;
}

void Swarm::break_disks() {
  disks_broken_ = options_.disk_error_chance > 0 || options_.capacity_bytes > 0 || options_.read_error_chance > 0 ||
                  options_.refused_chance > 0 || options_.sync_error_chance > 0 || options_.close_error_chance > 0 ||
                  options_.disk.writeback_error_chance > 0 || options_.disk.decay_chance > 0;
  if (options_.sync_error_chance > 0 || options_.close_error_chance > 0) {
    destination_->files.set_hook([this](std::string_view call, std::string_view name) { return sync_error(call, name); });
  }
  if (options_.capacity_bytes > 0) destination_->files.set_capacity(options_.capacity_bytes, 1u << 20);
  const auto fail_with = [this](double chance) {
    return [this, chance](std::string_view call, std::string_view) {
      // A failed stat would be no fault of a disk that is worth the name.
      if (call == "fstat" || call == "stat_at" || !random_.chance(chance)) return 0;
      ++faults_;
      return call == "pread" || call == "fsync" || random_.chance(0.5) ? -EIO : -ENOSPC;
    };
  };
  if (options_.disk_error_chance > 0) destination_->files.set_hook(fail_with(options_.disk_error_chance));
  if (options_.refused_chance > 0) {
    destination_->files.set_hook([this](std::string_view call, std::string_view) {
      const bool may = call == "open" || call == "mkdir_at" || call == "rename_at" || call == "symlink_at" || call == "set_mode" ||
                       call == "set_mtime" || call == "unlink_at";
      if (!may || !random_.chance(options_.refused_chance)) return 0;
      ++faults_;
      return random_.chance(0.5) ? -EACCES : -EPERM;
    });
  }
  if (options_.read_error_chance > 0) source_->files.set_hook(fail_with(options_.read_error_chance));
}

void Swarm::mend() {
  act_at_call_ = ~uint64_t{0};
  acted_at_call_ = 0;
  acts_ = options_.administrator_acts + 1;
  disks_broken_ = false;
  denied_.clear();
  source_->files.set_hook({});
  destination_->files.set_hook({});
  destination_->files.set_writeback_error_chance(0);
  destination_->files.set_decay_chance(0);
  destination_->files.set_capacity(uint64_t{1} << 40, uint64_t{1} << 30);
}

}  // namespace ccixfer::testing
