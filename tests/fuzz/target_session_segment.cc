// Segments (peek, open), and the walk over a pack's data and over entries inside a segment whose hash is good.
#include "app/session/entry.h"
#include "app/session/limits.h"
#include "app/session/segment.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/session/whole_segment.h"

using namespace ccixfer;

namespace {

void walk_pack(Bytes data) {
  size_t records = 0;
  session::PackRecord record;
  while (!data.empty()) {
    const size_t before = data.size();
    if (!session::next_pack_record(data, record)) break;
    fuzz::must(before - data.size() == session::pack_record_bytes + record.content.size());
    fuzz::must(record.content.size() == record.size_bytes);
    ++records;
  }
  fuzz::must(records <= session::segment_bytes_max / session::pack_record_bytes);
}

void try_open(Bytes bytes) {
  const Result<session::SegmentHeader> peeked = session_test::peek(bytes);
  const Result<session::SegmentHeader> opened = session_test::open(bytes);
  fuzz::must(peeked || !opened);
  if (!opened) return;
  fuzz::must(opened->data_bytes + session::segment_trailer_bytes == bytes.size());
  const Bytes content = bytes.first(opened->data_bytes);
  if (opened->kind == session::SegmentKind::pack) walk_pack(content);
  if (opened->kind == session::SegmentKind::entries) static_cast<void>(session::decode_entries(content, opened->count));
  std::vector<std::byte> again(bytes.begin(), bytes.end());
  fuzz::must(session::seal_hashed(again, *opened) == bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = fuzz::bytes_of(data, size);
  try_open(input);
  walk_pack(input);
  if (size < session::segment_trailer_bytes) return 0;
  std::vector<std::byte> forged(input.begin(), input.end());
  const size_t trailer = size - session::segment_trailer_bytes;
  const Hash128 hash = xxh3_128(input.first(trailer));
  for (size_t i = 0; i < 8; ++i) {
    forged[trailer + 56 + i] = static_cast<std::byte>(i < 4 ? trailer >> (8 * i) : 0);  // data_bytes; count stays below
    forged[trailer + 64 + i] = static_cast<std::byte>(hash.low >> (8 * i));
    forged[trailer + 72 + i] = static_cast<std::byte>(hash.high >> (8 * i));
  }
  forged[trailer + 60] = input[trailer + 60];
  forged[trailer + 61] = input[trailer + 61];
  const uint64_t check = xxh3_64(Bytes(forged).subspan(trailer, 120));
  for (size_t i = 0; i < 8; ++i) forged[trailer + 120 + i] = static_cast<std::byte>(check >> (8 * i));
  try_open(forged);
  return 0;
}
