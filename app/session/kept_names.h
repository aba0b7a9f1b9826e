// Names that a part of a session remembers for all sessions of a transfer, in the transfer's record (transfer_record.h).
#pragma once
#include <string_view>

namespace ccixfer::session {

// Jobs use it too: thread-safe.
class KeptNames {
 public:
  virtual ~KeptNames() = default;
  [[nodiscard]] virtual bool has(std::string_view name) const = 0;
  virtual void add(std::string_view name) = 0;
};

}  // namespace ccixfer::session
