// What the two sides of a measurement tell one another: what decodes is within the plan's bounds, and encodes to the same bytes.
#include <algorithm>

#include "app/bench/messages.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = fuzz::bytes_of(data, size);
  const auto same = [&](const std::vector<std::byte>& again) {
    fuzz::must(std::equal(again.begin(), again.end(), input.begin(), input.end()));
  };
  if (const auto purpose = bench::decode_hello(input)) same(bench::encode_hello(*purpose));
  static_cast<void>(bench::kind_of(input));
  if (const auto open = bench::decode_open(input)) {
    fuzz::must(open->slots <= bench::depth_max && open->slot_bytes <= bench::size_bytes_max);
    fuzz::must(open->slots * open->slot_bytes <= bench::memory_bytes_max && open->reply_bytes <= open->slot_bytes);
    same(bench::encode(*open));
  }
  if (const auto opened = bench::decode_opened(input)) same(bench::encode(*opened));
  if (const auto address = bench::decode_address(input)) same(bench::encode_address(*address));
  if (const auto want = bench::decode_want(input)) same(bench::encode_want(*want));
  return 0;
}
