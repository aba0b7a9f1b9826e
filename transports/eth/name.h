// The name of an endpoint on an Ethernet: eth://MAC:ID, as eth://02:00:00:00:00:01:7. MAC is the hardware address of an interface,
// six octets in hexadecimal with colons between them, and ID tells the endpoints of one interface apart: 1 to 65535. Where somebody
// asks for an id, 0 means any free one. Pure. Errors: usage, with what is wrong.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "transports/datagram/datagram_net.h"

namespace ccixfer::eth {

using Mac = std::array<uint8_t, 6>;

[[nodiscard]] std::optional<Mac> parse_mac(std::string_view text);  // either case; nullopt: it is none
[[nodiscard]] std::string format_mac(const Mac& mac);               // lower case
// Whether one interface alone can have it: not 0, and not of a group (broadcast, multicast).
[[nodiscard]] bool is_unicast(const Mac& mac);

struct Name {
  Mac mac{};
  uint16_t id = 0;
  friend bool operator==(const Name&, const Name&) = default;
};

[[nodiscard]] Result<Name> parse_uri(std::string_view uri);
[[nodiscard]] std::string format_uri(const Name& name);

[[nodiscard]] datagram::Address address_of(const Name& name);
[[nodiscard]] Name name_of(const datagram::Address& address);

}  // namespace ccixfer::eth
