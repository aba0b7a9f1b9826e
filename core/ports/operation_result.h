// How an operation ended, and the one number that goes with it from the target to the initiator: in the acknowledgement of a put
// the epoch that it went to (which does not say that the epoch is complete), in a refusal for being too long the length of the
// buffer. Every transport, and every hop of a route, carries both unchanged.
// Source: RVMA §III.B-C, which leave open what an initiator learns; core/rvma/README.md says what was decided.
#pragma once
#include <cstdint>
#include <optional>

#include "core/base/status.h"

namespace ccixfer::ports {

struct OperationResult {
  static constexpr uint64_t none = ~uint64_t{0};

  Status status = Status::error;
  uint64_t detail = none;

  OperationResult() = default;
  OperationResult(Status s, uint64_t d = none) : status(s), detail(d) {}

  [[nodiscard]] bool good() const { return status == Status::success; }
  // nullopt: not of a put, or the target does not know (a duplicate of long ago; a put that is held and told no epoch).
  [[nodiscard]] std::optional<uint64_t> epoch() const { return number_of(Status::success); }
  // mailbox_too_long: of the buffer, or of what is there to get. nullopt: a put that fits into no memory at all.
  [[nodiscard]] std::optional<uint64_t> buffer_bytes() const { return number_of(Status::mailbox_too_long); }

 private:
  [[nodiscard]] std::optional<uint64_t> number_of(Status wanted) const {
    return status == wanted && detail != none ? std::optional<uint64_t>(detail) : std::nullopt;
  }
};

}  // namespace ccixfer::ports
