#include "routing/map/address.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace ccixfer::routing {
namespace {

constexpr std::string_view prefix = "cci://";
constexpr size_t node_bytes_max = 255;
constexpr size_t endpoint_bytes_max = 32;

bool number_of(std::string_view text, uint32_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

// Printable ASCII without the characters that an address gives a meaning to.
bool plain(std::string_view text, std::string_view forbidden) {
  for (const char c : text) {
    if (c <= ' ' || c > '~' || forbidden.find(c) != std::string_view::npos) return false;
  }
  return !text.empty();
}

bool split_node(std::string_view text, Address& out) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  std::string_view node = text.substr(0, colon);
  const std::string_view endpoint = text.substr(colon + 1);
  const bool bracketed = node.size() >= 2 && node.front() == '[' && node.back() == ']';
  if (bracketed) node = node.substr(1, node.size() - 2);
  if (node.size() > node_bytes_max || endpoint.size() > endpoint_bytes_max) return false;
  if (!plain(node, bracketed ? "[]/" : "[]/:") || !plain(endpoint, "[]/:")) return false;
  out.node = node;
  out.endpoint = endpoint;
  return true;
}

std::string in_brackets(const std::string& node) { return node.find(':') == std::string::npos ? node : "[" + node + "]"; }

using Ip = std::array<uint8_t, 16>;  // IPv4 as ::ffff:a.b.c.d

std::optional<Ip> ip_of(std::string_view node) {
  const std::string text(node.substr(0, node.find('%')));  // without the zone
  Ip ip{};
  if (inet_pton(AF_INET6, text.c_str(), ip.data()) == 1) return ip;
  ip[10] = ip[11] = 0xff;
  if (inet_pton(AF_INET, text.c_str(), &ip[12]) == 1) return ip;
  return std::nullopt;
}

std::string without_zeros(std::string_view port) {
  return std::string(port.substr(std::min(port.find_first_not_of('0'), port.size())));
}

}  // namespace

bool is_same(const Address& a, const Address& b) {
  const auto ip = ip_of(a.node), other = ip_of(b.node);
  const bool same_node = ip && other ? *ip == *other : a.node == b.node;
  return a.subnet == b.subnet && same_node && without_zeros(a.endpoint) == without_zeros(b.endpoint);
}

bool is_host_itself(std::string_view node) {
  if (const auto ip = ip_of(node)) {
    const auto bytes_before = [&](size_t count) {
      return std::count(ip->begin(), ip->begin() + static_cast<std::ptrdiff_t>(count), 0) == static_cast<std::ptrdiff_t>(count);
    };
    const bool is_v4 = bytes_before(10) && (*ip)[10] == 0xff && (*ip)[11] == 0xff;
    return is_v4 ? (*ip)[12] == 127 || (*ip)[12] == 0 : bytes_before(15) && (*ip)[15] <= 1;
  }
  std::string name(node.substr(0, node.find_last_not_of('.') + 1));  // without the dot of the root
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const std::string last = name.substr(name.rfind('.') + 1);  // of a name it is no number
  const bool is_number = last.empty() || last.rfind("0x", 0) == 0 || last.find_first_not_of("0123456789") == std::string::npos;
  return last == "localhost" || (is_number && name.find(':') == std::string::npos);
}

Result<Address> parse_address(std::string_view uri) {
  const auto bad = [&](std::string_view why) {
    return fail(ErrorKind::usage, fmt::format("'{}': {}; expected cci://AS:SUBNET:NODE:ENDPOINT", uri, why));
  };
  if (uri.substr(0, prefix.size()) != prefix) return bad("not a cci:// address");
  std::string_view rest = uri.substr(prefix.size());
  Address address;
  for (uint32_t* number : {&address.subnet.as, &address.subnet.subnet}) {
    const size_t colon = rest.find(':');
    if (colon == std::string_view::npos || !number_of(rest.substr(0, colon), *number))
      return bad("AS and subnet must be 32-bit numbers");
    rest = rest.substr(colon + 1);
  }
  if (!split_node(rest, address)) return bad("bad node or endpoint");
  return address;
}

std::string format_address(const Address& address) {
  return fmt::format("{}{}:{}:{}:{}", prefix, address.subnet.as, address.subnet.subnet, in_brackets(address.node),
                     address.endpoint);
}

std::string native_uri(const Address& address, std::string_view scheme) {
  if (scheme == "shm") return fmt::format("shm://{}", address.node);
  if (scheme == "eth") return fmt::format("eth://{}:{}", address.node, address.endpoint);
  return fmt::format("{}://{}:{}", scheme, in_brackets(address.node), address.endpoint);
}

Result<Address> address_of(SubnetId subnet, std::string_view native_uri) {
  const size_t slashes = native_uri.find("://");
  if (slashes == std::string_view::npos || slashes == 0) {
    return fail(ErrorKind::usage, fmt::format("'{}': not a native address (SCHEME://NODE:ENDPOINT)", native_uri));
  }
  const std::string_view scheme = native_uri.substr(0, slashes);
  const std::string_view rest = native_uri.substr(slashes + 3);
  Address address;
  address.subnet = subnet;
  bool good = false;
  if (scheme == "shm") {
    address.node = rest;
    address.endpoint = "0";
    good = plain(rest, "[]/:") && rest.size() <= node_bytes_max;
  } else if (scheme == "eth" && rest.rfind(':') != std::string_view::npos) {
    address.node = rest.substr(0, rest.rfind(':'));
    address.endpoint = rest.substr(rest.rfind(':') + 1);
    good = plain(address.node, "[]/") && plain(address.endpoint, "[]/:") && address.node.size() <= node_bytes_max;
  } else {
    good = split_node(rest, address);
  }
  if (!good) return fail(ErrorKind::usage, fmt::format("'{}': bad node or endpoint", native_uri));
  return address;
}

}  // namespace ccixfer::routing
