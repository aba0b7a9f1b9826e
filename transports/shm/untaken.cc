#include "transports/shm/untaken.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::shm {
namespace {

// Bells count too, but they stand behind the segment.
bool was_taken(int socket) {
  int unread_bytes = 0;
  return ioctl(socket, SIOCOUTQ, &unread_bytes) == 0 && unread_bytes == 0;
}

}  // namespace

bool Untaken::counts_allow(uid_t user) const {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = 0;
  const auto of_limit = [&limit](size_t part) { return std::max<size_t>(1, static_cast<size_t>(limit.rlim_cur) / part); };
  const auto of_user = std::count_if(all_.begin(), all_.end(), [user](const One& one) { return one.user == user; });
  if (static_cast<size_t>(of_user) >= std::min(of_user_max, of_limit(16))) return false;
  return user == geteuid() || all_.size() < std::min(of_all_max, of_limit(4));
}

bool Untaken::has_room(uid_t user) {
  if (counts_allow(user)) return true;
  look();
  return counts_allow(user);
}

void Untaken::add(uid_t user, int socket) { all_.push_back({user, socket, {}}); }

bool Untaken::stands_in(int socket) {
  const auto one = std::find_if(all_.begin(), all_.end(), [socket](const One& any) { return any.socket == socket; });
  if (one == all_.end()) return false;
  if (!was_taken(socket)) return true;
  all_.erase(one);
  return false;
}

void Untaken::keep(host::Descriptor socket) {
  const int number = socket.get();
  const auto one = std::find_if(all_.begin(), all_.end(), [number](const One& any) { return any.socket == number; });
  CHECK(one != all_.end());
  one->kept = std::move(socket);
  ++kept_;
}

void Untaken::look() {
  std::erase_if(all_, [this](One& one) {
    if (!was_taken(one.socket)) return false;
    if (one.kept) {
      --kept_;
      close_(std::move(one.kept));
    }
    return true;
  });
}

}  // namespace ccixfer::shm
