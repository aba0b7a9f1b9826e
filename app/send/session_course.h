// The course of the session at the source: it is opened, the listing ends, the summary comes, or
// something ends the session before that. What comes last to be said goes to the peer from here:
// End, Bye and Abort.
// Guarantees: the first error stays. Once the summary is here everything is durable, so no error
// comes after it.
#pragma once
#include <optional>

#include "app/session/link.h"
#include "app/session/messages.h"
#include "core/base/counters.h"
#include "core/base/result.h"

namespace ccixfer::send {

class SessionCourse {
 public:
  SessionCourse(session::Link& link, Counters& counters) : link_(link), counters_(counters) {}

  void open();
  [[nodiscard]] bool is_started() const { return open_; }
  [[nodiscard]] bool is_open() const { return open_ && !error_ && !summary_; }
  void listing_over(const session::End& end);  // said once
  [[nodiscard]] bool listing_is_over() const { return end_said_; }
  void summary_came();
  [[nodiscard]] bool has_summary() const { return summary_; }
  void fail(const Error& error);              // the peer is told, if the session is open
  void judge(const Result<void>& judgement);  // of what the peer sent; an error of ErrorKind::protocol is counted
  void ended_by_peer(const Error& error);
  void end_for_another(const Error& error) { ended_by_peer(error); }  // the peer is not told: the next session takes the place
  void link_lost(const Error& error);
  [[nodiscard]] const Error* error() const { return error_ ? &*error_ : nullptr; }
  [[nodiscard]] bool finished(bool has_lanes) const;
  // The summary is here and Bye is on its way: there is nothing more to learn, so who ends its process need not wait for the round
  // trip that finished() takes.
  [[nodiscard]] bool said_all() const { return summary_ && link_.messages_sent(); }

 private:
  session::Link& link_;
  Counters& counters_;
  bool open_ = false;
  bool end_said_ = false;
  bool summary_ = false;
  bool link_lost_ = false;
  std::optional<Error> error_;
};

}  // namespace ccixfer::send
