#include "app/recv/session_reports.h"

#include <fmt/core.h>

#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"

namespace ccixfer::recv {

void SessionReports::end_with(Error reason, bool tell_peer) {
  if (end_.is_closing()) return;
  log(LogLevel::info, "destination: session {:x} ends: {}", number_(), reason.message);
  if (tell_peer) outbox_.post(session::Abort{reason.kind, reason.message});
  CHECK(end_.fail(std::move(reason)));
  wake_.set();
}

void SessionReports::refuse(Error reason) {
  counters_.add(Counter::session_rejected);
  fail(std::move(reason));
}

void SessionReports::reject(std::string_view why) {
  if (++rejected_ > rejected_max) {
    return refuse({ErrorKind::protocol, fmt::format("the source has sent {} things that make no sense: {}", rejected_, why)});
  }
  counters_.add(Counter::session_rejected);
  log(LogLevel::warning, "destination: session {:x}: rejected: {}", number_(), why);
}

void SessionReports::opened(bool is_intact) {
  damaged_in_a_row_ = is_intact ? 0 : damaged_in_a_row_ + 1;
  if (damaged_in_a_row_ == damaged_in_a_row_max) {
    fail({ErrorKind::integrity, fmt::format("{} segments in a row were damaged on their way", damaged_in_a_row_max)});
  }
}

void SessionReports::put_damaged() {
  counters_.add(Counter::segments_bad);
  opened(false);
  if (!has_failed()) results_.asked_again();
}

void SessionReports::ask_for_put(uint64_t lane_session, uint64_t n) {
  put_damaged();
  if (!has_failed()) outbox_.ask_for_put(lane_session, n);
}

void SessionReports::ask_for_piece(uint64_t index, uint64_t piece) {
  results_.asked_again();
  outbox_.ask_for_piece(index, piece);
}

}  // namespace ccixfer::recv
