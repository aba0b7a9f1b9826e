#include "transports/sim/sim_file_system_impl.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ccixfer::sim {
namespace {

constexpr size_t name_bytes_max = 255;
constexpr size_t path_bytes_max = 4095;

Place failed(int error) {
  Place place;
  place.error = error;
  return place;
}

int name_error(std::string_view name) {
  if (name.size() > path_bytes_max) return -ENAMETOOLONG;
  if (name.find('\0') != std::string_view::npos) return -EINVAL;
  return name.empty() ? -ENOENT : 0;
}

}  // namespace

std::string path_of(const InodePtr& directory, std::string_view name) {
  std::string path(name);
  InodePtr at = directory;
  while (at != nullptr) {
    const InodePtr parent = at->parent.lock();
    if (parent == nullptr || parent == at) break;
    path = at->name + "/" + path;
    at = parent;
  }
  return "/" + path;
}

SimFileSystem::Impl::Impl(World& owner, NodeId node_id, const FileSystemOptions& fs_options)
    : world(owner), node(node_id), options(fs_options), random(owner.random().next()), root(std::make_shared<Inode>()) {
  root->number = root->generation = 1;
  root->type = ports::FileType::directory;
  root->parent = root;
  root->now.mode = 0755;
  root->now.mtime = root->now.ctime = kept_time(ports::FileTime::of_ns(world.wall_ns()));
  root->durable = root->now;
  volumes.push_back({root, {}, {}, {}});
  world.add_part(node, this);
}

int SimFileSystem::Impl::enter(std::string_view call, std::string_view name) {
  if (is_down) return -EIO;
  if (calls >= freeze_at_call) {
    is_down = true;
    freeze_at_call = ~uint64_t{0};
    world.trace("freeze", node, calls);
    if (on_freeze) std::exchange(on_freeze, nullptr)();
    return -EIO;
  }
  ++calls;
  if (options.writeback_error_chance > 0) write_back_in_background();
  if (!hook) return 0;
  return hook(call, name);
}

OpenFile* SimFileSystem::Impl::find(int fd) {
  const auto found = open_files.find(fd);
  return found == open_files.end() ? nullptr : &found->second;
}

int SimFileSystem::Impl::enter_fd(std::string_view call, int fd, OpenFile*& file) {
  file = find(fd);
  if (const int error = enter(call, file != nullptr ? std::string_view(file->name) : std::string_view()); error != 0) return error;
  return file == nullptr ? -EBADF : 0;
}

void SimFileSystem::Impl::changed(std::string_view call, const InodePtr& directory, std::string_view name) {
  world.trace(call, node, calls);
  if (watch) watch(call, path_of(directory, name));
}

Place SimFileSystem::Impl::walk(InodePtr start, std::string_view path, bool beneath, bool follow_last, int links_left) {
  if (const int error = name_error(path); error != 0) return failed(error);
  if (path.front() == '/') {
    if (beneath) return failed(-EXDEV);
    start = root;
  }
  Place place;
  place.parent = place.node = std::move(start);
  place.last = ".";
  int depth = 0;
  size_t at = 0;
  while (true) {
    at = path.find_first_not_of('/', at);
    if (at == std::string_view::npos) return place;
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view component = path.substr(at, end - at);
    const bool last = path.find_first_not_of('/', end) == std::string_view::npos;
    if (place.node == nullptr) return failed(-ENOENT);
    if (place.node->type != ports::FileType::directory) return failed(-ENOTDIR);
    if (component.size() > name_bytes_max) return failed(-ENAMETOOLONG);
    at = end;
    if (component == ".") continue;
    if (component == "..") {
      if (beneath && depth-- == 0) return failed(-EXDEV);
      place.node = place.node->parent.lock();
      place.last = "..";
      continue;
    }
    ++depth;
    place.parent = place.node;
    place.last = std::string(component);
    const auto found = place.parent->entries.find(component);
    place.node = found == place.parent->entries.end() ? nullptr : found->second;
    if (place.node == nullptr || place.node->type != ports::FileType::symlink || (last && !follow_last)) continue;
    if ((beneath && !last) || links_left == 0) return failed(-ELOOP);
    const std::string rest = place.node->target + std::string(path.substr(end));
    return walk(place.parent, rest, false, follow_last, links_left - 1);
  }
}

Place SimFileSystem::Impl::locate(int directory, std::string_view name, bool follow) {
  if (directory == no_directory) return walk(root, name, false, follow);
  const OpenFile* file = find(directory);
  if (file == nullptr) return failed(-EBADF);
  return walk(file->inode, name, true, follow);
}

Place SimFileSystem::Impl::locate_at(int directory, std::string_view name, bool follow) {
  if (directory == no_directory) return walk(root, name, false, follow);
  const OpenFile* file = find(directory);
  if (file == nullptr) return failed(-EBADF);
  if (const int error = name_error(name); error != 0 && error != -ENOENT) return failed(error);
  if (name.find('/') != std::string_view::npos || name == "..") return failed(-EXDEV);
  return walk(file->inode, name, true, follow);
}

InodePtr SimFileSystem::Impl::create(const Inode& parent, ports::FileType type, uint32_t permissions) {
  if (used_inodes >= options.capacity_inodes) return nullptr;
  ++used_inodes;
  auto inode = std::make_shared<Inode>();
  inode->number = free_numbers.empty() ? next_inode++ : free_numbers.back();
  if (!free_numbers.empty()) free_numbers.pop_back();
  inode->generation = next_generation++;
  inode->volume = parent.volume;
  inode->type = type;
  inode->now.mode = permissions & 07777u;
  inode->now.mtime = inode->now.ctime = kept_time(ports::FileTime::of_ns(world.wall_ns()));
  inode->durable = inode->now;
  return inode;
}

void SimFileSystem::Impl::link(const InodePtr& directory, const std::string& name, const InodePtr& child) {
  directory->entries[name] = child;
  if (child->type == ports::FileType::directory) {
    child->parent = directory;
    child->name = name;
  }
  touch(*directory, true);
}

// What this file system makes of a time.
ports::FileTime SimFileSystem::Impl::kept_time(ports::FileTime time) const {
  if (time.seconds <= options.time_min_s) return {options.time_min_s, 0};
  if (time.seconds >= options.time_max_s) return {options.time_max_s, 0};
  time.nanoseconds -= time.nanoseconds % options.time_grain_ns;
  return time;
}

void SimFileSystem::Impl::touch(Inode& inode, bool data) {
  inode.now.ctime = kept_time(ports::FileTime::of_ns(world.wall_ns()));
  if (data) inode.now.mtime = inode.now.ctime;
}

void SimFileSystem::Impl::charge(Inode& inode) {
  if (options.keeps_no_zeros) return;
  const size_t pages = inode.allocated_pages();
  used_pages += pages - inode.charged_pages;  // wraps as it must when it shrinks
  inode.charged_pages = pages;
}

void SimFileSystem::Impl::release(Inode& inode) {
  if (inode.links > 0 || inode.opens > 0) return;
  used_pages -= inode.charged_pages;
  inode.charged_pages = 0;
  --used_inodes;
  free_numbers.push_back(inode.number);
}

void SimFileSystem::Impl::note_written(const InodePtr& inode) {
  if (inode->listed) return;
  inode->listed = true;
  volume_of(*inode).written.push_back(inode);
}

void SimFileSystem::Impl::lose(Inode& inode) {
  inode.lose_dirty();
  if (random.chance(0.5)) inode.evict();
  charge(inode);
  inode.errors.note();
  volume_of(inode).errors.note();
  world.trace("lost", node, inode.number);
}

// At least one of those that have anything to lose.
void SimFileSystem::Impl::fail_writeback(Volume& volume) {
  std::vector<InodePtr> dirty;
  for (const std::weak_ptr<Inode>& written : volume.written) {
    if (const InodePtr inode = written.lock(); inode != nullptr) {
      inode->listed = inode->is_dirty();
      if (inode->listed) dirty.push_back(inode);
    }
  }
  volume.written.assign(dirty.begin(), dirty.end());
  if (dirty.empty()) return volume.errors.note();
  const auto certain = static_cast<size_t>(random.below(dirty.size()));
  for (size_t i = 0; i < dirty.size(); ++i) {
    if (i == certain || random.chance(0.3)) lose(*dirty[i]);
  }
}

void SimFileSystem::Impl::write_back_in_background() {
  for (Volume& volume : volumes) {
    if (!volume.written.empty() && random.chance(options.writeback_error_chance)) fail_writeback(volume);
  }
}

void SimFileSystem::Impl::recover(const InodePtr& directory, std::set<uint64_t>& numbers) {
  directory->entries = directory->durable_entries;
  for (const auto& [name, child] : directory->entries) {
    ++used_inodes;
    if (!numbers.insert(child->number).second) numbers.insert(child->number = next_inode++);
    child->links = 1;
    child->opens = 0;
    child->charged_pages = 0;
    child->errors.forget();
    child->listed = false;
    child->crash(random);
    charge(*child);
    if (child->type != ports::FileType::directory) continue;
    child->parent = directory;
    child->name = name;
    recover(child, numbers);
  }
}

void SimFileSystem::Impl::bring_to_disk(Inode& inode) {
  if (options.decay_chance > 0) return inode.sync(random, options.decay_chance);
  inode.sync();
}

void SimFileSystem::Impl::sync_below(const InodePtr& directory) {
  bring_to_disk(*directory);
  for (const auto& [name, child] : directory->entries) {
    if (child->volume != directory->volume) continue;
    if (child->type == ports::FileType::directory) {
      sync_below(child);
    } else {
      bring_to_disk(*child);
    }
  }
}

void SimFileSystem::Impl::sync_volume(size_t index) {
  Volume& volume = volumes[index];
  volume.journal.sync_all();
  sync_below(volume.root);
  for (auto& [fd, file] : open_files) {
    if (file.inode->volume == index) bring_to_disk(*file.inode);
  }
  for (const std::weak_ptr<Inode>& written : volume.written) {
    if (const InodePtr inode = written.lock()) inode->listed = false;
  }
  volume.written.clear();
  world.trace("syncfs", node, calls);
}

void SimFileSystem::Impl::on_crash() {
  is_down = true;
  freeze_at_call = ~uint64_t{0};
  on_freeze = nullptr;
  for (Volume& volume : volumes) {
    volume.journal.crash(random);
    volume.errors.forget();
    volume.written.clear();
  }
  for (auto& [fd, file] : open_files) file.inode->opens = 0;
  open_files.clear();
  used_inodes = 1;
  used_pages = 0;
  free_numbers.clear();
  root->crash(random);
  std::set<uint64_t> numbers{root->number};
  recover(root, numbers);
}

void SimFileSystem::Impl::stat(const Inode& inode, ports::FileStat& out) const {
  out.type = inode.type;
  out.mode = inode.now.mode;
  out.uid = inode.now.uid;
  out.gid = inode.now.gid;
  out.device = uint64_t{node} + 1 + (uint64_t{inode.volume} << 32);
  out.inode = inode.number;
  out.links = inode.links;
  out.size_bytes = inode.type == ports::FileType::symlink ? inode.target.size() : inode.now.size_bytes;
  out.mtime = inode.now.mtime;
  out.ctime = inode.now.ctime;
}

}  // namespace ccixfer::sim
