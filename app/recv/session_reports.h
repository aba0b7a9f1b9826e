// The voice of a destination's session: what its objects report is counted, logged, and told to the
// source, the reporter and the program (SessionHandler). It decides nothing but this: a session of
// which nothing comes intact any more ends.
// Protocol thread.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "app/recv/observer.h"
#include "app/recv/outbox.h"
#include "app/recv/results.h"
#include "app/recv/session_end.h"
#include "app/recv/session_handler.h"
#include "app/session/liveness.h"
#include "app/session/wake.h"
#include "core/base/counters.h"

namespace ccixfer::recv {

// Whoever damages everything on the way would otherwise have it sent again for ever.
inline constexpr uint32_t damaged_in_a_row_max = 100;
inline constexpr uint32_t rejected_max = 1000;  // a line of the log each: then the session ends, as a fault of the peer

class SessionReports final : public SessionHandler {
 public:
  using SessionNumber = std::function<uint64_t()>;  // for the log
  SessionReports(SessionEnd& end, Outbox& outbox, Results& results, session::Liveness& liveness, session::Wake& wake,
                 DestinationObserver& observer, Counters& counters, SessionNumber number)
      : end_(end),
        outbox_(outbox),
        results_(results),
        liveness_(liveness),
        wake_(wake),
        observer_(observer),
        counters_(counters),
        number_(std::move(number)) {}

  // Ends the session, unless it has ended. `tell_peer`: the source does not know it yet.
  void end_with(Error reason, bool tell_peer);

  bool has_failed() const override { return end_.error() != nullptr; }
  void fail(Error reason) override { end_with(std::move(reason), true); }
  void refuse(Error reason) override;
  void reject(std::string_view why) override;
  void opened(bool is_intact) override;
  void ask_for_put(uint64_t lane_session, uint64_t n) override;
  void put_damaged() override;
  void ask_for_piece(uint64_t index, uint64_t piece) override;
  void made_progress() override { liveness_.made_progress(); }
  void warn(const std::string& line) override { observer_.on_warning(line); }
  void tell_failure(const std::string& line) override { observer_.on_failure(line); }

 private:
  SessionEnd& end_;
  Outbox& outbox_;
  Results& results_;
  session::Liveness& liveness_;
  session::Wake& wake_;
  DestinationObserver& observer_;
  Counters& counters_;
  const SessionNumber number_;
  uint32_t damaged_in_a_row_ = 0;
  uint32_t rejected_ = 0;
};

}  // namespace ccixfer::recv
