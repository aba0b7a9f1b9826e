#include "core/wire/frame.h"

#include <array>

#include "core/base/check.h"
#include "core/base/hash.h"
#include "core/wire/connection_frames.h"
#include "core/wire/message_frames.h"
#include "core/wire/rma_frames.h"

namespace ccixfer::wire {
namespace {

struct Shape {
  const char* name;
  size_t header_min;
  size_t header_max;
  uint32_t payload_max;
  uint8_t flags;
};

constexpr std::array<Shape, kind_last + 1> shapes = {{
    {"", 0, 0, 0, 0},
    {"hello", hello_header_bytes_min, hello_header_bytes_min + ports::connect_data_bytes_max + hello_options_bytes_max, 0, 0},
    {"hello_reply", hello_reply_header_bytes_min, hello_reply_header_bytes_min + reason_bytes_max, 0, 0},
    {"connect_accept", frame_overhead_bytes, frame_overhead_bytes, 0, 0},
    {"connect_reject", end_notice_header_bytes_min, end_notice_header_bytes_min + reason_bytes_max, 0, 0},
    {"connect_ack", frame_overhead_bytes, frame_overhead_bytes, 0, 0},
    {"message", message_header_bytes, message_header_bytes, message_bytes_max, 0},
    {"message_ack", message_ack_header_bytes, message_ack_header_bytes, 0, 0},
    {"rma_write", rma_write_header_bytes, rma_write_header_bytes, chunk_bytes_max, flag_abort},
    {"rma_write_ack", rma_end_header_bytes, rma_end_header_bytes, 0, 0},
    {"rma_read", rma_read_header_bytes, rma_read_header_bytes, 0, 0},
    {"rma_read_data", rma_read_data_header_bytes, rma_read_data_header_bytes, chunk_bytes_max, 0},
    {"rma_read_end", rma_end_header_bytes, rma_end_header_bytes, 0, 0},
    {"keepalive", frame_overhead_bytes, frame_overhead_bytes, 0, 0},
    {"keepalive_ack", frame_overhead_bytes, frame_overhead_bytes, 0, 0},
    {"bye", end_notice_header_bytes_min, end_notice_header_bytes_min + reason_bytes_max, 0, 0},
    {"mailbox_hint", mailbox_hint_header_bytes, mailbox_hint_header_bytes, 0, 0},
    {"handshake", handshake_header_bytes_min + 1, handshake_header_bytes_min + handshake_records_bytes_max, 0, 0},
}};
static_assert(hello_header_bytes_min + ports::connect_data_bytes_max + hello_options_bytes_max <= header_bytes_max);

uint32_t check_of(Bytes header) { return static_cast<uint32_t>(xxh3_64(header.first(header.size() - check_bytes))); }

}  // namespace

const char* to_string(Kind kind) {
  const auto value = static_cast<uint8_t>(kind);
  return value >= kind_first && value <= kind_last ? shapes[value].name : "unknown";
}

std::optional<FramePrefix> decode_prefix(Bytes bytes) {
  if (bytes.size() < prefix_bytes) return std::nullopt;
  Reader in(bytes.first(prefix_bytes));
  const uint8_t kind = in.u8();
  FramePrefix prefix;
  prefix.flags = in.u8();
  prefix.header_bytes = in.u16();
  prefix.payload_bytes = in.u32();
  if (kind < kind_first || kind > kind_last) return std::nullopt;
  prefix.kind = static_cast<Kind>(kind);
  const Shape& shape = shapes[kind];
  if ((prefix.flags & ~shape.flags) != 0 || prefix.header_bytes < shape.header_min || prefix.header_bytes > shape.header_max ||
      prefix.payload_bytes > shape.payload_max) {
    return std::nullopt;
  }
  return prefix;
}

bool check_holds(Bytes header) {
  if (header.size() < frame_overhead_bytes || header.size() > header_bytes_max) return false;
  Reader in(header.last(check_bytes));
  return in.u32() == check_of(header);
}

HeaderWriter::HeaderWriter(Writer& out, Kind kind, uint32_t payload_bytes, uint8_t flags) : out_(out), start_(out.position()) {
  std::byte* prefix = out_.claim(prefix_bytes);
  if (prefix == nullptr) return;
  store_little(prefix, static_cast<uint8_t>(kind));
  store_little(prefix + 1, flags);
  store_little(prefix + 2, uint16_t{0});
  store_little(prefix + 4, payload_bytes);
}

HeaderWriter::~HeaderWriter() {
  std::byte* check = out_.claim(check_bytes);
  if (check == nullptr) return;
  const size_t size = out_.position() - start_;
  CHECK(size <= header_bytes_max);
  std::byte* header = check + check_bytes - size;
  store_little(header + 2, static_cast<uint16_t>(size));
  store_little(check, check_of({header, size}));
}

Reader fields_of(Bytes header) {
  if (header.size() < frame_overhead_bytes) return Reader({});
  return Reader(header.subspan(prefix_bytes, header.size() - frame_overhead_bytes));
}

}  // namespace ccixfer::wire
