#include "transports/datagram/moves.h"

#include "core/base/log.h"
#include "core/base/units.h"

namespace ccixfer::datagram {

void Moves::heard(Connection& c, const Address& from, bool is_newest, size_t bytes) {
  const bool is_asking = c.work().check != nullptr && !c.work().check->is_pausing();
  if (from == c.address) {
    if (is_newest && is_asking) stay(c);
    return;
  }
  if (c.work().check != nullptr && c.work().check->is_pausing()) return;
  if (is_newest && (!is_asking || c.work().check->there() != from)) {
    if (is_asking) engine_.counters().add(Counter::addresses_unproved);
    const PathCheck::Tokens tokens{entropy_.next_u64(), entropy_.next_u64()};
    c.work().check = std::make_unique<PathCheck>(from, tokens, engine_.now(), c.rtt.timeout());
  }
  if (c.work().check == nullptr || c.work().check->there() != from) return;
  c.work().check->arrived(bytes);
  go_on(c);
}

// At once, and to where it came from: the number is worth nothing elsewhere. It is no longer than the question was.
void Moves::on_challenge(Connection& c, const Address& from, const PathChallengeFrame& frame) {
  writer_.answer_path(c, from, frame.token);
}

void Moves::on_answer(Connection& c, const Address& from, const PathAnswerFrame& frame) {
  if (c.work().check == nullptr || c.work().check->is_pausing()) return;
  if (frame.token == c.work().check->tokens().there && from == c.work().check->there()) {
    c.work().check->answered();
    return go_on(c);
  }
  // Somebody receives at the address of before. Sealed: it is the peer, by whichever way its answer came. Else whoever may have
  // seen the number says so, and that is the peer if it still speaks from there.
  if (frame.token == c.work().check->tokens().here && (c.is_sealed() || from == c.address)) stay(c);
}

void Moves::on_timer(Connection& c) {
  if (may_move(c)) return go_on(c);
  c.work().check.reset();
}

void Moves::go_on(Connection& c) {
  switch (c.work().check->step(engine_.now())) {
    case PathCheck::Step::wait:
      return;
    case PathCheck::Step::ask:
      return ask(c);
    case PathCheck::Step::moved:
      return move(c);
    case PathCheck::Step::stayed:
      return engine_.counters().add(Counter::addresses_unproved);
    case PathCheck::Step::over:
      return c.work().check.reset();
  }
}

void Moves::ask(Connection& c) {
  const size_t bytes = packet_head_bytes(c.is_sealed()) + path_frame_bytes + packet_tail_bytes(c.is_sealed());
  if (c.work().check->may_send(bytes)) {
    c.work().check->sent(bytes);
    writer_.challenge_path(c, c.work().check->there(), c.work().check->tokens().there);
  }
  writer_.challenge_path(c, c.address, c.work().check->tokens().here);
}

void Moves::stay(Connection& c) {
  engine_.counters().add(Counter::addresses_unproved);
  c.work().check->stay(engine_.now());
}

void Moves::move(Connection& c) {
  const Address to = c.work().check->there();
  c.work().check.reset();
  engine_.counters().add(Counter::addresses_changed);
  log(LogLevel::info, "connection={}.{} peer moved from={} port={} to={} port={}", c.id.index, c.id.generation,
      printable(net_.host_of(c.address)), c.address.port, printable(net_.host_of(to)), to.port);
  engine_.heard(c);
  handshake_.moved(c, to);
  outcomes_.moved(c);
  engine_.touch(c);
}

}  // namespace ccixfer::datagram
