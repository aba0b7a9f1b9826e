// A helper's session with its second receiver (app/session/README.md, "Several receivers of one file system"), beside the transfer
// that the process dials. It is dialled once the process helps, again whenever it is lost, and ends with the transfer. What becomes
// of it never changes how the transfer ends: it is told in one line, and everything goes to the first receiver.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "app/main/dialled.h"
#include "app/send/second_path.h"
#include "app/send/second_source.h"

namespace ccixfer::program {

inline constexpr Duration second_again = std::chrono::minutes(5);     // after one could not be reached for --timeout
inline constexpr Duration second_farewell = std::chrono::seconds(5);  // after the transfer has ended

struct SecondPlan {
  DialPlan dial;  // without make_role
  SecondPart part;
};

class SecondDial {
 public:
  SecondDial(const SessionServices& services, session::Hub& hub, SecondPlan plan);

  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;
  void stop(const Error& why);  // the process is to end
  void end(Instant now);        // the transfer has ended; may be said again
  [[nodiscard]] bool is_over() const { return !transfer_ || transfer_->ended() || transfer_->may_be_left(); }
  [[nodiscard]] uint64_t bytes_sent() const { return earlier_bytes_ + (transfer_ ? transfer_->tally().bytes_sent : 0); }
  [[nodiscard]] bool is_in_use() const { return transfer_ && transfer_->is_in_use(); }

 private:
  void judge(Instant now);

  const SessionServices services_;
  session::Hub& hub_;
  const DialPlan plan_;
  const std::shared_ptr<send::SecondPath> path_;
  std::unique_ptr<DialledTransfer> transfer_;
  uint64_t earlier_bytes_ = 0;
  bool is_given_up_ = false;
  Instant again_at_{};  // it is dialled no sooner
  Instant stop_at_ = never;
};

}  // namespace ccixfer::program
