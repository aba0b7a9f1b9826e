// Packet numbers that a sender leaves out: about one of 2,048, by chance. A receiver that acknowledges one did not get what it
// acknowledges: it would have its sender believe that a path carries whatever is sent, and flood it.
// Bounds: the last `remembered` ones; who names an older one names these too, or numbers that nobody waits for any more.
// Source: RFC 9000, 21.4.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/reliability/ack.h"

namespace ccixfer::reliability {

class SkippedNumbers {
 public:
  static constexpr uint64_t one_of = 2048;
  static constexpr size_t remembered = 4;

  SkippedNumbers() { last_.fill(UINT64_MAX); }
  // `secret`: the receiver does not know it, so it cannot tell them from packets that were lost. Without one none is left out.
  void begin(uint64_t secret) {
    secret_ = secret;
    is_on_ = true;
  }
  // Whether this number is to be left out. It is remembered then.
  [[nodiscard]] bool skips(uint64_t number);
  [[nodiscard]] bool is_named_by(const Ack& ack) const;
  [[nodiscard]] uint64_t between(uint64_t older, uint64_t newer) const;  // how many were left out there, of those remembered

 private:
  uint64_t secret_ = 0;
  bool is_on_ = false;
  size_t next_ = 0;
  std::array<uint64_t, remembered> last_;
};

}  // namespace ccixfer::reliability
