// What an initiator asks of its routers, one after the other, until one of them makes the
// connection, and which of their answers is believed when none does.
// In: `now`, and what each router answered. Out: which router to dial next, for how long, and what
// to ask it. Pure; single-threaded. Source: routing §VI; routing/transport/README.md 'Whom it dials'.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/ports/transport.h"
#include "routing/transport/messages.h"

namespace ccixfer::routing {

inline constexpr Duration router_dial_timeout = std::chrono::seconds(5);  // then the next router is tried

// What a router's failure tells, the least first: nobody is there; it does not let us in, for its
// version or for who we are, or it is not whom we wanted; it knows no way; it knows one, and the
// other end does not answer; what no other router could change.
enum class Told : uint8_t { dead, not_let_in, no_way, no_answer, the_end };

[[nodiscard]] constexpr bool is_not_let_in(Status status) {
  return status == Status::version || status == Status::not_authenticated || status == Status::not_authorised;
}

class RouterAttempts {
 public:
  struct Answer {
    Status status = Status::unreachable;
    std::string reason;
  };

  explicit RouterAttempts(const ports::DialRequest& request);
  // The first turn after the call: its timeout counts from here. The last of `routers` comes first.
  void begin(std::vector<std::string> routers, Instant now);
  // false: all were tried.
  [[nodiscard]] bool next();
  [[nodiscard]] const std::string& router() const { return router_; }  // that is being tried
  // How long it may take to answer the dial: what is left is shared among those that are left.
  [[nodiscard]] Duration patience(Instant now) const;
  // Its connection stands, and it is asked. The lengths are our end's.
  [[nodiscard]] ConnectRequest ask(Instant now);
  [[nodiscard]] Duration round_trip(Instant now) const;  // since it was asked

  // Several routers may fail in several ways. The answer that says most is believed, of equals the
  // last.
  void note(Told told, Status status, std::string_view reason);
  void note_unreachable(std::string_view reason);  // the router that is being tried
  // The same. The status is version, not_authenticated or not_authorised.
  void note_not_let_in(Status status, std::string_view reason);
  [[nodiscard]] bool note_reply(const ConnectReply& reply);  // a failure; false: no other router helps
  void note_pending(ConnectPending pending);                 // that hop has not answered it yet

  [[nodiscard]] const Answer& answer() const { return answer_; }
  [[nodiscard]] std::string why_late() const;  // its time is over
  [[nodiscard]] Instant deadline() const { return deadline_; }

 private:
  [[nodiscard]] std::string of_router(std::string_view reason) const;

  ConnectRequest request_;
  Instant deadline_ = never;
  std::vector<std::string> left_;  // not tried yet, the next one last
  std::string router_;
  std::optional<Instant> asked_at_;  // the router that is being tried
  std::optional<ConnectPending> pending_;
  Told told_ = Told::dead;
  Answer answer_;
};

}  // namespace ccixfer::routing
