// Texts of people and peers: addresses, sizes, rates, and names made printable.
#include "core/base/units.h"
#include "routing/map/address.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = as_text(fuzz::bytes_of(data, size));
  if (const auto address = routing::parse_address(text)) {
    const auto again = routing::parse_address(routing::format_address(*address));
    fuzz::must(again && *again == *address);
    const auto native = routing::address_of(address->subnet, routing::native_uri(*address, "tcp"));
    fuzz::must(native && *native == *address);
  }
  static_cast<void>(routing::address_of({1, 2}, text));
  static_cast<void>(parse_size_bytes(text));
  static_cast<void>(parse_rate_bits_per_s(text));
  bool escaped = false;
  const std::string shown = printable(text, &escaped);
  fuzz::must(escaped || shown == text);
  for (const char c : shown) fuzz::must(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  return 0;
}
