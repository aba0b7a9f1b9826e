// Anybody's bytes given to a key that opens: nothing opens that this key has not sealed.
// Input: cipher u8, number u64, length of the associated data u8, that data, a tag of 16 bytes, and the rest is the text.
#include <algorithm>

#include "core/trust/seal_key.h"
#include "core/wire/cursor.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wire::Reader in(fuzz::bytes_of(data, size));
  const auto cipher = static_cast<trust::Cipher>(in.u8() & 1);
  const uint64_t number = in.u64();
  const Bytes associated = in.bytes(in.u8());
  const Bytes tag_bytes = in.bytes(trust::tag_bytes);
  const Bytes rest = in.rest();
  if (!in.ok()) return 0;
  trust::Tag tag{};
  std::transform(tag_bytes.begin(), tag_bytes.end(), tag.begin(), [](std::byte byte) { return static_cast<uint8_t>(byte); });
  std::vector<std::byte> text(rest.begin(), rest.end());
  const std::vector<std::byte> plain = text;

  trust::SealKey opens(cipher, trust::Secret(), trust::SealKey::Use::open);
  trust::SealKey seals(cipher, trust::Secret(), trust::SealKey::Use::seal);
  fuzz::must(!opens.open(number, associated, text, tag));
  text = plain;
  const trust::Tag good = seals.seal(number, associated, text);
  std::vector<std::byte> in_pieces = text;
  fuzz::must(opens.open(number, associated, text, good) && text == plain);
  opens.begin(number, associated);
  const size_t cut = std::min<size_t>(tag[0], in_pieces.size());
  opens.update(MutableBytes(in_pieces).first(cut));
  opens.update(MutableBytes(in_pieces).subspan(cut));
  fuzz::must(opens.finish(good) && in_pieces == plain);
  return 0;
}
