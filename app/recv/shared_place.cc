#include "app/recv/shared_place.h"

#include <cerrno>

#include "app/recv/names.h"
#include "app/recv/pieces.h"
#include "core/base/check.h"

namespace ccixfer::recv {

using Lock = ports::FileSystem::Lock;

std::string share_name(std::string_view staged) { return std::string(staged) + std::string(share_suffix); }

bool is_share_name(std::string_view name) {
  return name.ends_with(share_suffix) && name.substr(0, name.size() - share_suffix.size()).ends_with(part_suffix);
}

int make_share(ports::FileSystem& files, int staging, std::string_view staged, const session::PlaceToken& token) {
  const ports::OpenFlags flags{.mode = ports::OpenMode::write, .create = true, .truncate = true};
  const int fd = files.open(staging, share_name(staged), flags, 0600);
  if (fd < 0) return fd;
  // Durable: after a power cut, too, the file is known to be one that others may still write to.
  int error = write_all(files, fd, std::as_bytes(std::span(token)), 0);
  if (error >= 0) error = files.fsync(fd);
  const int closed = files.close(fd);
  if (error >= 0) error = std::min(closed, 0);
  if (error >= 0) error = files.fsync(staging);
  return std::min(error, 0);
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
  session::PlaceToken token{};
  const int64_t got = files_.pread(fd, std::as_writable_bytes(std::span(token)), 0);
  files_.close(fd);
  if (got < 0) return static_cast<int>(got);
  return got == static_cast<int64_t>(token.size()) && token == place_.token ? 0 : -EPERM;
}

int JoinedShare::begin_write() {
  const std::lock_guard lock(mutex_);
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

void JoinedShare::end_writes(size_t count) {
  const std::lock_guard lock(mutex_);
  CHECK(writes_ >= count);
  writes_ -= count;
  if (writes_ == 0 && count > 0) static_cast<void>(files_.lock(fd_, Lock::none));
}

}  // namespace ccixfer::recv
