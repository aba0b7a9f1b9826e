// Addresses under the common address space: cci://AS:SUBNET:NODE:ENDPOINT, where NODE and ENDPOINT are those of the native
// address on that subnet. IPv6 nodes and MACs stand in brackets.
// Source: routing §VII.A.3.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ccixfer::routing {

struct SubnetId {
  uint32_t as = 0;
  uint32_t subnet = 0;
  friend auto operator<=>(const SubnetId&, const SubnetId&) = default;
};

struct Address {
  SubnetId subnet;
  std::string node;      // without brackets
  std::string endpoint;  // port
  friend bool operator==(const Address&, const Address&) = default;
};

[[nodiscard]] Result<Address> parse_address(std::string_view uri);  // usage
[[nodiscard]] std::string format_address(const Address& address);
[[nodiscard]] std::string native_uri(const Address& address, std::string_view scheme);  // tcp://NODE:ENDPOINT
// Whether both lead to the same place, however their IP addresses and ports are written.
[[nodiscard]] bool is_same(const Address& a, const Address& b);
// The node is the host itself that uses the address: loopback, no address at all, localhost, or a number that some parsers take for
// one of these.
[[nodiscard]] bool is_host_itself(std::string_view node);
[[nodiscard]] Result<Address> address_of(SubnetId subnet, std::string_view native_uri);  // the reverse

}  // namespace ccixfer::routing
