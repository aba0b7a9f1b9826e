// How an operation of the communication core ended. One byte on the wire, the same for every transport.
// CCI's names; our numbers are our own, so that no errno value that a system call returned can be taken for one.
// Source: CCI §IV; RVMA's reasons of a negative acknowledgement (RVMA §III.C) follow from 64 on.
#pragma once
#include <cstdint>
#include <string_view>

namespace ccixfer {

enum class Status : uint8_t {
  success = 0,
  error = 1,
  disconnected = 2,        // ERR_DISCONNECTED
  receiver_not_ready = 3,  // ERR_RNR
  device_dead = 4,
  rma_handle = 5,  // ERR_RMA_HANDLE: unknown, stale or forged handle, or out of its bounds
  rma_op = 6,      // ERR_RMA_OP: the access that the operation needs was not granted
  not_implemented = 7,
  not_found = 8,
  invalid = 9,        // EINVAL
  timed_out = 10,     // ETIMEDOUT
  no_memory = 11,     // ENOMEM
  busy = 14,          // EBUSY
  range = 15,         // ERANGE
  again = 16,         // EAGAIN
  no_buffers = 17,    // ENOBUFS
  message_size = 18,  // EMSGSIZE
  refused = 21,       // ECONNREFUSED
  // beyond CCI: routing
  no_route = 32,     // routers answer and none knows a way
  unreachable = 33,  // nobody answers
  version = 34,      // HELLO: magic, version or a mandatory option does not match
  // beyond CCI: trust. Both are final: no further attempt ends otherwise until somebody changes a configuration.
  not_authenticated = 35,  // the peer's proof failed or is missing, or it is not whom we wanted
  not_authorised = 36,     // it is known, and may not do that here
  // RVMA's negative acknowledgements
  mailbox_unknown = 64,
  mailbox_closed = 65,
  mailbox_key = 66,
  mailbox_empty = 67,  // receiver not ready: no buffer posted for that epoch
  mailbox_too_long = 68,
  mailbox_stale = 69,  // the expected epoch has passed
  mailbox_busy = 70,   // a duplicate of a fragment that is being placed
  cancelled = 71,
  withheld = 72,  // refused, and the target says nothing of it: the initiator is to see a timeout
};

[[nodiscard]] std::string_view to_string(Status status);
[[nodiscard]] bool is_known_status(uint8_t value);

}  // namespace ccixfer
