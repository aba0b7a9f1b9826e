#include "app/main/repeated_signals.h"

#include <csignal>

namespace ccixfer::program {

bool RepeatedSignals::is_repeated(int number, int code, pid_t sender, Instant now) {
  if (code != SI_USER || (number != SIGINT && number != SIGTERM)) return false;
  const auto before = sent_.find(number);
  if (before != sent_.end() && before->second.sender == sender && now < after(before->second.at, repeated_within)) return true;
  sent_[number] = {sender, now};
  return false;
}

}  // namespace ccixfer::program
