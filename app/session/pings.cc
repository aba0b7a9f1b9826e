#include "app/session/pings.h"

#include <algorithm>

namespace ccixfer::session {

void Pings::add(cci::Connection connection, Instant now) {
  if (pings_.size() >= pings_max) end_most_silent();
  pings_.push_back({connection, now});
}

void Pings::heard(cci::Connection connection, Instant now) {
  const auto found = std::ranges::find_if(pings_, [connection](const Ping& ping) { return ping.connection == connection; });
  if (found == pings_.end()) return;
  found->heard = now;
  std::rotate(found, found + 1, pings_.end());
}

void Pings::gone(cci::Connection connection) {
  std::erase_if(pings_, [connection](const Ping& ping) { return ping.connection == connection; });
}

void Pings::turn(Instant now) {
  while (!pings_.empty() && now >= after(pings_.front().heard, ping_idle_limit)) end_most_silent();
}

Instant Pings::next_deadline() const { return pings_.empty() ? never : after(pings_.front().heard, ping_idle_limit); }

void Pings::end_most_silent() {
  endpoint_.disconnect(pings_.front().connection);
  pings_.erase(pings_.begin());
}

}  // namespace ccixfer::session
