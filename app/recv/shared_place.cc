#include "app/recv/shared_place.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <tuple>

#include "app/recv/names.h"
#include "app/recv/pieces.h"
#include "core/base/check.h"

namespace ccixfer::recv {

using Lock = ports::FileSystem::Lock;

std::string share_name(std::string_view staged) { return std::string(staged) + std::string(share_suffix); }

bool is_share_name(std::string_view name) {
  return name.ends_with(share_suffix) && name.substr(0, name.size() - share_suffix.size()).ends_with(part_suffix);
}

namespace {

// What NAME.share has in it.
using ShareRecord = std::array<std::byte, std::tuple_size_v<session::PlaceToken> + sizeof(uint64_t)>;

ShareRecord record_of(const session::SharedPlace& place) {
  ShareRecord record{};
  std::memcpy(record.data(), place.token.data(), place.token.size());
  for (size_t i = 0; i < sizeof(uint64_t); ++i) {
    record[place.token.size() + i] = static_cast<std::byte>(place.size_bytes >> (8 * i));
  }
  return record;
}

}  // namespace

int make_share(ports::FileSystem& files, int staging, const session::SharedPlace& place) {
  const std::string name = share_name(place.name);
  files.unlink_at(staging, name, false);  // whoever has an older one open sees that it has ended
  const ports::OpenFlags flags{.mode = ports::OpenMode::read_write, .create = true, .truncate = true};
  const int fd = files.open(staging, name, flags, 0600);
  if (fd < 0) return fd;
  int error = files.lock(fd, Lock::alone);
  // Durable: after a power cut, too, the file is known to be one that others may still write to.
  if (error >= 0) error = write_all(files, fd, record_of(place), 0);
  if (error >= 0) error = files.fsync(fd);
  if (error >= 0) error = files.fsync(staging);
  if (error >= 0) return fd;
  files.close(fd);
  files.unlink_at(staging, name, false);
  return error;
}

int end_share(ports::FileSystem& files, int staging, std::string_view staged, int fd) {
  const std::string share = share_name(staged);
  ports::FileStat stat;
  if (const int error = files.stat_at(staging, share, stat, false); error < 0) return error == -ENOENT ? 0 : error;
  // Without locks nobody has joined.
  if (const int error = files.lock(fd, Lock::alone); error < 0 && error != -ENOTSUP) return error;
  int error = files.unlink_at(staging, share, false);
  if (error >= 0) error = files.fsync(staging);  // before the file has its final name: it must not come back beside that
  return std::min(error, 0);
}

void remove_staged(const OpenedRoot& root, std::string_view staged) {
  root.files.unlink_at(root.staging, share_name(staged), false);
  root.files.unlink_at(root.staging, staged, false);
}

int JoinedShare::join(ports::FileSystem& files, int staging, const session::SharedPlace& place, std::shared_ptr<JoinedShare>& out) {
  const int fd = files.open(staging, place.name, {.mode = ports::OpenMode::read_write}, 0);
  if (fd < 0) {
    files.close(staging);
    return fd;
  }
  const std::shared_ptr<JoinedShare> share(new JoinedShare(files, staging, fd, place));
  if (const int error = share->begin_write(); error < 0) return error;
  share->end_writes(1);
  if (const int error = share->look_for_owner(); error < 0) return error;
  out = share;
  return 0;
}

JoinedShare::~JoinedShare() {
  files_.close(fd_);
  files_.close(staging_);
}

int JoinedShare::look() const {
  const int fd = files_.open(staging_, share_name(place_.name), {}, 0);
  if (fd < 0) return fd == -ENOENT ? -EPERM : fd;
  ShareRecord found{};
  const int64_t got = files_.pread(fd, found, 0);
  files_.close(fd);
  if (got < 0) return static_cast<int>(got);
  return got == static_cast<int64_t>(found.size()) && found == record_of(place_) ? 0 : -EPERM;
}

// The owner has a lock on it: if one can be had here too, locks of this file system are each host's own.
int JoinedShare::look_for_owner() const {
  const int fd = files_.open(staging_, share_name(place_.name), {.mode = ports::OpenMode::read_write}, 0);
  if (fd < 0) return fd;
  const int error = files_.lock(fd, Lock::shared);
  files_.close(fd);
  return error == -EAGAIN ? 0 : error < 0 ? error : -ENOTSUP;
}

int JoinedShare::begin_write() {
  const std::lock_guard lock(mutex_);
  if (is_retired_) return -EPERM;
  if (writes_ == 0) {
    if (const int error = files_.lock(fd_, Lock::shared); error < 0) return error;
    if (const int error = look(); error < 0) {
      static_cast<void>(files_.lock(fd_, Lock::none));
      return error;
    }
  }
  ++writes_;
  return 0;
}

void JoinedShare::retire() {
  const std::lock_guard lock(mutex_);
  is_retired_ = true;
}

void JoinedShare::end_writes(size_t count) {
  const std::lock_guard lock(mutex_);
  CHECK(writes_ >= count);
  writes_ -= count;
  if (writes_ == 0 && count > 0) static_cast<void>(files_.lock(fd_, Lock::none));
}

}  // namespace ccixfer::recv
