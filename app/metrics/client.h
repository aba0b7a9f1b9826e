// One client of the metrics' server: its socket, what it asked for and what it is still to get. A client has request_time_max from
// the moment it came, or from the last answer, to the end of the next answer, a handshake of TLS included: what it says by and by
// gives it no more time. One that listens has as long for each event, and gets no further one before it has taken the last.
// Single-threaded.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "app/metrics/guard.h"
#include "app/metrics/http.h"
#include "core/host/descriptor.h"

namespace ccixfer::metrics {

inline constexpr std::chrono::seconds request_time_max{10};
inline constexpr int answers_a_turn = 4;  // of what is asked for in one go

class Client {
 public:
  using Clock = std::chrono::steady_clock;
  // `guard`: it speaks TLS, and has to say the token. nullptr: neither.
  Client(host::Descriptor fd, const Site& site, Clock::time_point now, std::shared_ptr<const Guard> guard = nullptr);

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] short waits_for() const;                                              // of poll(2)
  [[nodiscard]] std::optional<Clock::time_point> deadline() const { return until_; }  // nothing: it may stay
  // `ready`: what poll(2) says of the socket. False: it is over.
  [[nodiscard]] bool turn(Clock::time_point now, short ready = 0);
  // The last turn left requests that came already, of which poll(2) says nothing: another turn is due at once.
  [[nodiscard]] bool has_more() const;
  // Its time is up, or its place is given to somebody else: counts what it did not come to.
  void give_up();

  // It has asked for something that is not here: answer() or begin_events() or refuse_busy() next.
  [[nodiscard]] bool wants_status() const { return wants_ == Next::status; }
  [[nodiscard]] bool wants_events() const { return wants_ == Next::events && !listens_; }
  [[nodiscard]] bool listens() const { return listens_; }
  // Each is followed by turn().
  void answer(std::string_view json);
  void begin_events();
  void refuse_busy();
  void tell(const std::string& event, Clock::time_point now);  // of event_of(), to one that listens

 private:
  [[nodiscard]] bool take(Clock::time_point now);
  [[nodiscard]] bool give(Clock::time_point now);
  [[nodiscard]] bool hear(std::string_view bytes);
  void answer_next(std::string_view bytes);
  void say(const std::string& plain);  // and what ends with it

  host::Descriptor fd_;
  const Site* site_;
  std::shared_ptr<const Guard> guard_;
  std::optional<trust::WebTls> tls_;
  HttpConnection http_;
  std::string out_;  // as it goes out
  Next wants_ = Next::more;
  bool listens_ = false;
  bool shook_hands_ = false;  // what it says is TLS
  bool answered_ = false;     // since its time began
  std::optional<Clock::time_point> until_;
};

}  // namespace ccixfer::metrics
