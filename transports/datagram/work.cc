#include "transports/datagram/work.h"

#include <utility>

namespace ccixfer::datagram {

bool Work::is_quiet() const {
  const bool says = greeting_due || hello_reply_due || accept_due || ping_due || ping_alone_due || end_notice_due;
  const bool handshakes = dialling != nullptr || check != nullptr || farewell != nullptr;
  const bool hints_wait = (hints != nullptr && !hints->is_quiet()) || (peer_hints != nullptr && !peer_hints->is_quiet());
  return !says && !handshakes && !hints_wait && sent.packets() == 0 && !received.ack_wanted() && messages.is_quiet() &&
         fenced.empty() && incoming.is_quiet() && rma.empty() && served.is_quiet();
}

Resting rest(const Work& work) {
  Resting resting;
  resting.next_packet = work.sent.next_number();
  resting.received_below = work.received.next_newest();
  if (work.path != nullptr) resting.path_search_at = work.path->raise_at();
  resting.messages = work.messages.numbers();
  resting.incoming = work.incoming.numbers();
  resting.rma_generation = work.rma.generation_most();
  resting.generations = work.served.generations();
  if (work.hints != nullptr) resting.next_hint = work.hints->next();
  if (work.peer_hints != nullptr) resting.next_peer_hint = work.peer_hints->next();
  return resting;
}

void go_on(Work& work, Resting& from) {
  work.sent.go_on(from.next_packet);
  work.received.go_on(from.received_below);
  work.messages.go_on(from.messages);
  work.incoming.go_on(from.incoming);
  work.rma.go_on(from.rma_generation);
  if (from.generations != nullptr) work.served.go_on(*std::exchange(from.generations, nullptr));
  if (from.next_hint > 0) work.hints = std::make_unique<HintsOut>(from.next_hint);
  if (from.next_peer_hint > 0) work.peer_hints = std::make_unique<HintsIn>(from.next_peer_hint);
}

}  // namespace ccixfer::datagram
