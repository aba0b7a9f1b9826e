// The end of a connection: what is in flight ends with an error first, memory is withdrawn, then the application is told.
#include <utility>

#include "core/base/log.h"
#include "core/base/units.h"
#include "routing/transport/routed_impl.h"

namespace ccixfer::routing {

void RoutedTransport::disconnect(ports::ConnectionId connection) {
  RoutedConnection* slot = find(connection);
  if (slot == nullptr) return;
  work_ = true;
  if (slot->phase == Phase::leaving) {  // it ended, and the application has not been told yet
    slot->tell_sink = false;
    if (!slot->closing_queued) closing_.push_back(slot->id.packed());
    slot->closing_queued = true;
    return;
  }
  if (slot->phase == Phase::offered) {
    static_cast<void>(reject(connection, "not accepted"));
    return;
  }
  if (slot->phase == Phase::starting || slot->phase == Phase::dialling || slot->phase == Phase::requesting) {
    if (slot->hop.is_live()) lower_->disconnect(slot->hop.connection());
    return free_slot(*slot);
  }
  if (slot->phase == Phase::open && slot->mode == Mode::routed) {
    // Orderly: what was begun ends first; what still comes is answered `disconnected`.
    slot->left = true;
    slot->incoming.leave();
    slot->deadline = never;
    return activate(*slot);
  }
  close_slot(*slot, Status::disconnected, "the peer disconnected", true);
  slot->tell_sink = false;
}

void RoutedTransport::finish_leaving(RoutedConnection& slot) {
  if (slot.phase != Phase::open) return;
  if (slot.begun() == 0 && slot.fenced.empty()) return close_slot(slot, Status::disconnected, "the peer disconnected", true);
  if (slot.deadline != never) return;
  slot.deadline = after(now_, leave_timeout);
  keep_alive(slot);
}

// The peer sent what it must not: count it, tell it, go.
void RoutedTransport::reject_peer(RoutedConnection& slot, std::string_view why) {
  counters_.add(Counter::routed_rejected);
  log(LogLevel::warning, "routing: connection closed: {}", why);
  if (slot.phase == Phase::requesting || slot.phase == Phase::dialling) {
    return fail_dial(slot, Status::error, why);
  }
  close_slot(slot, Status::error, why, true);
}

void RoutedTransport::close_slot(RoutedConnection& slot, Status status, std::string_view reason, bool tell_peer) {
  if (slot.phase == Phase::leaving) return;
  const bool unknown_above = slot.phase == Phase::hop_accepting || slot.phase == Phase::awaiting_request;
  if (slot.mode == Mode::routed && (unknown_above || slot.phase == Phase::offered)) --pending_;
  slot.tell_sink = !unknown_above && !slot.left;
  slot.phase = Phase::leaving;
  slot.end_status = status;
  slot.end_reason = printable(reason);
  set_timer(slot, never);
  if (slot.mode == Mode::routed && tell_peer && slot.hop.is_live()) {
    std::vector<std::byte> message;
    encode(Bye{status, slot.end_reason}, message);
    post(slot, std::move(message));
  }
  if (slot.mode == Mode::direct && slot.hop.is_live()) {
    slot.hop.lose();
    lower_->disconnect(slot.hop.connection());
  }
  withdraw_rma(slot);
  if (!slot.closing_queued) {
    slot.closing_queued = true;
    closing_.push_back(slot.id.packed());
  }
  work_ = true;
}

// Within a turn only. Frees the slot when nothing is left of it.
void RoutedTransport::try_finish(RoutedConnection& slot) {
  if (slot.hop.is_live() && slot.mode == Mode::routed) {
    flush(slot);
    if (slot.hop.empty()) {
      lower_->disconnect(slot.hop.connection());  // orderly: what went out before is delivered
      slot.hop.lose();
    }
  }
  slot.messages.fail_all(Status::disconnected, [&](const auto& owner, Status status) { message_ended(slot, owner, status); });
  slot.fenced.end_all([&](uint64_t token) { sink_->on_completion(slot.id, token, Status::disconnected); });
  // A lower read may still write into the destination: its event comes. Or the network refers to the source: release_lent().
  end_unused_rma(slot);
  if (slot.direct_in_flight > 0 || (slot.rma != nullptr && slot.rma->size() > 0)) return;
  if (slot.hop.is_live()) return activate(slot);  // bye waits for room below
  if (slot.tell_sink) sink_->on_disconnected(slot.id, slot.end_status, slot.end_reason);
  free_slot(slot);
}

}  // namespace ccixfer::routing
