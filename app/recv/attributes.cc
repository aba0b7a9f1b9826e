#include "app/recv/attributes.h"

#include <cerrno>

namespace ccixfer::recv {
namespace {

constexpr uint32_t mode_setuid = 04000, mode_setgid = 02000;
constexpr uint32_t keep_uid = ~uint32_t{0};

bool is_refused(int error) {
  return error == -EPERM || error == -EINVAL || error == -EACCES || error == -ENOTSUP || error == -ENOSYS;
}

}  // namespace

bool Policy::has(session::Option option) const { return (options & option) != 0; }

Policy Policy::of_directories() const {
  Policy policy = *this;
  if (!directory_times) policy.options &= ~uint32_t{session::option_times};
  return policy;
}

uint32_t wanted_mode(const Policy& policy, const Current& current, const Attributes& wanted) {
  // An inherited setgid bit of a directory stays.
  if (!policy.has(session::option_permissions)) return (current.mode & ~0777u) | policy.created_mode(wanted);
  uint32_t mode = wanted.mode & 07777u;
  if (!policy.setid) mode &= ~(mode_setuid | mode_setgid);
  if (current.uid != wanted.uid) mode &= ~mode_setuid;
  if (current.gid != wanted.gid) mode &= ~mode_setgid;
  return mode;
}

int apply_attributes(ports::FileSystem& files, int fd, const Policy& policy, const Current& current, const Attributes& wanted) {
  Current now = current;
  bool is_mode_known = true;
  if (policy.has(session::option_owner) && (now.uid != wanted.uid || now.gid != wanted.gid)) {
    const bool may_give = policy.uid == 0;
    if (may_give || now.gid != wanted.gid) {
      const int error = files.set_owner(fd, may_give ? wanted.uid : keep_uid, wanted.gid);
      if (error < 0 && !is_refused(error)) return error;
      if (error >= 0) {
        if (may_give) now.uid = wanted.uid;
        now.gid = wanted.gid;
        is_mode_known = (now.mode & (mode_setuid | mode_setgid)) == 0;  // chown(2) clears them of files, and not of directories
        now.mode &= ~(mode_setuid | mode_setgid);
      }
    }
  }
  bool refused = false;
  if (const uint32_t mode = wanted_mode(policy, now, wanted);
      mode != now.mode || (!is_mode_known && policy.has(session::option_permissions))) {
    const int error = files.set_mode(fd, mode);
    if (error < 0 && !is_refused(error)) return error;
    refused = error < 0 && policy.has(session::option_permissions);
  }
  if (policy.has(session::option_times)) {
    const int error = files.set_mtime(fd, wanted.mtime);
    if (error < 0 && !is_refused(error)) return error;
    refused = refused || error < 0;
  }
  return refused ? attributes_refused : 0;
}

}  // namespace ccixfer::recv
