// Whose turn it is among the addresses of a host name. Nobody says that none is there, so who dials a name again, as the one before
// did not answer, gets the next one. Each name with its port has a count of its own: with one for all, two that are dialled in turn
// would get every second of their addresses only.
// Bounds: names_max; those beyond share one count. Single-threaded.
#pragma once
#include <cstddef>
#include <map>
#include <string>

namespace ccixfer::udp {

class NameTurns {
 public:
  static constexpr size_t names_max = 1024;

  // How often it was asked for this name before.
  [[nodiscard]] size_t next(const std::string& name) {
    const bool has_place = turns_.size() < names_max || turns_.contains(name);
    return has_place ? turns_[name]++ : turns_of_others_++;
  }

 private:
  std::map<std::string, size_t> turns_;
  size_t turns_of_others_ = 0;
};

}  // namespace ccixfer::udp
