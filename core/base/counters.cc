#include "core/base/counters.h"

namespace ccixfer {

std::string_view to_string(Counter counter) {
  switch (counter) {
    case Counter::frames_rejected:
      return "frames_rejected";
    case Counter::hello_rejected:
      return "hello_rejected";
    case Counter::connections_accepted:
      return "connections_accepted";
    case Counter::connections_refused:
      return "connections_refused";
    case Counter::connections_lost:
      return "connections_lost";
    case Counter::messages_received:
      return "messages_received";
    case Counter::messages_not_ready:
      return "messages_not_ready";
    case Counter::rma_rejected:
      return "rma_rejected";
    case Counter::mailbox_rejected:
      return "mailbox_rejected";
    case Counter::bytes_in:
      return "bytes_in";
    case Counter::bytes_out:
      return "bytes_out";
    case Counter::records_received:
      return "records_received";
    case Counter::records_rejected:
      return "records_rejected";
    case Counter::routed_connections:
      return "routed_connections";
    case Counter::routed_messages:
      return "routed_messages";
    case Counter::routed_fragments:
      return "routed_fragments";
    case Counter::routed_bytes:
      return "routed_bytes";
    case Counter::routed_bytes_passed:
      return "routed_bytes_passed";
    case Counter::routed_rejected:
      return "routed_rejected";
    case Counter::segments_bad:
      return "segments_bad";
    case Counter::session_rejected:
      return "session_rejected";
    case Counter::datagrams_rejected:
      return "datagrams_rejected";
    case Counter::datagrams_duplicate:
      return "datagrams_duplicate";
    case Counter::datagrams_lost:
      return "datagrams_lost";
    case Counter::datagrams_dropped:
      return "datagrams_dropped";
    case Counter::datagrams_refused:
      return "datagrams_refused";
    case Counter::addresses_changed:
      return "addresses_changed";
    case Counter::addresses_unproved:
      return "addresses_unproved";
    case Counter::acks_rejected:
      return "acks_rejected";
    case Counter::shared_rings_rejected:
      return "shared_rings_rejected";
    case Counter::count_:
      break;
  }
  return "unknown_counter";
}

}  // namespace ccixfer
