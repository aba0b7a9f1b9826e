#include "app/trust/places.h"

#include <unistd.h>

#include <cstdlib>

namespace ccixfer::policy {
namespace {

std::string absolute(const char* path) { return path != nullptr && *path == '/' ? path : ""; }

}  // namespace

Places find_places(const char* (*environment)(const char*), bool is_root) {
  const std::string home = absolute(environment("HOME"));
  const auto directory = [&](const char* variable, const char* below_home) -> std::string {
    if (const std::string given = absolute(environment(variable)); !given.empty()) return given + "/ccixfer";
    return home.empty() ? "" : home + below_home + "/ccixfer";
  };
  Places places;
  places.configuration = directory("XDG_CONFIG_HOME", "/.config");
  const std::string of_service = absolute(environment("STATE_DIRECTORY"));  // several, if the unit names several: the first
  places.state = of_service.empty() ? directory("XDG_STATE_HOME", "/.local/state") : of_service.substr(0, of_service.find(':'));
  if (is_root) places.system_key = "/etc/ccixfer/identity.key";
  return places;
}

Places places_of_process() {
  return find_places([](const char* name) -> const char* { return std::getenv(name); }, geteuid() == 0);
}

}  // namespace ccixfer::policy
