// The datagram wire: packets, hellos, cookies and the frames of data packets; what decodes encodes to the same bytes.
#include "core/base/hash.h"
#include "tests/fuzz/fuzz.h"
#include "transports/datagram/frames.h"

using namespace ccixfer;

namespace {

void try_frames(Bytes body) {
  wire::Reader in(body);
  while (in.remaining() > 0) {
    const size_t before = in.position();
    const auto frame = datagram::decode_frame(in);
    if (!frame) return;
    std::vector<std::byte> again;
    wire::Writer out(again);
    if (const auto* ack = std::get_if<reliability::Ack>(&*frame)) {
      for (const reliability::Range& range : ack->ranges()) fuzz::must(range.first <= range.last && ack->contains(range.first));
      datagram::encode_ack(out, *ack, body.size() + 1);
    } else {
      std::visit(
          [&](const auto& kind) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(kind)>, reliability::Ack>) datagram::encode(out, kind);
          },
          *frame);
    }
    const Bytes was = body.subspan(before, in.position() - before);
    // A handle's unknown values are refused, its reserved ones kept: every frame is the same again.
    fuzz::must(again.size() == was.size() && std::equal(was.begin(), was.end(), again.begin()));
  }
}

// Whose header has the check that it should have.
void try_sealed(Bytes input) {
  if (input.size() < datagram::packet_header_bytes) return;
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  wire::Reader in(input.subspan(4));
  datagram::PacketHeader header{datagram::PacketKind::sealed, datagram::packet_version};
  header.destination = in.u32();
  header.source = in.u32();
  header.key = in.u64();
  header.number = in.u64();
  datagram::begin_packet(out, header);
  out.bytes(in.rest());
  const auto packet = datagram::open_packet(bytes);
  fuzz::must(packet.has_value() == (bytes.size() >= datagram::packet_head_bytes(true) + datagram::packet_tag_bytes));
  fuzz::must(!packet || packet->header.number == header.number);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = fuzz::bytes_of(data, size);
  static_cast<void>(datagram::open_packet(input));
  try_sealed(input);
  std::vector<std::byte> good(input.begin(), input.end());
  if (good.size() >= datagram::packet_short_header_bytes + datagram::packet_check_bytes) {
    fuzz::make_check_good(good, good.size() - datagram::packet_check_bytes, datagram::packet_check_bytes);
    if (const auto packet = datagram::open_packet(good)) {
      const bool is_sealed = packet->header.kind == datagram::PacketKind::sealed;
      const size_t behind = is_sealed ? 0 : datagram::packet_check_bytes;  // the tag is with the body
      fuzz::must(packet->body.size() + datagram::packet_head_bytes(is_sealed, packet->header.is_short) + behind == good.size());
      fuzz::must(!is_sealed || packet->body.size() >= datagram::packet_tag_bytes);
      if (const auto hello = datagram::decode_hello(packet->body)) {
        fuzz::must(hello->data.size() <= ports::connect_data_bytes_max && hello->options.size() <= wire::hello_options_bytes_max);
      }
      static_cast<void>(datagram::decode_cookie(packet->body));
      if (const auto piece = datagram::decode_handshake_piece(packet->body)) {
        std::vector<std::byte> again;
        wire::Writer out(again);
        datagram::encode(out, *piece);
        fuzz::must(piece->key != 0 && std::equal(again.begin(), again.end(), packet->body.begin(), packet->body.end()));
      }
      try_frames(packet->body);
    }
  }
  try_frames(input);
  return 0;
}
