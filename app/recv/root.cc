#include "app/recv/root.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "app/recv/leftovers.h"
#include "app/recv/opened_root.h"
#include "core/base/log.h"
#include "core/base/units.h"

namespace ccixfer::recv {
namespace {

constexpr uint32_t staging_mode = 0700;

tl::unexpected<Error> cannot(std::string_view what, const std::string& path, int negative_errno) {
  const int error = -negative_errno;
  const ErrorKind kind = kind_of_file_errno(error) == ErrorKind::no_space ? ErrorKind::no_space : ErrorKind::file_io;
  return fail(kind, fmt::format("cannot {} {}: {}", what, printable(path), std::generic_category().message(error)));
}

std::string in_capitals_of(std::string name) {
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return name;
}

// What open(2) and mkdir(2) take off a mode here, and whose the new file is: one probe saves a chmod and a chown a file. Whether
// case counts in names. And what time it is by the file system's clock.
int measure(OpenedRoot& root, ports::FileTime& now) {
  const std::string name = root.temporary_name();
  const int fd = root.files.open(root.staging, name, {.mode = ports::OpenMode::write, .create = true, .exclusive = true}, 0777);
  if (fd < 0) return fd;
  ports::FileStat stat;
  const int error = root.files.fstat(fd, stat);
  if (error >= 0) root.kept_times.add(stat.device, measure_time_limits(root.files, fd));
  root.files.close(fd);
  ports::FileStat in_capitals;  // of a name that nobody has given
  root.ignores_case = root.files.stat_at(root.staging, in_capitals_of(name), in_capitals, false) >= 0;
  root.files.unlink_at(root.staging, name, false);
  if (error < 0) return error;
  now = stat.ctime;
  root.umask = 0777u & ~stat.mode;
  root.uid = stat.uid;
  root.gid = stat.gid;
  return 0;
}

int open_staging(OpenedRoot& root) {
  const int made = root.files.mkdir_at(root.fd, staging_name, staging_mode);
  if (made < 0 && made != -EEXIST) return made;
  root.staging = root.files.open(root.fd, staging_name, {.directory = true}, 0);
  if (root.staging < 0) return root.staging;
  // What stands in it belongs to no directory yet: it hands on no group and no access control list of the root's.
  ports::FileStat stat;
  std::string acl;
  if (root.files.fstat(root.staging, stat) >= 0 && stat.mode != staging_mode) root.files.set_mode(root.staging, staging_mode);
  if (root.files.get_acl(root.staging, true, acl) >= 0 && !acl.empty()) root.files.set_acl(root.staging, true, "");
  const int error = root.files.identify(root.fd, ".", root.identity);
  return error < 0 ? error : root.files.identify(root.staging, ".", root.staging_identity);
}

Result<std::shared_ptr<OpenedRoot>> open_root(ports::FileSystem& files, const std::string& path, const char* sqlite_vfs,
                                              const RootOptions& options) {
  const int fd = files.open(ports::FileSystem::no_directory, path, {.directory = true}, 0);
  if (fd < 0) return cannot("open the directory", path, fd);
  auto opened = std::make_shared<OpenedRoot>(files, fd, path);
  OpenedRoot& root = *opened;
  ports::FileStat before;
  if (const int error = files.fstat(fd, before); error < 0) return cannot("stat", path, error);
  root.device = before.device;
  if (const int error = open_staging(root); error < 0) return cannot("make the staging directory of", path, error);
  ports::SpaceInfo space;
  if (files.space(root.staging, space) >= 0 && space.read_only) return cannot("write below", path, -EROFS);
  root.one_writer_a_file = space.one_writer_a_file;
  root.syncfs_tells = space.syncfs_tells;
  root.disk = std::make_unique<DiskSync>(files, fd, before.device);
  auto ledger = Ledger::open(files, root.staging, path + "/" + std::string(staging_name), sqlite_vfs);
  if (!ledger) return tl::unexpected<Error>(ledger.error());
  root.ledger = std::move(*ledger);  // from here on no other process is below this root
  root.deliveries = Deliveries::open(files, root.staging, path + "/" + std::string(staging_name), sqlite_vfs);
  remove_unnamed(root);
  ports::FileTime now;
  if (const int error = measure(root, now); error < 0) return cannot("write below", path, error);
  remove_expired(root, now, options.staging_age_max_s);
  root.deliveries->expire(now.seconds);
  files.set_mtime(fd, before.mtime);
  // The names of the staging directory and of the ledger outlive a power cut, else what it says would be of no use.
  for (const int directory : {root.staging, fd}) {
    if (const int error = files.fsync(directory); error < 0) return cannot("sync", path, error);
  }
  if (const int error = root.check(); error < 0) return cannot("open the directory", path, error);
  return opened;
}

}  // namespace

Result<std::unique_ptr<Root>> Root::open(ports::FileSystem& files, const std::string& path, const char* sqlite_vfs,
                                         const RootOptions& options) {
  auto opened = open_root(files, path, sqlite_vfs, options);
  if (!opened) return tl::unexpected<Error>(opened.error());
  auto root = std::make_unique<Root>();
  root->opened_ = std::move(*opened);
  root->sqlite_vfs_ = sqlite_vfs;
  root->options_ = options;
  return root;
}

Result<std::unique_ptr<Root>> Root::look(ports::FileSystem& files, const std::string& path) {
  const int fd = files.open(ports::FileSystem::no_directory, path, {.directory = true}, 0);
  if (fd < 0 && fd != -ENOENT) return cannot("open the directory", path, fd);
  auto root = std::make_unique<Root>();
  root->opened_ = std::make_shared<OpenedRoot>(files, fd, path);
  root->opened_->disk = std::make_unique<DiskSync>(files, fd, 0);  // asked for nothing
  return root;
}

Result<void> Root::renew() {
  if (!opened_->stale.load()) return {};
  if (opened_->check() == 0) {  // it is back in its place
    opened_->stale.store(false);
    return {};
  }
  ports::FileIdentity there;
  const bool is_other =
      opened_->files.identify(ports::FileSystem::no_directory, opened_->path, there) >= 0 && there != opened_->identity;
  if (when_replaced_ && is_other) {
    out_of_reach_ = true;
    return fail(*when_replaced_,
                fmt::format("the directory was moved or replaced: {}: start what receives there again", printable(opened_->path)));
  }
  log(LogLevel::warning, "{}: moved, removed or replaced, or its .ccixfer was: what is there now is opened",
      printable(opened_->path));
  auto now = open_root(opened_->files, opened_->path, sqlite_vfs_, options_);
  if (!now) return tl::unexpected<Error>(now.error());
  opened_ = std::move(*now);
  return {};
}

Root::~Root() = default;

}  // namespace ccixfer::recv
