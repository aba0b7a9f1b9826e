// The part of SimFileSystem that tests use: setting up, looking, breaking.
#include <cerrno>

#include "core/base/check.h"
#include "transports/sim/sim_file_system.h"
#include "transports/sim/sim_file_system_impl.h"

namespace ccixfer::sim {
namespace {

std::string content_of(const Inode& inode) {
  if (inode.type == ports::FileType::symlink) return inode.target;
  std::string content(static_cast<size_t>(inode.now.size_bytes), '\0');
  (void)inode.read(std::as_writable_bytes(std::span(content)), 0);
  return content;
}

}  // namespace

void SimFileSystem::set_hook(std::function<int(std::string_view, std::string_view)> hook) { impl_->hook = std::move(hook); }
void SimFileSystem::set_watch(std::function<void(std::string_view, const std::string&)> watch) { impl_->watch = std::move(watch); }

void SimFileSystem::set_writeback_error_chance(double chance) { impl_->options.writeback_error_chance = chance; }

void SimFileSystem::set_decay_chance(double chance) { impl_->options.decay_chance = chance; }

bool SimFileSystem::decay(const std::string& path, uint64_t offset_bytes) {
  const Place place = impl_->walk(impl_->root, path, false, false);
  if (place.error != 0 || place.node == nullptr) return false;
  const auto index = static_cast<size_t>(offset_bytes / page_bytes);
  std::vector<PagePtr>& pages = place.node->durable_pages;
  if (index >= pages.size() || pages[index] == nullptr) return false;
  pages[index] = std::make_shared<Page>(*pages[index]);
  (*pages[index])[static_cast<size_t>(offset_bytes % page_bytes)] ^= std::byte{4};
  return true;
}

void SimFileSystem::set_capacity(uint64_t bytes, uint64_t inodes) {
  impl_->options.capacity_bytes = bytes;
  impl_->options.capacity_inodes = inodes;
}

void SimFileSystem::freeze_after(uint64_t calls, std::function<void()> then) {
  impl_->freeze_at_call = impl_->calls + calls;
  impl_->on_freeze = std::move(then);
}

void SimFileSystem::freeze() { impl_->is_down = true; }
void SimFileSystem::crash() { impl_->on_crash(); }
void SimFileSystem::mount() { impl_->is_down = false; }

void SimFileSystem::sync_all() {
  for (size_t i = 0; i < impl_->volumes.size(); ++i) impl_->sync_volume(i);
}

bool SimFileSystem::down() const { return impl_->is_down; }
uint64_t SimFileSystem::calls() const { return impl_->calls; }
size_t SimFileSystem::open_descriptors() const { return impl_->open_files.size(); }
uint64_t SimFileSystem::used_bytes() const { return impl_->used_pages * page_bytes; }

void SimFileSystem::make_directory(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const Place place = impl_->walk(impl_->root, std::string_view(path).substr(0, end), false, true);
    CHECK(place.error == 0);
    if (place.node == nullptr) {
      const InodePtr made = impl_->create(*place.parent, ports::FileType::directory, 0755);
      CHECK(made != nullptr);
      impl_->link(place.parent, place.last, made);
      impl_->volume_of(*place.parent).journal.add({{place.parent, place.last, made}});
      place.parent->sync();
      impl_->volume_of(*place.parent).journal.sync_directory(*place.parent, false);
    }
    if (end == std::string::npos) return;
  }
}

void SimFileSystem::mount_at(const std::string& path) {
  const size_t slash = path.rfind('/');
  CHECK(slash != std::string::npos);
  if (slash != 0) make_directory(path.substr(0, slash));
  const Place place = impl_->walk(impl_->root, path, false, true);
  CHECK(place.error == 0 && place.node == nullptr);
  const InodePtr made = impl_->create(*place.parent, ports::FileType::directory, 0755);
  CHECK(made != nullptr);
  made->volume = impl_->volumes.size();
  impl_->volumes.push_back({made, {}, {}, {}});
  impl_->link(place.parent, place.last, made);
  place.parent->sync();
  place.parent->durable_entries[place.last] = made;
}

bool SimFileSystem::move(const std::string& from, const std::string& to) {
  const Place source = impl_->walk(impl_->root, from, false, false);
  const Place target = impl_->walk(impl_->root, to, false, false);
  if (source.error != 0 || source.node == nullptr || target.error != 0 || target.node != nullptr) return false;
  if (source.node->volume != target.parent->volume || source.node->volume != source.parent->volume) return false;
  for (InodePtr at = target.parent; at != impl_->root; at = at->parent.lock()) {
    if (at == source.node) return false;  // into itself
  }
  source.parent->entries.erase(source.last);
  impl_->touch(*source.parent, true);
  impl_->link(target.parent, target.last, source.node);
  impl_->volume_of(*source.node).journal.add({{source.parent, source.last, nullptr}, {target.parent, target.last, source.node}});
  impl_->world.trace("moved by hand", source.node->number);
  return true;
}

bool SimFileSystem::remove_all(const std::string& path) {
  const Place place = impl_->walk(impl_->root, path, false, false);
  if (place.error != 0 || place.node == nullptr || place.node == impl_->root) return false;
  if (place.node->volume != place.parent->volume) return false;  // another file system is mounted there
  const auto remove = [this](auto&& self, const InodePtr& directory, const std::string& name, const InodePtr& node) -> void {
    const Entries below = node->entries;
    for (const auto& [child, inode] : below) self(self, node, child, inode);
    directory->entries.erase(name);
    impl_->touch(*directory, true);
    impl_->volume_of(*directory).journal.add({{directory, name, nullptr}});
    node->links = 0;
    impl_->release(*node);
  };
  remove(remove, place.parent, place.last, place.node);
  impl_->world.trace("removed by hand", place.node->number);
  return true;
}

void SimFileSystem::put(const std::string& path, std::string_view content, uint32_t mode, std::optional<ports::FileTime> mtime) {
  if (const size_t slash = path.rfind('/'); slash != 0 && slash != std::string::npos) make_directory(path.substr(0, slash));
  Place place = impl_->walk(impl_->root, path, false, true);
  CHECK(place.error == 0);
  if (place.node == nullptr) {
    place.node = impl_->create(*place.parent, ports::FileType::regular, mode);
    CHECK(place.node != nullptr);
    impl_->link(place.parent, place.last, place.node);
    impl_->volume_of(*place.parent).journal.add({{place.parent, place.last, place.node}});
  }
  place.node->truncate(0);
  place.node->write(as_bytes(content), 0);
  impl_->charge(*place.node);
  impl_->touch(*place.node, true);
  place.node->now.mode = mode;
  if (mtime) place.node->now.mtime = impl_->kept_time(*mtime);
  place.node->sync();
  place.parent->sync();
  impl_->volume_of(*place.parent).journal.sync_directory(*place.parent, false);
}

std::optional<std::string> SimFileSystem::get(const std::string& path) const {
  const Place place = impl_->walk(impl_->root, path, false, false);
  if (place.error != 0 || place.node == nullptr || place.node->type == ports::FileType::directory) return std::nullopt;
  return content_of(*place.node);
}

Tree SimFileSystem::tree(const std::string& path) const {
  Tree out;
  const Place place = impl_->walk(impl_->root, path, false, true);
  if (place.error != 0 || place.node == nullptr) return out;
  const auto list = [&](auto&& self, const Inode& directory, const std::string& prefix) -> void {
    for (const auto& [name, child] : directory.entries) {
      TreeEntry& entry = out[prefix + name];
      impl_->stat(*child, entry.stat);
      if (child->type == ports::FileType::directory) {
        self(self, *child, prefix + name + "/");
      } else {
        entry.content = content_of(*child);
      }
    }
  };
  list(list, *place.node, "");
  return out;
}

}  // namespace ccixfer::sim
