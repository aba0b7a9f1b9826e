// The users and groups of this host, by name and by number, from wherever its name service takes them (nsswitch.conf(5)). A lookup
// may ask the network, and takes as long as that.
// 0; -ENOENT: there is none; or an errno, which says nothing of whether there is one.
// A confined process of root (Landlock) keeps the files that it was given, and account tools put new ones in their place, which it
// may not read. From then on it knows the accounts of these files as they were at remember_accounts().
#pragma once
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ccixfer::host {

int name_of_account(bool is_group, uint32_t id, std::string& name);
int id_of_account(bool is_group, const std::string& name, uint32_t& id);

// Before the process confines itself, and before it has threads that look up. The files are /etc/passwd and /etc/group, or those.
void remember_accounts(const char* users = "/etc/passwd", const char* groups = "/etc/group");

// What is remembered, for a name service that says that there is none. The file is what it should have read.
int remembered_name(bool is_group, uint32_t id, std::string& name);
int remembered_id(bool is_group, const std::string& name, uint32_t& id);

inline constexpr size_t account_bytes_min = 4096, account_bytes_max = 64u << 20;

// Asks as getpwnam_r(3) wants to be asked: all that is known of an account has to fit, of a group its members too, and ERANGE asks
// for more room. `look_up` gives 0 or an errno.
template <typename LookUp>
int look_up_with_room(LookUp&& look_up) {
  std::vector<char> room(account_bytes_min);
  int error = look_up(room);
  while (error == ERANGE && room.size() < account_bytes_max) {
    room.resize(room.size() * 4);
    error = look_up(room);
  }
  return error;
}

}  // namespace ccixfer::host
