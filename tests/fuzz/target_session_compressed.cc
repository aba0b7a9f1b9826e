// Compressed data of a segment that arrived as it was sent: whatever they say of themselves, the outcome is data of the length that
// the trailer says, or a refusal.
#include "app/session/compression.h"
#include "app/session/limits.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static session::Workspaces workspaces;
  static std::vector<std::byte> buffer(session::segment_bytes_max);
  if (size < 3 || size > 4096) return 0;
  const Bytes input = fuzz::bytes_of(data, size);
  const Bytes compressed = input.subspan(3);
  session::SegmentHeader header;
  header.kind = session::SegmentKind::piece;
  header.data_bytes = static_cast<uint32_t>(compressed.size());
  header.plain_bytes = 1u + (uint32_t{data[0]} | uint32_t{data[1]} << 8 | (uint32_t{data[2]} & 0x3f) << 16);
  header.compressed_check = xxh3_64(compressed);
  if (header.plain_bytes > session::piece_bytes) return 0;
  std::copy(compressed.begin(), compressed.end(), buffer.begin());
  const uint32_t plain_bytes = header.plain_bytes;
  const session::Decompressed outcome = session::decompress(buffer, header, nullptr, workspaces);
  fuzz::must(outcome != session::Decompressed::damaged);
  if (outcome == session::Decompressed::ok) fuzz::must(header.data_bytes == plain_bytes && !header.is_compressed());
  return 0;
}
