#include "app/recv/budget.h"

#include <fmt/format.h>

#include "core/base/units.h"

namespace ccixfer::recv {

std::optional<Error> Budget::decided(const std::vector<Decision>& decisions) {
  for (const Decision& decision : decisions) {
    if (decision.type != session::EntryType::leave) ++entries_;  // that a directory is left says nothing of another one
  }
  if (limits_.entries_max && entries_ > *limits_.entries_max) {
    return Error{
        ErrorKind::not_authorised,
        fmt::format("not authorised: more than {} entries: send fewer at a time, or ask the receiver to raise `entries` of "
                    "this peer",
                    *limits_.entries_max)};
  }
  for (const Decision& decision : decisions) {
    if (!decision.task || decision.verdict == session::Verdict::link) continue;
    count(*decision.task);
  }
  return judge_bytes(announced_bytes_);
}

void Budget::count(const FileTask& task) {
  if (task.size_bytes == size_unknown) {
    has_unknown_length_ = true;
  } else if (announced_bytes_ + task.size_bytes < announced_bytes_) {
    announced_bytes_ = ~uint64_t{0};
  } else {
    announced_bytes_ += task.size_bytes;
  }
}

std::optional<Error> Budget::wanted(const FileTask& task) {
  count(task);
  return judge_bytes(announced_bytes_);
}

std::optional<Error> Budget::received(uint64_t bytes) {
  received_bytes_ += bytes;
  return has_unknown_length_ ? judge_bytes(received_bytes_) : std::nullopt;
}

std::optional<Error> Budget::judge_bytes(uint64_t bytes) const {
  if (!limits_.quota_bytes || bytes <= *limits_.quota_bytes) return std::nullopt;
  return Error{ErrorKind::no_space,
               fmt::format("the quota of this peer is used up: {} a transfer: send less, or ask the receiver to "
                           "raise `quota` of this peer",
                           format_bytes(*limits_.quota_bytes))};
}

}  // namespace ccixfer::recv
