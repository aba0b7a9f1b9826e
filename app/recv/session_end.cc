#include "app/recv/session_end.h"

#include "app/session/limits.h"

namespace ccixfer::recv {
namespace {

constexpr uint64_t unlisted_max = uint64_t{1} << 48;  // sums of such counts never wrap round to 0

}  // namespace

bool SessionEnd::fail(Error reason) {
  if (is_closing()) return false;
  error_ = std::move(reason);
  return true;
}

Result<bool> SessionEnd::on_end(const session::End& end) {
  if (end_ && end_->entries != end.entries) return ccixfer::fail(ErrorKind::protocol, "the source changed its count of entries");
  if (end.unlisted_failed > unlisted_max || end.unlisted_vanished > unlisted_max) {
    return ccixfer::fail(ErrorKind::protocol, "the source tells of more failures than there can be");
  }
  const bool is_first = !end_.has_value();
  end_ = end;
  return is_first;
}

bool SessionEnd::on_unlisted() {
  if (unlisted_named_ >= session::unlisted_named_max) return false;
  ++unlisted_named_;
  return true;
}

bool SessionEnd::on_bye() {
  is_bye_said_ = is_summary_posted_;
  return is_bye_said_;
}

std::optional<uint64_t> SessionEnd::entries_before_last_sync() const {
  if (!end_ || is_summary_posted_ || is_last_sync_running_ || error_) return std::nullopt;
  return end_->entries;
}

}  // namespace ccixfer::recv
