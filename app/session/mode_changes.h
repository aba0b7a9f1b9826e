// --chmod: what becomes of the modes that the source has, in rsync's syntax: comma-separated changes as of chmod(1), each with D
// (only directories) or F (only others) in front if it is not for all. Pure. Errors: usage, for a text that is none.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace ccixfer::session {

class ModeChanges {
 public:
  // Changes without u, g, o or a leave out what the umask takes. Several texts add up, in their order.
  [[nodiscard]] Result<void> add(std::string_view text, uint32_t umask);
  [[nodiscard]] uint32_t apply(uint32_t mode, bool is_directory) const;
  [[nodiscard]] bool empty() const { return changes_.empty(); }

 private:
  enum class Operation : uint8_t { none, add, take, set, number };
  struct Change {
    Operation operation = Operation::none;
    bool directories = true, others = true;
    bool keeps_x = false;  // X: no execution for what nobody may execute
    uint32_t classes = 0;  // 0100 user, 0010 group, 0001 others
    bool named_classes = false;
    uint32_t rights = 0;        // 7, or the number
    uint32_t high = 0;          // set-ID bits and the sticky bit
    uint32_t high_classes = 0;  // set-ID bits of the classes that were named
    uint32_t copied_class = 0;  // as in g=u
    uint32_t umask = 0;
  };
  [[nodiscard]] static bool parse(std::string_view text, Change& change);
  [[nodiscard]] static uint32_t applied(const Change& change, uint32_t mode, bool has_x);

  std::vector<Change> changes_;
};

}  // namespace ccixfer::session
