#include "core/host/accounts.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>

#include "core/host/descriptor.h"

namespace ccixfer::host {
namespace {

// What getpwnam_r(3) lists as ways to say that there is none.
bool says_none(int error) { return error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM; }

int none_of(bool is_group) {
  // A name service that may not read the file takes it for an empty one.
  const Descriptor file(::open(is_group ? "/etc/group" : "/etc/passwd", O_RDONLY | O_CLOEXEC));
  return file.get() < 0 && errno == EACCES ? -EACCES : -ENOENT;
}

struct Found {
  passwd user{};
  group many{};
  passwd* is_user = nullptr;
  group* is_group = nullptr;
  [[nodiscard]] bool any() const { return is_user != nullptr || is_group != nullptr; }
};

}  // namespace

int name_of_account(bool is_group, uint32_t id, std::string& name) {
  Found found;
  const int error = look_up_with_room([&](std::vector<char>& room) {
    const int result = is_group ? ::getgrgid_r(id, &found.many, room.data(), room.size(), &found.is_group)
                                : ::getpwuid_r(id, &found.user, room.data(), room.size(), &found.is_user);
    if (result == 0 && found.any()) name = is_group ? found.many.gr_name : found.user.pw_name;
    return result;
  });
  if (found.any()) return 0;
  return says_none(error) ? none_of(is_group) : -error;
}

int id_of_account(bool is_group, const std::string& name, uint32_t& id) {
  Found found;
  const int error = look_up_with_room([&](std::vector<char>& room) {
    return is_group ? ::getgrnam_r(name.c_str(), &found.many, room.data(), room.size(), &found.is_group)
                    : ::getpwnam_r(name.c_str(), &found.user, room.data(), room.size(), &found.is_user);
  });
  if (found.any()) {
    id = is_group ? found.many.gr_gid : found.user.pw_uid;
    return 0;
  }
  return says_none(error) ? none_of(is_group) : -error;
}

}  // namespace ccixfer::host
