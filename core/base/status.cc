#include "core/base/status.h"

namespace ccixfer {
namespace {

// Empty: not a status. A switch without default, so that the compiler names the enumerator that was forgotten.
std::string_view name_of(Status status) {
  switch (status) {
    case Status::success:
      return "success";
    case Status::error:
      return "error";
    case Status::disconnected:
      return "disconnected";
    case Status::receiver_not_ready:
      return "receiver_not_ready";
    case Status::device_dead:
      return "device_dead";
    case Status::rma_handle:
      return "rma_handle";
    case Status::rma_op:
      return "rma_op";
    case Status::not_implemented:
      return "not_implemented";
    case Status::not_found:
      return "not_found";
    case Status::invalid:
      return "invalid";
    case Status::timed_out:
      return "timed_out";
    case Status::no_memory:
      return "no_memory";
    case Status::busy:
      return "busy";
    case Status::range:
      return "range";
    case Status::again:
      return "again";
    case Status::no_buffers:
      return "no_buffers";
    case Status::message_size:
      return "message_size";
    case Status::refused:
      return "refused";
    case Status::no_route:
      return "no_route";
    case Status::unreachable:
      return "unreachable";
    case Status::version:
      return "version";
    case Status::not_authenticated:
      return "not_authenticated";
    case Status::not_authorised:
      return "not_authorised";
    case Status::mailbox_unknown:
      return "mailbox_unknown";
    case Status::mailbox_closed:
      return "mailbox_closed";
    case Status::mailbox_key:
      return "mailbox_key";
    case Status::mailbox_empty:
      return "mailbox_empty";
    case Status::mailbox_too_long:
      return "mailbox_too_long";
    case Status::mailbox_stale:
      return "mailbox_stale";
    case Status::mailbox_busy:
      return "mailbox_busy";
    case Status::cancelled:
      return "cancelled";
    case Status::withheld:
      return "withheld";
  }
  return {};
}

}  // namespace

std::string_view to_string(Status status) {
  const std::string_view name = name_of(status);
  return name.empty() ? std::string_view("unknown_status") : name;
}

bool is_known_status(uint8_t value) { return !name_of(static_cast<Status>(value)).empty(); }

}  // namespace ccixfer
