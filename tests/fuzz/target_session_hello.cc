// The hello in a connection's connect data, and the words of a refusal.
#include "app/session/messages.h"
#include "app/session/refusal.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

namespace {

void try_decode(Bytes bytes) {
  const Result<session::Hello> hello = session::decode_hello(bytes);
  if (!hello) return;
  const Result<session::Hello> again = session::decode_hello(session::encode(*hello));  // TLVs are not kept
  fuzz::must(again && again->session == hello->session && again->lane == hello->lane && again->transfer == hello->transfer &&
             again->sealed == hello->sealed && again->moves == hello->moves && again->direction == hello->direction &&
             again->early == hello->early);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = fuzz::bytes_of(data, size);
  try_decode(input);
  if (const auto refusal = session::parse_refusal(as_text(input))) {
    for (const char c : refusal->message) fuzz::must(static_cast<unsigned char>(c) >= 0x20);
  }
  if (size < 4) return 0;
  std::vector<std::byte> forged(input.begin(), input.end());
  fuzz::make_check_good(forged, size - 4, 4);
  try_decode(forged);
  return 0;
}
