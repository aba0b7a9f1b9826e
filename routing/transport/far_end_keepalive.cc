#include "routing/transport/far_end_keepalive.h"

#include <algorithm>

namespace ccixfer::routing {

void FarEndKeepalive::ask(RoutedConnection& connection, Duration timeout) {
  connection.far_end.ask(timeout);
  if (connection.phase == Phase::open) watch_hops(connection);
}

void FarEndKeepalive::begin(RoutedConnection& connection, Instant now) {
  connection.far_end.heard(now);
  if (connection.far_end.is_asked()) watch_hops(connection);
  look(connection, now);
}

void FarEndKeepalive::watch_hops(RoutedConnection& connection) {
  lower_.set_keepalive(connection.hop.connection(), Duration::zero());
  post_.say_plain(connection, MessageKind::end_to_end_keepalive);
  connections_.activate(connection);
}

void FarEndKeepalive::look(RoutedConnection& connection, Instant now) {
  const FarEndWatch::Look look = connection.far_end.look(now, period_);
  switch (look.verdict) {
    case FarEndWatch::Verdict::quiet:
      break;
    case FarEndWatch::Verdict::probe:
      post_.say_plain(connection, MessageKind::keepalive);
      break;
    case FarEndWatch::Verdict::tell:
      if (!connection.end.left) sink_.on_keepalive_timeout(connection.id);
      break;
    case FarEndWatch::Verdict::lost:
      return ender_.close(connection, Status::timed_out, "the far end does not answer", true);
  }
  connections_.set_timer(connection, std::min({look.next, connection.messages.sender.deadline(), connection.end.deadline}));
}

}  // namespace ccixfer::routing
