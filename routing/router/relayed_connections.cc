#include "routing/router/relayed_connections.h"

#include <utility>

#include "core/base/log.h"
#include "core/ports/departure.h"

namespace ccixfer::routing {

RelayedConnections::RelayedConnections(const Devices& devices, ConnectionTable& connections, ConnectionPlaces& places,
                                       ConnectionSetup& setup, MessageRelay& relay, FragmentForwarder& forwarder,
                                       StandstillWatch& watch, const AdmissionObserver& observer, Counters& counters,
                                       Traffic* traffic)
    : devices_(devices),
      connections_(connections),
      places_(places),
      setup_(setup),
      relay_(relay),
      forwarder_(forwarder),
      watch_(watch),
      observer_(observer),
      counters_(counters),
      traffic_(traffic) {}

void RelayedConnections::on_request(uint32_t device, cci::Event& event) {
  cci::Endpoint& endpoint = devices_.endpoint(device);
  const std::string peer = devices_.name_of(device, event.peer());
  if (draining_ || !places_.has_room(peer)) {
    counters_.add(Counter::connections_refused);
    if (traffic_ != nullptr) traffic_->add_refused(draining_ ? RefusedAs::draining : RefusedAs::full);
    const char* why = draining_ ? "this router is draining" : "this router has too many connections";
    if (observer_) observer_({.as = Admission::As::connection, .peer = event.peer(), .status = Status::refused, .reason = why});
    static_cast<void>(endpoint.reject(event, why));
    return;
  }
  RelayedConnection& connection = connections_.add();
  Leg& leg = connection.legs[0];
  leg.device = device;
  leg.connection = event.connection;
  if (observer_) connection.account = std::make_unique<Account>(Account{.peer = event.peer(), .to = {}, .since = now_});
  if (endpoint.accept(event, connection.ref(0)) != Status::success) return connections_.remove(connection);
  leg.live = true;
  connection.peer = &places_.take(peer);
  connections_.set_timer(connection, after(now_, hop_request_timeout));
}

void RelayedConnections::on_event(const Ref& ref, cci::Event event) {
  if (RelayedConnection* connection = connections_.find(ref.packed())) on_leg_event(*connection, ref.side, std::move(event));
}

void RelayedConnections::on_leg_event(RelayedConnection& connection, uint8_t which, cci::Event event) {
  const Leg& leg = connection.legs[which];
  switch (event.type) {
    case cci::EventType::accept:
      return on_accepted(connection, event);
    case cci::EventType::connect:
      return setup_.on_hop_connected(connection, event, now_);
    case cci::EventType::send:
      return on_own_message_failed(connection, which, event);
    case cci::EventType::receive:
      if (leg.connection == event.connection && leg.live) on_message(connection, which, std::move(event));
      return;
    case cci::EventType::mailbox_ready:
      return on_mailbox_ready(connection, which, event);
    case cci::EventType::keepalive_timed_out:
      if (leg.connection != event.connection || connection.phase != ConnectionPhase::open) return;
      return close(connection, Status::disconnected, "a hop is lost: " + connection.leg_name(which) + ": it does not answer",
                   nobody);
    case cci::EventType::disconnected:
      return on_lost(connection, which, event);
    default:
      return;
  }
}

void RelayedConnections::on_accepted(RelayedConnection& connection, const cci::Event& event) {
  if (connection.phase != ConnectionPhase::accepting) return;
  if (event.status == Status::success) {
    connection.phase = ConnectionPhase::awaiting_request;
    return;
  }
  connection.legs[0].live = false;
  close(connection, event.status, event.reason, 0);
}

// One of our own messages, a silent one, failed though the connection lives: an end that takes none
// within the send timeout would wait for ever for what it says. Of one that is gone, what was in
// flight fails first: the event behind it knows why.
void RelayedConnections::on_own_message_failed(RelayedConnection& connection, uint8_t which, const cci::Event& event) {
  if (!devices_.endpoint(connection.legs[which].device).send_timeout(event.connection)) return;
  if (event.status == Status::receiver_not_ready || event.status == Status::timed_out)
    close(connection, event.status, "an end takes no messages", nobody);
}

void RelayedConnections::on_mailbox_ready(RelayedConnection& connection, uint8_t which, const cci::Event& event) {
  if (connection.legs[which].connection != event.connection || connection.phase != ConnectionPhase::open) return;
  std::vector<std::byte> message;
  encode(MailboxHint{event.mailbox, event.ending().detail}, message);
  relay_.post(connection, static_cast<uint8_t>(1 - which), std::move(message));
}

void RelayedConnections::on_lost(RelayedConnection& connection, uint8_t which, const cci::Event& event) {
  Leg& leg = connection.legs[which];
  if (leg.connection != event.connection) return;
  leg.live = false;
  if (which == 1 && connection.phase == ConnectionPhase::requesting) return setup_.on_hop_lost(connection, event.reason, now_);
  if (connection.account && (leg.is_end || connection.phase == ConnectionPhase::awaiting_request))
    connection.account->done = event.reason == ports::words_of_departure;
  const char* what = which == 1 && leg.is_end ? "the peer is lost: " : "a hop is lost: ";
  close(connection, Status::disconnected, what + connection.leg_name(which) + ": " + event.reason, which);
}

void RelayedConnections::on_message(RelayedConnection& connection, uint8_t which, cci::Event event) {
  // A leg that closes may talk on until it is gone. Nothing of that is worth a line of the log.
  if (connection.phase == ConnectionPhase::closing) return;
  const auto kind = kind_of(event.data());
  if (!kind) return reject(connection, "unknown routing message");
  if (connection.phase != ConnectionPhase::open) return on_setup_message(connection, which, *kind, event.data());
  on_open_message(connection, which, *kind, std::move(event));
}

void RelayedConnections::on_setup_message(RelayedConnection& connection, uint8_t which, MessageKind kind, Bytes message) {
  const bool requesting = which == 1 && connection.phase == ConnectionPhase::requesting;
  if (kind == MessageKind::connect_request && which == 0 && connection.phase == ConnectionPhase::awaiting_request) {
    const auto request = connection.account ? decode_connect_request(message) : std::nullopt;
    if (request) connection.account->to = request->destination;
    return setup_.on_request(connection, message, now_);
  }
  if (kind == MessageKind::connect_reply && requesting) {
    if (!setup_.on_reply(connection, message, now_)) return;
    places_.is_set_up(*connection.peer);
    return tell_observer(connection, Admission::Step::admitted, Status::success, "");
  }
  if (kind == MessageKind::connect_pending && requesting) return setup_.on_connect_pending(connection, message);
  if (kind == MessageKind::bye && requesting) {
    const auto bye = decode_bye(message);
    return setup_.refuse(connection, RefusedAs::beyond, Status::refused, bye ? bye->reason : "malformed bye");
  }
  if (kind == MessageKind::bye && which == 0) return close(connection, Status::disconnected, "the initiator gave up", 0);
  reject(connection, "a routing message out of order");
}

void RelayedConnections::on_open_message(RelayedConnection& connection, uint8_t which, MessageKind kind, cci::Event event) {
  const Bytes message = event.data();
  switch (kind) {
    case MessageKind::message:
      return relay_.forward(connection, which, std::move(event));
    case MessageKind::message_ack:
      if (!decode_message_ack(message)) return reject(connection, "malformed message ack");
      return relay_.pass_on(connection, which, message);
    case MessageKind::connect_ack:
      if (which != 0) return reject(connection, "a connect ack from the acceptor");
      return relay_.pass_on(connection, which, message);
    case MessageKind::keepalive:
    case MessageKind::keepalive_ack:
      return relay_.pass_on(connection, which, message);
    case MessageKind::draining:
    case MessageKind::others_wait:
      return on_router_message(connection, which, kind, message);
    case MessageKind::end_to_end_keepalive:
      return on_watched(connection, which, message);
    case MessageKind::mailbox_hint:
      if (!decode_mailbox_hint(message)) return reject(connection, "malformed mailbox hint");
      return relay_.pass_on(connection, which, message);
    case MessageKind::write_request:
    case MessageKind::read_request:
    case MessageKind::read_reply:
      return forwarder_.on_message(connection, which, message);
    case MessageKind::fragment_released:
      return forwarder_.on_taken(connection, which, message);
    case MessageKind::fragment_ack:
      return forwarder_.on_ack(connection, which, message);
    case MessageKind::bye:
      return on_bye(connection, which, message);
    default:
      return reject(connection, "a routing message that does not belong here");
  }
}

// What only a router may say.
void RelayedConnections::on_router_message(RelayedConnection& connection, uint8_t which, MessageKind kind, Bytes message) {
  if (connection.legs[which].is_end) return reject(connection, "an end that says that it is a router");
  kind == MessageKind::draining ? relay_.pass_on(connection, which, message) : watch_.on_others_wait(connection, now_);
}

void RelayedConnections::on_watched(RelayedConnection& connection, uint8_t which, Bytes message) {
  Leg& leg = connection.legs[1 - which];
  devices_.endpoint(leg.device).set_keepalive(leg.connection, Duration{0});
  leg.unwatched = true;
  if (!leg.is_end) relay_.pass_on(connection, which, message);
}

void RelayedConnections::on_bye(RelayedConnection& connection, uint8_t which, Bytes message) {
  const auto bye = decode_bye(message);
  if (!bye) return reject(connection, "malformed bye");
  if (connection.account) connection.account->done = bye->status == Status::success || bye->reason == words_of_end;
  close(connection, bye->status == Status::success ? Status::disconnected : bye->status, bye->reason, which);
  watch_.on_left(connection, which, now_);
}

void RelayedConnections::reject(RelayedConnection& connection, std::string_view why) {
  counters_.add(Counter::routed_rejected);
  if (traffic_ != nullptr && is_setting_up(connection.phase)) traffic_->add_refused(RefusedAs::malformed);
  log(LogLevel::warning, "routing: connection closed: {}", why);
  close(connection, Status::error, why, nobody);
}

void RelayedConnections::close(RelayedConnection& connection, Status status, std::string_view reason, int told_by) {
  if (connection.phase == ConnectionPhase::closing) return connections_.activate(connection);
  tell_observer(connection, is_setting_up(connection.phase) ? Admission::Step::refused : Admission::Step::ended, status, reason);
  if (is_setting_up(connection.phase)) {
    places_.is_set_up(*connection.peer);
    // Nobody there knows of us yet.
    if (connection.phase != ConnectionPhase::requesting) setup_.drop_hop(connection);
  } else {
    const bool peer_ended_it = told_by >= 0 && connection.legs[static_cast<size_t>(told_by)].live;
    counters_.add(Counter::connections_lost, peer_ended_it ? 0 : 1);
  }
  connection.phase = ConnectionPhase::closing;
  connections_.set_timer(connection, after(now_, draining_ ? drain_flush_timeout : close_flush_timeout));
  for (uint8_t which = 0; which < 2; ++which) {
    if (told_by == which || !connection.legs[which].live) continue;
    std::vector<std::byte> message;
    encode(Bye{status, std::string(reason)}, message);
    relay_.post(connection, which, std::move(message));
  }
  forwarder_.drop(connection);
  connections_.activate(connection);
}

void RelayedConnections::tell_observer(const RelayedConnection& connection, Admission::Step step, Status status,
                                       std::string_view reason) const {
  if (!connection.account) return;
  const Account& account = *connection.account;
  // Its end left before it had an answer, as one that was dialled ahead and is not needed does: nobody refused it.
  if (account.done && step == Admission::Step::refused) return;
  const bool done = account.done || step == Admission::Step::admitted;
  observer_({.step = step,
             .as = Admission::As::connection,
             .peer = account.peer,
             .to = account.to,
             .bytes = connection.forwarded_bytes,
             .status = done ? Status::success : status,
             .reason = done ? std::string() : std::string(reason),
             .lasted = now_ - account.since});
}

// What is queued for a living leg goes out first; then its connection is closed, orderly. While a fragment is under way there it
// lives, so that the watch can end it: an orderly end would wait for what a peer does not send, or take. Others end it themselves
// when they are told.
void RelayedConnections::try_finish(RelayedConnection& connection) {
  bool has_more = false, waits = false;
  for (uint8_t which = 0; which < 2; ++which) {
    Leg& leg = connection.legs[which];
    if (leg.live && !leg.out.empty()) {
      has_more = true;
      continue;
    }
    relay_.drop(connection, leg);
    if (connection.fragments.under_way(which) > 0) {
      waits = true;
    } else if (std::exchange(leg.live, false)) {
      devices_.endpoint(leg.device).disconnect(leg.connection);
    }
  }
  if (has_more) return connections_.activate(connection);
  if (waits) return;  // each end of one makes it active
  places_.give(*connection.peer);
  connections_.remove(connection);
}

void RelayedConnections::push() {
  connections_.serve_active([this](RelayedConnection& connection) {
    relay_.flush(connection, 0);
    relay_.flush(connection, 1);
    forwarder_.retry_stalled(connection);
    if (connection.phase == ConnectionPhase::closing) {
      try_finish(connection);
    } else if (!connection.legs[0].out.empty() || !connection.legs[1].out.empty() || connection.fragments.has_stalled()) {
      connections_.activate(connection);  // no room below: again when events came
    }
  });
}

void RelayedConnections::run_timers() {
  while (RelayedConnection* due = connections_.take_due(now_)) on_timer(*due);
}

void RelayedConnections::on_timer(RelayedConnection& connection) {
  switch (connection.phase) {
    case ConnectionPhase::accepting:
    case ConnectionPhase::awaiting_request:
      return reject(connection, "no connect request in time");
    case ConnectionPhase::dialling:
    case ConnectionPhase::requesting:
      return setup_.on_timer(connection, now_);
    case ConnectionPhase::open:
      return;
    case ConnectionPhase::closing:  // what could not be sent by now is lost, and so is what did not come
      for (uint8_t which = 0; which < 2; ++which) {
        Leg& leg = connection.legs[which];
        relay_.drop(connection, leg);
        const bool waits = connection.fragments.under_way(which) > 0 && std::exchange(leg.live, false);
        if (waits) devices_.endpoint(leg.device).abort(leg.connection);
      }
      return try_finish(connection);
  }
}

void RelayedConnections::drain() {
  draining_ = true;
  setup_.drain();
}

void RelayedConnections::tell_drain() {
  log(LogLevel::info, "routing: draining, {} connections", connections_.size());
  connections_.for_each([&](RelayedConnection& connection) {
    if (connection.phase == ConnectionPhase::dialling || connection.phase == ConnectionPhase::requesting)
      return setup_.refuse_as_draining(connection);
    for (uint8_t which = 0; which < 2 && connection.phase == ConnectionPhase::open; ++which)
      relay_.post_plain(connection, which, MessageKind::draining);
  });
}

void RelayedConnections::close_all() {
  connections_.for_each([&](RelayedConnection& connection) {
    if (connection.phase == ConnectionPhase::closing) return connections_.set_timer(connection, after(now_, drain_flush_timeout));
    close(connection, Status::disconnected, setup_.draining_reason(connection), nobody);
  });
}

void RelayedConnections::account_for_all() {
  connections_.for_each([&](const RelayedConnection& connection) {
    if (connection.phase == ConnectionPhase::closing) return;
    const bool was_open = connection.phase == ConnectionPhase::open;
    tell_observer(connection, was_open ? Admission::Step::ended : Admission::Step::refused, Status::disconnected,
                  "the router stopped at once");
  });
}

}  // namespace ccixfer::routing
