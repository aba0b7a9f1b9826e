#include "core/sandbox/system_places.h"

#include <unistd.h>

#include <initializer_list>

namespace ccixfer::sandbox {
namespace {

using Paths = std::initializer_list<const char*>;

// Libraries, time zones and languages; OpenSSL reads its file when it is first used, and SQLite the random devices. Owners have
// names.
constexpr Paths always{"/usr",
                       "/lib",
                       "/lib32",
                       "/lib64",
                       "/etc/ld.so.cache",
                       "/etc/localtime",
                       "/etc/ssl/openssl.cnf",
                       "/dev/urandom",
                       "/dev/random",
                       "/etc/nsswitch.conf",
                       "/etc/passwd",
                       "/etc/group",
                       "/run/nscd",
                       "/var/lib/sss/mc"};
// Of a router, which looks at its interfaces again and makes new endpoints.
constexpr Paths listening{"/sys/class/net", "/sys/devices", "/proc/sys/kernel/random"};
constexpr Paths dialling{"/etc/resolv.conf", "/etc/hosts",           "/etc/host.conf",     "/etc/gai.conf",
                         "/etc/services",    "/etc/protocols",       "/etc/networks",      "/etc/resolvconf",
                         "/run/resolvconf",  "/run/systemd/resolve", "/run/NetworkManager"};

void add(std::vector<Place>& places, const Paths& paths) {
  for (const char* path : paths) places.push_back({path, Access::read});
}

}  // namespace

std::vector<Place> system_places(const Plan& plan) {
  std::vector<Place> places;
  places.push_back({"/dev/null", Access::change});
  add(places, always);
  if (plan.listens) add(places, listening);
  if (plan.dials) add(places, dialling);
  if (::geteuid() != 0) places.push_back({"/etc", Access::read});
  return places;
}

}  // namespace ccixfer::sandbox
