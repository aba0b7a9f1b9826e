// Every routing message, well-formed, and what lies between the kinds: for tables of what each phase does with each.
#pragma once
#include <optional>
#include <vector>

#include "routing/map/record.h"
#include "routing/transport/messages.h"

namespace ccixfer::routing::test {

// The first byte of a message is its kind; this one if there is such a kind, else nothing.
inline std::optional<MessageKind> kind_with(uint8_t number) {
  const std::vector<std::byte> message{static_cast<std::byte>(number), {}, {}, {}};
  return kind_of(message);
}

// An honest one; what it names (cookies, handles) is not there. `destination` and `router` are of the tests' networks.
inline std::vector<std::byte> message_with(uint8_t number, const std::string& destination, SubnetId subnet) {
  std::vector<std::byte> out;
  const auto kind = kind_with(number);
  if (!kind) return {static_cast<std::byte>(number), {}, {}, {}};
  switch (*kind) {
    case MessageKind::connect_request: {
      ConnectRequest request;
      request.destination = destination;
      request.source = {1, 1};
      request.max_send_bytes = 1392;
      request.fragment_bytes = 1u << 16;
      encode(request, out);
      break;
    }
    case MessageKind::connect_reply:
      encode(ConnectReply{Status::success, {}, 1392, 1u << 16, {}, 0}, out);
      break;
    case MessageKind::message:
      encode_message_header(0, out);
      out.resize(out.size() + 5);
      break;
    case MessageKind::message_ack:
      encode(MessageAck{0, Status::success}, out);
      break;
    case MessageKind::fragment_ack:
      encode(FragmentAck{0, Status::success}, out);
      break;
    case MessageKind::mailbox_hint:
      encode(MailboxHint{7, 1}, out);
      break;
    case MessageKind::write_request:
    case MessageKind::read_request:
    case MessageKind::read_reply: {
      FragmentMessage fragment;
      fragment.kind = *kind;
      fragment.cookie = 77;
      fragment.length_bytes = 4096;
      fragment.exposed.kind = fragment.remote.handle.kind = ports::HandleKind::region;
      encode(fragment, out);
      break;
    }
    case MessageKind::fragment_released:
      encode(FragmentReleased{77, false}, out);
      break;
    case MessageKind::bye:
      encode(Bye{Status::disconnected, "bye"}, out);
      break;
    case MessageKind::connect_pending:
      encode(ConnectPending{"sim://10.0.0.9:7000", true}, out);
      break;
    case MessageKind::router_hello:
      encode(RouterHello{99, subnet, "sim://10.0.0.66:7000"}, out);
      break;
    case MessageKind::record:
    case MessageKind::map_record: {
      RouterRecord record{99, 1, false, {}};
      record.devices.push_back({subnet, 10'000'000'000, 0, true, false, {}, "sim://10.0.0.66:7000", 0});
      std::vector<std::byte> raw;
      static_cast<void>(encode_record(record, raw));
      encode_record_message(*kind, raw, out);
      break;
    }
    case MessageKind::connect_ack:
    case MessageKind::keepalive:
    case MessageKind::keepalive_ack:
    case MessageKind::end_to_end_keepalive:
    case MessageKind::draining:
    case MessageKind::others_wait:
    case MessageKind::map_request:
    case MessageKind::map_end:
      encode_plain(*kind, out);
      break;
  }
  return out;
}

}  // namespace ccixfer::routing::test
