#include "core/host/accounts.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>

#include <array>
#include <charconv>
#include <fstream>
#include <map>

#include "core/host/descriptor.h"

namespace ccixfer::host {
namespace {

// What getpwnam_r(3) lists as ways to say that there is none.
bool says_none(int error) { return error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM; }

// A name service that may not read the file takes it for an empty one.
bool may_read(bool is_group) {
  const Descriptor file(::open(is_group ? "/etc/group" : "/etc/passwd", O_RDONLY | O_CLOEXEC));
  return file.get() >= 0 || errno != EACCES;
}

using Accounts = std::map<std::string, uint32_t>;
Accounts& remembered(bool is_group) {
  static std::array<Accounts, 2> accounts;
  return accounts[is_group ? 1 : 0];
}

// Each line of passwd(5) and group(5) begins with the name, a word that is not of interest, and the number.
void remember(Accounts& accounts, const char* path) {
  accounts.clear();
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t name_end = line.find(':');
    const size_t number = name_end == std::string::npos ? name_end : line.find(':', name_end + 1);
    uint32_t id = 0;
    if (number == std::string::npos) continue;
    const auto [end, problem] = std::from_chars(line.data() + number + 1, line.data() + line.size(), id);
    if (problem == std::errc() && end != line.data() + line.size() && *end == ':') accounts.emplace(line.substr(0, name_end), id);
  }
}

struct Found {
  passwd user{};
  group many{};
  passwd* is_user = nullptr;
  group* is_group = nullptr;
  [[nodiscard]] bool any() const { return is_user != nullptr || is_group != nullptr; }
};

}  // namespace

void remember_accounts(const char* users, const char* groups) {
  remember(remembered(false), users);
  remember(remembered(true), groups);
}

int remembered_name(bool is_group, uint32_t id, std::string& name) {
  for (const auto& [known, number] : remembered(is_group)) {
    if (number != id) continue;
    name = known;
    return 0;
  }
  return -ENOENT;
}

int remembered_id(bool is_group, const std::string& name, uint32_t& id) {
  const auto found = remembered(is_group).find(name);
  if (found == remembered(is_group).end()) return -ENOENT;
  id = found->second;
  return 0;
}

int name_of_account(bool is_group, uint32_t id, std::string& name) {
  Found found;
  const int error = look_up_with_room([&](std::vector<char>& room) {
    const int result = is_group ? ::getgrgid_r(id, &found.many, room.data(), room.size(), &found.is_group)
                                : ::getpwuid_r(id, &found.user, room.data(), room.size(), &found.is_user);
    if (result == 0 && found.any()) name = is_group ? found.many.gr_name : found.user.pw_name;
    return result;
  });
  if (found.any()) return 0;
  if (!may_read(is_group)) return remembered_name(is_group, id, name);
  return says_none(error) ? -ENOENT : -error;
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
  if (!may_read(is_group)) return remembered_id(is_group, name, id);
  return says_none(error) ? -ENOENT : -error;
}

}  // namespace ccixfer::host
