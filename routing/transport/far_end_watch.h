// Whether the far end of a routed connection still answers. After each period of silence a probe
// goes out. The period after the last of keepalive_probes_max unanswered ones means that the
// connection is lost. Where the application watches the far end itself, a probe goes out after half
// of its time, and after all of it the application is told once; the connection is never lost then.
// Pure: `now` is an argument. Single-threaded.
#pragma once
#include <cstdint>

#include "core/base/time.h"
#include "core/reliability/probes.h"

namespace ccixfer::routing {

using reliability::keepalive_probes_max;

class FarEndWatch {
 public:
  enum class Verdict : uint8_t { quiet, probe, tell, lost };
  struct Look {
    Verdict verdict = Verdict::quiet;
    Instant next = never;  // when to look again
  };

  // The application watches the far end from now on; zero or forever: nobody does. The call may
  // come long after the last turn, so the time counts from the next look on.
  void ask(Duration timeout);
  [[nodiscard]] bool is_asked() const { return asked_; }
  [[nodiscard]] bool awaits_look() const { return unstamped_; }  // ask() was called since the last one
  void heard(Instant now);
  // `keepalive`: the period of silence of a connection that nobody watches; zero: off.
  [[nodiscard]] Look look(Instant now, Duration keepalive);

 private:
  [[nodiscard]] Look look_after_keepalive(Instant now, Duration keepalive);
  [[nodiscard]] Look look_after_asked(Instant now);

  Instant heard_at_{};
  Instant asked_at_{};
  Duration asked_timeout_{0};  // zero: the application was told, or wants to hear nothing
  uint32_t probes_ = 0;
  bool asked_ = false;
  bool unstamped_ = false;
};

}  // namespace ccixfer::routing
