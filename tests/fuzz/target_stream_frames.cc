// Frames of the stream wire: prefix, check, and the decoder of each kind.
#include <array>

#include "core/wire/connection_frames.h"
#include "core/wire/frame.h"
#include "core/wire/message_frames.h"
#include "core/wire/rma_frames.h"
#include "core/wire/sealed_record.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

namespace {

void try_kind(Bytes header, const wire::FramePrefix& prefix) {
  switch (prefix.kind) {
    case wire::Kind::hello:
      if (const auto hello = wire::decode_hello(header)) {
        fuzz::must(hello->data.size() + hello->options.size() <= header.size());
        static_cast<void>(wire::scan_options(hello->options));
      }
      return;
    case wire::Kind::hello_reply:
      if (const auto reply = wire::decode_hello_reply(header)) fuzz::must(reply->reason.size() <= wire::reason_bytes_max);
      return;
    case wire::Kind::connect_reject:
    case wire::Kind::bye:
      if (const auto notice = wire::decode_end_notice(header)) fuzz::must(notice->reason.size() <= wire::reason_bytes_max);
      return;
    case wire::Kind::message:
      static_cast<void>(wire::decode_message(header));
      return;
    case wire::Kind::message_ack:
      static_cast<void>(wire::decode_message_ack(header));
      return;
    case wire::Kind::rma_write:
      if (const auto write = wire::decode_rma_write(header, prefix)) {
        fuzz::must(write->abort || prefix.payload_bytes <= write->total_bytes - write->offset_bytes);
      }
      return;
    case wire::Kind::rma_read:
      if (const auto read = wire::decode_rma_read(header)) fuzz::must(read->total_bytes > 0);
      return;
    case wire::Kind::rma_read_data:
      if (const auto chunk = wire::decode_rma_read_data(header, prefix)) {
        fuzz::must(prefix.payload_bytes <= chunk->total_bytes - chunk->offset_bytes);
      }
      return;
    case wire::Kind::rma_write_ack:
    case wire::Kind::rma_read_end:
      static_cast<void>(wire::decode_rma_end(header));
      return;
    case wire::Kind::handshake:
      if (const auto bytes = wire::decode_handshake(header)) fuzz::must(bytes->records.size() <= wire::handshake_records_bytes_max);
      return;
    case wire::Kind::mailbox_hint:
      static_cast<void>(wire::decode_mailbox_hint(header));
      return;
    case wire::Kind::connect_accept:
    case wire::Kind::connect_ack:
    case wire::Kind::keepalive:
    case wire::Kind::keepalive_ack:
      return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = fuzz::bytes_of(data, size);
  if (const auto record = wire::decode_sealed_prefix(input)) {
    fuzz::must(record->text_bytes <= wire::sealed_text_bytes_max && !wire::decode_prefix(input));
  }
  const auto prefix = wire::decode_prefix(input);
  if (!prefix) return 0;
  fuzz::must(prefix->header_bytes <= wire::header_bytes_max && prefix->header_bytes >= wire::frame_overhead_bytes);
  if (prefix->header_bytes > size) return 0;
  // The decoders get what passed the check in life; they must hold without it, too.
  const Bytes header = input.first(prefix->header_bytes);
  static_cast<void>(wire::check_holds(header));
  try_kind(header, *prefix);
  return 0;
}
