// Texts of people and peers: addresses, places, sizes, rates, times, and names made printable.
#include "app/config/uri.h"
#include "app/simulate/scenario.h"
#include "core/base/units.h"
#include "routing/map/address.h"
#include "tests/fuzz/fuzz.h"
#include "transports/inet/uri.h"

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
  if (const auto name = inet::parse_uri("tcp", text)) {
    fuzz::must(name->port > 0 && !name->host.empty());
    const auto again = inet::parse_uri("tcp", inet::format_uri("tcp", name->host, name->port));
    fuzz::must(again && again->host == name->host && again->port == name->port);
  }
  if (const auto target = program::split_target(text)) fuzz::must(target->address.size() + target->path.size() <= size + 1);
  if (const auto split = program::split_host_port(text)) fuzz::must(split->host.size() < size);
  static_cast<void>(program::peer_path(text));
  if (const auto duration = simulate::parse_duration(text)) fuzz::must(*duration >= Duration::zero());
  static_cast<void>(parse_size_bytes(text));
  static_cast<void>(parse_rate_bits_per_s(text));
  bool escaped = false;
  const std::string shown = printable(text, &escaped);
  fuzz::must(escaped || shown == text);
  for (const char c : shown) fuzz::must(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  return 0;
}
