// Routing messages: each decoder on any bytes (a router picks by kind; a wrong pick must not hurt either).
#include "routing/map/record.h"
#include "routing/transport/messages.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = fuzz::bytes_of(data, size);
  static_cast<void>(routing::kind_of(input));
  if (const auto request = routing::decode_connect_request(input)) {
    fuzz::must(request->destination.size() <= routing::destination_bytes_max);  // `crossed` is bounded by who forwards
    fuzz::must(request->data.size() <= ports::connect_data_bytes_max);
    std::vector<std::byte> again;
    routing::encode(*request, again);
    fuzz::must(routing::decode_connect_request(again).has_value());
  }
  if (const auto reply = routing::decode_connect_reply(input)) {
    fuzz::must(reply->hops.size() <= size_t{routing::hops_max} + 1 && reply->reason.size() <= routing::reason_bytes_max);
    std::vector<std::byte> again;
    routing::encode(*reply, again);
    fuzz::must(routing::decode_connect_reply(again).has_value());
  }
  if (const auto message = routing::decode_message(input)) fuzz::must(message->payload.size() <= size);
  static_cast<void>(routing::decode_message_ack(input));
  static_cast<void>(routing::decode_mailbox_hint(input));
  if (const auto ack = routing::decode_fragment_ack(input)) {
    std::vector<std::byte> again;
    routing::encode(*ack, again);
    fuzz::must(routing::decode_fragment_ack(again)->ending.detail == ack->ending.detail);
  }
  if (const auto fragment = routing::decode_fragment(input)) {
    std::vector<std::byte> again;
    routing::encode(*fragment, again);
    fuzz::must(routing::decode_fragment(again).has_value());
  }
  static_cast<void>(routing::decode_fragment_released(input));
  if (const auto bye = routing::decode_bye(input)) fuzz::must(bye->reason.size() <= routing::reason_bytes_max);
  static_cast<void>(routing::decode_router_hello(input));
  if (const auto waits = routing::decode_connect_pending(input)) {
    fuzz::must(waits->node.size() <= routing::hop_node_bytes_max);
    std::vector<std::byte> again;
    routing::encode(*waits, again);
    fuzz::must(routing::decode_connect_pending(again) == waits);
  }
  const auto kind = routing::kind_of(input);
  if (kind == routing::MessageKind::record || kind == routing::MessageKind::map_record) {
    static_cast<void>(routing::decode_record(routing::record_of(input)));
  }
  return 0;
}
