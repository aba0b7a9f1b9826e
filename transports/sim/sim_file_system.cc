#include "transports/sim/sim_file_system.h"

#include <algorithm>
#include <cerrno>

#include "core/base/check.h"
#include "transports/sim/sim_file_system_impl.h"

namespace ccixfer::sim {
namespace {

using ports::FileStat;
using ports::FileType;
using ports::OpenFlags;
using ports::OpenMode;

constexpr uint64_t file_bytes_max = uint64_t{1} << 44;
constexpr uint64_t names_a_part_max = 64;

}  // namespace

SimFileSystem::SimFileSystem(World& world, NodeId node, const FileSystemOptions& options)
    : impl_(std::make_unique<Impl>(world, node, options)) {}
SimFileSystem::~SimFileSystem() = default;

int SimFileSystem::open(int directory, std::string_view name, OpenFlags flags, uint32_t permissions) {
  if (const int error = impl_->enter("open", name); error != 0) return error;
  const bool writes = flags.mode != OpenMode::read;
  const bool follow = (flags.follow || (directory == no_directory && !flags.no_link)) && !(flags.create && flags.exclusive);
  Place place = impl_->locate(directory, name, follow);
  if (place.error != 0) return place.error;
  if (place.node == nullptr) {
    if (!flags.create) return -ENOENT;
    if (name.back() == '/') return -EISDIR;
    if (place.parent->links == 0) return -ENOENT;
    place.node = impl_->create(*place.parent, FileType::regular, permissions);
    if (place.node == nullptr) return -ENOSPC;
    impl_->link(place.parent, place.last, place.node);
    impl_->volume_of(*place.parent).journal.add({{place.parent, place.last, place.node}});
    impl_->changed("create", place.parent, place.last);
  } else {
    if (flags.create && flags.exclusive) return -EEXIST;
    if (place.node->type == FileType::symlink) return -ELOOP;
    if (flags.directory && place.node->type != FileType::directory) return -ENOTDIR;
    if (place.node->type == FileType::directory && (writes || flags.create)) return -EISDIR;
    if (flags.truncate && writes) {
      place.node->truncate(0);
      impl_->charge(*place.node);
      impl_->touch(*place.node, true);
      impl_->changed("truncate", place.parent, place.last);
    }
  }
  if (flags.direct && !impl_->options.has_direct) return -EINVAL;
  ++place.node->opens;
  const int fd = impl_->next_fd++;
  OpenFile& file = impl_->open_files[fd];
  file.inode = place.node;
  file.mode = flags.mode;
  file.direct = flags.direct;
  file.name = name;
  file.file_errors_seen = place.node->errors.sample();
  file.volume_errors_seen = impl_->volume_of(*place.node).errors.sample();
  return fd;
}

int SimFileSystem::close(int fd) {
  const auto found = impl_->open_files.find(fd);
  if (found == impl_->open_files.end()) return -EBADF;
  Inode& inode = *found->second.inode;
  const int error = impl_->is_down ? -EIO : impl_->hook ? impl_->hook("close", found->second.name) : 0;
  if (error != 0 && !impl_->is_down) inode.lose_dirty();
  if (--inode.opens == 0 && impl_->options.writeback_error_chance > 0 && impl_->random.chance(0.5)) {
    inode.evict();
    impl_->charge(inode);
    if (!inode.is_dirty()) inode.errors.forget();
  }
  impl_->release(inode);
  impl_->open_files.erase(found);
  return error;
}

int SimFileSystem::lock(int fd, Lock lock) {
  OpenFile* file = nullptr;
  if (const int error = impl_->enter_fd("lock", fd, file); error != 0) return error;
  if (!impl_->options.has_locks) return -ENOTSUP;
  if (lock == Lock::shared && file->mode == OpenMode::write) return -EBADF;
  if (lock == Lock::alone && file->mode == OpenMode::read) return -EBADF;
  for (const auto& [other_fd, other] : impl_->open_files) {
    if (other_fd == fd || other.inode != file->inode || other.lock == Lock::none || lock == Lock::none) continue;
    if (lock == Lock::alone || other.lock == Lock::alone) return -EAGAIN;
  }
  file->lock = lock;
  return 0;
}

int64_t SimFileSystem::pread(int fd, MutableBytes into, uint64_t offset_bytes) {
  OpenFile* file = nullptr;
  if (const int error = impl_->enter_fd("pread", fd, file); error != 0) return error;
  if (file->mode == OpenMode::write) return -EBADF;
  if (file->inode->type == FileType::directory) return -EISDIR;
  if (offset_bytes > file_bytes_max) return -EINVAL;
  if (file->direct) {
    const auto odd = reinterpret_cast<uintptr_t>(into.data()) | offset_bytes | into.size();
    if (odd % ports::direct_block_bytes != 0) return -EINVAL;
  } else if (into.size() > 1 && impl_->random.chance(impl_->options.short_io_chance)) {
    into = into.first(static_cast<size_t>(impl_->random.between(1, into.size())));
  }
  return static_cast<int64_t>(file->inode->read(into, offset_bytes, file->direct));
}

int64_t SimFileSystem::pwrite(int fd, Bytes from, uint64_t offset_bytes) {
  OpenFile* file = nullptr;
  if (const int error = impl_->enter_fd("pwrite", fd, file); error != 0) return error;
  if (file->mode == OpenMode::read) return -EBADF;
  if (offset_bytes > file_bytes_max || from.size() > file_bytes_max) return -EFBIG;
  if (from.size() > 1 && impl_->random.chance(impl_->options.short_io_chance)) {
    from = from.first(static_cast<size_t>(impl_->random.between(1, from.size())));
  }
  Inode& inode = *file->inode;
  if (from.empty()) return 0;
  // As much as there is room for, to the end of a page.
  uint64_t room = impl_->capacity_pages() - std::min(impl_->used_pages, impl_->capacity_pages());
  const uint64_t end = offset_bytes + from.size();
  for (uint64_t page = offset_bytes / page_bytes; page * page_bytes < end; ++page) {
    if (page < inode.pages.size() && inode.pages[static_cast<size_t>(page)] != nullptr) continue;
    if (room == 0) {
      const uint64_t fits = page * page_bytes > offset_bytes ? page * page_bytes - offset_bytes : 0;
      if (fits == 0) return -ENOSPC;
      from = from.first(static_cast<size_t>(fits));
      break;
    }
    --room;
  }
  inode.write(from, offset_bytes, impl_->options.keeps_no_zeros);
  impl_->note_written(file->inode);
  impl_->charge(inode);
  impl_->touch(inode, true);
  impl_->world.trace("pwrite", inode.number, offset_bytes + from.size());
  return static_cast<int64_t>(from.size());
}

int SimFileSystem::clone_range(int from, uint64_t from_bytes, int to, uint64_t to_bytes, uint64_t bytes) {
  OpenFile* source = nullptr;
  OpenFile* target = nullptr;
  if (const int error = impl_->enter_fd("clone_range", from, source); error != 0) return error;
  if (const int error = impl_->enter_fd("clone_range", to, target); error != 0) return error;
  if (source->mode == OpenMode::write || target->mode == OpenMode::read) return -EBADF;
  if (source->inode->volume != target->inode->volume) return -EXDEV;
  if (source->inode == target->inode || bytes > file_bytes_max || from_bytes > file_bytes_max) return -EINVAL;
  const bool reaches_end = from_bytes + bytes == source->inode->now.size_bytes;
  if (from_bytes % page_bytes != 0 || to_bytes % page_bytes != 0 || (bytes % page_bytes != 0 && !reaches_end)) return -EINVAL;
  if (from_bytes + bytes > source->inode->now.size_bytes) return -EINVAL;
  if (!impl_->random.chance(impl_->options.clone_chance)) return -EOPNOTSUPP;
  std::vector<std::byte> content(static_cast<size_t>(bytes));
  static_cast<void>(source->inode->read(content, from_bytes));
  const uint64_t room = impl_->capacity_pages() - std::min(impl_->used_pages, impl_->capacity_pages());
  if (content.size() / page_bytes + 1 > room) return -ENOSPC;
  Inode& inode = *target->inode;
  inode.write(content, to_bytes);
  impl_->note_written(target->inode);
  impl_->charge(inode);
  impl_->touch(inode, true);
  return 0;
}

int SimFileSystem::fstat(int fd, FileStat& out) {
  OpenFile* file = nullptr;
  if (const int error = impl_->enter_fd("fstat", fd, file); error != 0) return error;
  impl_->stat(*file->inode, out);
  return 0;
}

int SimFileSystem::stat_at(int directory, std::string_view name, FileStat& out, bool follow) {
  if (const int error = impl_->enter("stat_at", name); error != 0) return error;
  const Place place = impl_->locate_at(directory, name, follow);
  if (place.error != 0) return place.error;
  if (place.node == nullptr) return -ENOENT;
  impl_->stat(*place.node, out);
  return 0;
}

int SimFileSystem::read_directory_part(int fd, bool from_start, const std::function<void(std::string_view name)>& entry) {
  OpenFile* file = nullptr;
  if (const int error = impl_->enter_fd("read_directory", fd, file); error != 0) return error;
  if (file->inode->type != FileType::directory) return -ENOTDIR;
  if (from_start) {  // in no order that anyone may rely on
    file->listing.clear();
    file->listed = 0;
    for (const auto& [name, child] : file->inode->entries) file->listing.push_back(name);
    for (size_t i = file->listing.size(); i > 1; --i) std::swap(file->listing[i - 1], file->listing[impl_->random.below(i)]);
  }
  const size_t end = std::min(file->listing.size(), file->listed + 1 + static_cast<size_t>(impl_->random.below(names_a_part_max)));
  std::vector<std::string> part;
  for (; file->listed < end; ++file->listed) {
    std::string& name = file->listing[file->listed];
    if (file->inode->entries.contains(name)) part.push_back(std::move(name));
  }
  const bool more = end < file->listing.size() || !part.empty();
  for (const std::string& name : part) entry(name);  // may call us
  return more ? 1 : 0;
}

int SimFileSystem::mkdir_at(int directory, std::string_view name, uint32_t permissions) {
  if (const int error = impl_->enter("mkdir_at", name); error != 0) return error;
  const Place place = impl_->locate_at(directory, name, false);
  if (place.error != 0) return place.error;
  if (place.node != nullptr) return -EEXIST;
  if (place.parent->links == 0) return -ENOENT;
  const InodePtr made = impl_->create(*place.parent, FileType::directory, permissions);
  if (made == nullptr) return -ENOSPC;
  impl_->link(place.parent, place.last, made);
  impl_->volume_of(*place.parent).journal.add({{place.parent, place.last, made}});
  impl_->changed("mkdir_at", place.parent, place.last);
  return 0;
}

int SimFileSystem::symlink_at(std::string_view target, int directory, std::string_view name) {
  if (const int error = impl_->enter("symlink_at", name); error != 0) return error;
  if (target.empty()) return -ENOENT;
  if (target.find('\0') != std::string_view::npos) return -EINVAL;
  const Place place = impl_->locate_at(directory, name, false);
  if (place.error != 0) return place.error;
  if (place.node != nullptr) return -EEXIST;
  if (place.parent->links == 0) return -ENOENT;
  const InodePtr made = impl_->create(*place.parent, FileType::symlink, 0777);
  if (made == nullptr) return -ENOSPC;
  made->target = std::string(target);
  impl_->link(place.parent, place.last, made);
  impl_->volume_of(*place.parent).journal.add({{place.parent, place.last, made}});
  impl_->changed("symlink_at", place.parent, place.last);
  return 0;
}

int64_t SimFileSystem::readlink_at(int directory, std::string_view name, std::string& out) {
  out.clear();
  if (const int error = impl_->enter("readlink_at", name); error != 0) return error;
  const Place place = impl_->locate_at(directory, name, false);
  if (place.error != 0) return place.error;
  if (place.node == nullptr) return -ENOENT;
  if (place.node->type != FileType::symlink) return -EINVAL;
  out = place.node->target;
  return static_cast<int64_t>(out.size());
}

int SimFileSystem::rename_at(int from_directory, std::string_view from, int to_directory, std::string_view to) {
  if (const int error = impl_->enter("rename_at", to); error != 0) return error;
  const Place source = impl_->locate_at(from_directory, from, false);
  if (source.error != 0) return source.error;
  const Place target = impl_->locate_at(to_directory, to, false);
  if (target.error != 0) return target.error;
  if (source.node == nullptr || target.parent->links == 0) return -ENOENT;
  if (source.last == "." || source.last == ".." || target.last == "." || target.last == "..") return -EBUSY;
  if (source.node == target.node) return 0;
  if (source.node->volume != source.parent->volume) return -EBUSY;  // a mount point
  if (source.parent->volume != target.parent->volume) return -EXDEV;
  if (target.node != nullptr && target.node->volume != target.parent->volume) return -EBUSY;
  const bool moves_directory = source.node->type == FileType::directory;
  if (moves_directory) {
    for (InodePtr at = target.parent; at != impl_->root; at = at->parent.lock()) {
      if (at == source.node) return -EINVAL;
    }
  }
  if (target.node != nullptr) {
    const bool onto_directory = target.node->type == FileType::directory;
    if (moves_directory && !onto_directory) return -ENOTDIR;
    if (!moves_directory && onto_directory) return -EISDIR;
    if (onto_directory && !target.node->entries.empty()) return -ENOTEMPTY;
    target.node->links = 0;
    impl_->release(*target.node);
  }
  source.parent->entries.erase(source.last);
  impl_->touch(*source.parent, true);
  impl_->link(target.parent, target.last, source.node);
  impl_->touch(*source.node, false);
  impl_->volume_of(*source.parent).journal.add({{source.parent, source.last, nullptr}, {target.parent, target.last, source.node}});
  impl_->changed("rename_at", target.parent, target.last);
  return 0;
}

int SimFileSystem::unlink_at(int directory, std::string_view name, bool is_directory) {
  if (const int error = impl_->enter("unlink_at", name); error != 0) return error;
  const Place place = impl_->locate_at(directory, name, false);
  if (place.error != 0) return place.error;
  if (place.node == nullptr) return -ENOENT;
  if (place.last == "." || place.last == "..") return -EINVAL;
  const bool found_directory = place.node->type == FileType::directory;
  if (is_directory && !found_directory) return -ENOTDIR;
  if (!is_directory && found_directory) return -EISDIR;
  if (place.node->volume != place.parent->volume) return -EBUSY;  // a mount point
  if (found_directory && !place.node->entries.empty()) return -ENOTEMPTY;
  place.parent->entries.erase(place.last);
  impl_->touch(*place.parent, true);
  place.node->links = 0;
  impl_->release(*place.node);
  impl_->volume_of(*place.parent).journal.add({{place.parent, place.last, nullptr}});
  impl_->changed("unlink_at", place.parent, place.last);
  return 0;
}

int SimFileSystem::truncate(int fd, uint64_t size_bytes) {
  OpenFile* file = nullptr;
  if (const int error = impl_->enter_fd("truncate", fd, file); error != 0) return error;
  if (file->mode == OpenMode::read) return -EINVAL;
  if (size_bytes > file_bytes_max) return -EFBIG;
  file->inode->truncate(size_bytes);
  impl_->charge(*file->inode);
  impl_->touch(*file->inode, true);
  return 0;
}

int SimFileSystem::set_mode(int fd, uint32_t permissions) {
  OpenFile* file = nullptr;
  if (const int error = impl_->enter_fd("set_mode", fd, file); error != 0) return error;
  file->inode->now.mode = permissions & 07777u;
  impl_->touch(*file->inode, false);
  return 0;
}

int SimFileSystem::set_owner(int fd, uint32_t uid, uint32_t gid) {
  OpenFile* file = nullptr;
  if (const int error = impl_->enter_fd("set_owner", fd, file); error != 0) return error;
  if (uid != ~0u) file->inode->now.uid = uid;
  if (gid != ~0u) file->inode->now.gid = gid;
  impl_->touch(*file->inode, false);
  return 0;
}

int SimFileSystem::set_mtime(int fd, ports::FileTime mtime) {
  OpenFile* file = nullptr;
  if (const int error = impl_->enter_fd("set_mtime", fd, file); error != 0) return error;
  impl_->touch(*file->inode, false);
  file->inode->now.mtime = impl_->kept_time(mtime);
  return 0;
}

int SimFileSystem::set_link_owner_at(int directory, std::string_view name, uint32_t uid, uint32_t gid) {
  if (const int error = impl_->enter("set_link_owner_at", name); error != 0) return error;
  const Place place = impl_->locate_at(directory, name, false);
  if (place.error != 0) return place.error;
  if (place.node == nullptr) return -ENOENT;
  if (uid != ~0u) place.node->now.uid = uid;
  if (gid != ~0u) place.node->now.gid = gid;
  return 0;
}

int SimFileSystem::set_link_mtime_at(int directory, std::string_view name, ports::FileTime mtime) {
  if (const int error = impl_->enter("set_link_mtime_at", name); error != 0) return error;
  const Place place = impl_->locate_at(directory, name, false);
  if (place.error != 0) return place.error;
  if (place.node == nullptr) return -ENOENT;
  place.node->now.mtime = impl_->kept_time(mtime);
  return 0;
}

int SimFileSystem::fsync(int fd) {
  OpenFile* file = nullptr;
  const int error = impl_->enter_fd("fsync", fd, file);
  if (file == nullptr) return error != 0 ? error : -EBADF;
  Inode& inode = *file->inode;
  if (error != 0) {
    if (impl_->is_down) return error;
    impl_->lose(inode);
    static_cast<void>(inode.errors.check_and_advance(file->file_errors_seen));
    return error;
  }
  if (impl_->options.lies) return 0;
  impl_->bring_to_disk(inode);
  if (inode.type == FileType::directory) {
    impl_->volume_of(inode).journal.sync_directory(inode, impl_->options.ordered_names);
  }
  impl_->world.trace("fsync", inode.number);
  return inode.errors.check_and_advance(file->file_errors_seen) ? -EIO : 0;
}

int SimFileSystem::drop_cached(int fd, uint64_t offset_bytes, uint64_t bytes) {
  OpenFile* file = nullptr;
  if (const int error = impl_->enter_fd("drop_cached", fd, file); error != 0) return error;
  // Whole pages only, but for the one at the end of the file.
  const uint64_t end = offset_bytes + bytes;
  const uint64_t end_page = end >= file->inode->now.size_bytes ? file->inode->pages.size() : end / page_bytes;
  file->inode->evict(static_cast<size_t>((offset_bytes + page_bytes - 1) / page_bytes), static_cast<size_t>(end_page));
  impl_->charge(*file->inode);
  return 0;
}

int SimFileSystem::syncfs(int fd) {
  OpenFile* file = nullptr;
  const int error = impl_->enter_fd("syncfs", fd, file);
  if (file == nullptr) return error != 0 ? error : -EBADF;
  if (impl_->is_down) return error;
  Volume& volume = impl_->volume_of(*file->inode);
  if (error != 0) impl_->fail_writeback(volume);
  if (!impl_->options.lies && (error == 0 || !impl_->options.syncfs_tells)) impl_->sync_volume(file->inode->volume);
  if (!impl_->options.syncfs_tells) return 0;  // what is lost is lost all the same
  const bool told = volume.errors.check_and_advance(file->volume_errors_seen);
  return error != 0 ? error : told ? -EIO : 0;
}

int SimFileSystem::space(int fd, ports::SpaceInfo& out) {
  OpenFile* file = nullptr;
  if (const int error = impl_->enter_fd("space", fd, file); error != 0) return error;
  out.free_bytes = (impl_->capacity_pages() - std::min(impl_->used_pages, impl_->capacity_pages())) * page_bytes;
  out.free_inodes = impl_->options.capacity_inodes - std::min(impl_->used_inodes, impl_->options.capacity_inodes);
  out.read_only = false;
  out.syncfs_tells = impl_->options.syncfs_tells;
  return 0;
}

int SimFileSystem::identify(int directory, std::string_view name, ports::FileIdentity& out) {
  if (const int error = impl_->enter("identify", name); error != 0) return error;
  const Place place = impl_->locate_at(directory, name, directory == no_directory);
  if (place.error != 0) return place.error;
  if (place.node == nullptr) return -ENOENT;
  FileStat stat;
  impl_->stat(*place.node, stat);
  out = {stat.type, stat.device, stat.inode, place.node->generation};
  return 0;
}

}  // namespace ccixfer::sim
