// What the objects of a destination tell its session as a whole. The destination implements it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ccixfer::recv {

class SessionHandler {
 public:
  virtual ~SessionHandler() = default;
  // The session has ended with an error: the jobs that are still running only clean up.
  [[nodiscard]] virtual bool has_failed() const = 0;
  // Ends the session, and tells the source why. Only the first error counts.
  virtual void fail(Error reason) = 0;
  // The same, and the error counts as a fault of the peer.
  virtual void refuse(Error reason) = 0;
  // Something from the peer makes no sense: it is counted, and has no other effect before there are rejected_max of them.
  virtual void reject(std::string_view why) = 0;
  // A segment came as it was sent, or it did not. Damage that does not stop ends the session (damaged_in_a_row_max).
  virtual void opened(bool is_intact) = 0;
  // A put arrived damaged, which counts as opened(false): the source sends again what it contained.
  virtual void ask_for_put(uint64_t lane_session, uint64_t n) = 0;
  // The same, but it is for somebody else to ask.
  virtual void put_damaged() = 0;
  // A piece of a file has to come again (session::Resend::whole: all of the file).
  virtual void ask_for_piece(uint64_t index, uint64_t piece) = 0;
  virtual void made_progress() = 0;
  virtual void warn(const std::string& line) = 0;
  virtual void tell_failure(const std::string& line) = 0;  // of what counts as failed, and is no file of its own
};

}  // namespace ccixfer::recv
