#include "transports/eth/name.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "core/base/units.h"

namespace ccixfer::eth {
namespace {

constexpr std::string_view prefix = "eth://";
constexpr size_t mac_characters = 17;  // two for each octet, and five colons

tl::unexpected<Error> malformed(std::string_view uri, std::string_view why) {
  return fail(ErrorKind::usage,
              fmt::format("'{}': {}; expected eth://MAC:ID, as eth://02:00:00:00:00:01:7", printable(uri.substr(0, 300)), why));
}

}  // namespace

std::optional<Mac> parse_mac(std::string_view text) {
  if (text.size() != mac_characters) return std::nullopt;
  Mac mac{};
  for (size_t i = 0; i < mac.size(); ++i) {
    const char* first = text.data() + 3 * i;
    const auto [end, error] = std::from_chars(first, first + 2, mac[i], 16);
    if (error != std::errc{} || end != first + 2) return std::nullopt;
    if (i + 1 < mac.size() && first[2] != ':') return std::nullopt;
  }
  return mac;
}

std::string format_mac(const Mac& mac) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

bool is_unicast(const Mac& mac) { return mac != Mac{} && (mac[0] & 1u) == 0; }

Result<Name> parse_uri(std::string_view uri) {
  if (!uri.starts_with(prefix)) return malformed(uri, "of another network");
  std::string_view rest = uri.substr(prefix.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const std::optional<Mac> mac = parse_mac(rest.substr(0, mac_characters));
  if (!mac) return malformed(uri, "no MAC address of six octets");
  if (!is_unicast(*mac)) return malformed(uri, "no interface has this MAC address");
  rest.remove_prefix(mac_characters);
  if (!rest.starts_with(':')) return malformed(uri, "no id");
  rest.remove_prefix(1);
  Name name{*mac, 0};
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), name.id);
  if (error != std::errc{} || end != rest.data() + rest.size() || name.id == 0) return malformed(uri, "no id from 1 to 65535");
  return name;
}

std::string format_uri(const Name& name) { return fmt::format("{}{}:{}", prefix, format_mac(name.mac), name.id); }

datagram::Address address_of(const Name& name) {
  datagram::Address address;
  for (const uint8_t octet : name.mac) address.high = address.high << 8 | octet;
  address.port = name.id;
  return address;
}

Name name_of(const datagram::Address& address) {
  Name name;
  for (size_t i = 0; i < name.mac.size(); ++i) name.mac[i] = static_cast<uint8_t>(address.high >> (8 * (name.mac.size() - 1 - i)));
  name.id = static_cast<uint16_t>(address.port);
  return name;
}

}  // namespace ccixfer::eth
