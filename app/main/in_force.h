// What a running process took of its configuration and cannot take anew at SIGHUP. Nothing of it is ignored silently: a reload
// says, key by key, what takes a restart. The values in force are those of the start, and of devices that a reload brought, theirs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "app/config/config.h"

namespace ccixfer::program {

enum class Reload : uint8_t {
  router,    // takes new devices, and of the others all but where they are; metric and static routes
  listener,  // takes nothing of devices
};

// Words for the first new device of `next` that this router cannot begin. A router that began without a device of shm or of verbs
// gave up the rights that such a device needs. none: each device can begin.
[[nodiscard]] std::optional<std::string> cannot_begin(const Config& next, bool shares_memory, bool uses_cards);

class InForce {
 public:
  InForce(const Config& config, Reload kind) : config_(config), kind_(kind) {}
  // `next` was taken in a reload. Gives a line for each of its keys that counts only after a restart.
  [[nodiscard]] std::vector<std::string> left_of(const Config& next);

 private:
  Config config_;
  const Reload kind_;
};

}  // namespace ccixfer::program
