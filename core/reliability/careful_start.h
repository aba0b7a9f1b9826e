// How a connection begins on a path of which an earlier one knew how much it carries. Doubling once in a round trip takes ten of
// them to fill 1 Gb/s and 100 ms. With this, half of what is remembered may be in flight as soon as the path has shown itself to be
// what it was: a round trip came back, mostly that of the handshake, and is alike. What that flight loses is judged as in
// any startup. Pure; the owner (bbr.h) has the window. Source: draft-ietf-tsvwg-careful-resume (reconnaissance,
// unvalidated phase, safe retreat). Deviations: the round trip may be at most one and a half times what it was and not ten times,
// and then is enough by itself; and what comes after the first flight is the usual startup, not a phase of its own.
#pragma once
#include <cstdint>
#include <optional>

#include "core/reliability/known_path.h"

namespace ccixfer::reliability {

class CarefulStart {
 public:
  void recall(const KnownPath& path);
  // Of the connection so far: another round trip than the remembered one, or a loss, and nothing is made of what is remembered.
  void round_trip(Duration latest, Duration least);
  void lost() {
    if (stage_ == Stage::waiting) stage_ = Stage::over;
  }
  // True, once: from now on window_bytes() may be in flight, though nothing has shown yet that they pass.
  [[nodiscard]] bool begins();
  [[nodiscard]] uint64_t window_bytes() const;
  [[nodiscard]] uint64_t bytes_per_s() const;
  [[nodiscard]] bool is_unproved() const { return stage_ == Stage::unproved; }
  void proved();  // it passed
  void give_up() { stage_ = Stage::over; }
  // Since it was proved: the path delivers again what it did, and a queue begins, so that there is nothing more to look for.
  [[nodiscard]] bool is_found_again(uint64_t bytes_per_s) const;
  // Bytes/s that startup may pace, as it found `bytes_per_s` so far. Once it was proved that is a quarter more than what is
  // remembered, as long as there is not clearly more: the doubling of startup would overflow the queue of a path that is as it was.
  [[nodiscard]] uint64_t pace_most(uint64_t bytes_per_s) const;

 private:
  enum class Stage : uint8_t { waiting, unproved, proved, over };
  KnownPath path_;
  bool has_round_trip_ = false;
  bool has_queue_ = false;  // as the latest round trip shows
  Stage stage_ = Stage::over;
};

}  // namespace ccixfer::reliability
