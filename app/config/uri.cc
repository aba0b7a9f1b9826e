#include "app/config/uri.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/base/units.h"
#include "core/trust/ticket.h"
#include "routing/map/address.h"

namespace ccixfer::program {
namespace {

constexpr std::array schemes{"tcp", "udp", "verbs", "eth"};  // of native addresses with a number
constexpr size_t shm_name_bytes_max = 64;

bool is_shm_name(std::string_view name) {
  const auto may_be = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= shm_name_bytes_max && std::all_of(name.begin(), name.end(), may_be);
}

bool has_number(std::string_view scheme) { return std::find(schemes.begin(), schemes.end(), scheme) != schemes.end(); }

tl::unexpected<Error> malformed(std::string_view uri) {
  if (trust::looks_like_ticket(uri))  // as secret as a password: it is not said again
    return fail(ErrorKind::usage, fmt::format("not an address: a ticket: only send and recv take one: write {}", address_forms()));
  return fail(ErrorKind::usage, fmt::format("not an address: {}: write {}, and /PATH after it", printable(uri), address_forms()));
}

// A decimal number of 16 bits and nothing else.
bool number_of(std::string_view text, uint16_t& out) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  return problem == std::errc() && end == text.data() + text.size();
}

// MAC:ID, with six octets in hexadecimal.
Result<HostPort> split_mac_id(std::string_view text) {
  constexpr size_t mac_characters = 17;
  bool is_mac = text.size() > mac_characters;
  for (size_t i = 0; is_mac && i <= mac_characters; ++i)
    is_mac = i % 3 == 2 ? text[i] == ':' : std::string_view("0123456789abcdefABCDEF").find(text[i]) != std::string_view::npos;
  HostPort place;
  if (!is_mac || !number_of(text.substr(mac_characters + 1), place.port))
    return fail(ErrorKind::usage, fmt::format("not an address: {}: write MAC:ID, such as 02:00:00:00:00:01:7", printable(text)));
  place.host = text.substr(0, mac_characters);
  return place;
}

// What stands behind the scheme of a native address.
Result<HostPort> split_place(std::string_view scheme, std::string_view text) {
  return scheme == "eth" ? split_mac_id(text) : split_host_port(text);
}

}  // namespace

std::string address_forms() { return fmt::format("{} or cci://AS:SUBNET:NODE:ENDPOINT", native_forms); }

Result<HostPort> split_host_port(std::string_view text) {
  const auto wrong = [&] {
    return fail(ErrorKind::usage, fmt::format("not an address: {}: write HOST:PORT or [IPv6]:PORT", printable(text)));
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size()) return wrong();
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return wrong();
  }
  const auto odd = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7F || c == '/'; };
  if (host.empty() || host.size() > 255 || std::any_of(host.begin(), host.end(), odd)) return wrong();
  HostPort place{std::string(host), 0};
  if (!number_of(port_text, place.port)) return wrong();
  return place;
}

Result<ListenPlace> split_listen(std::string_view text) {
  ListenPlace place;
  if (const size_t marker = text.find("://"); marker != std::string_view::npos) {
    place.scheme = text.substr(0, marker);
    if (place.scheme == "sock") place.scheme = "udp";
    if (place.scheme == "shm") {
      place.at.host = text.substr(marker + 3);
      if (place.at.host.empty() || is_shm_name(place.at.host)) return place;
      return fail(ErrorKind::usage, fmt::format("cannot listen there: {}: {}", printable(text), shm_name_hint));
    }
    if (!has_number(place.scheme)) {
      return fail(ErrorKind::usage,
                  fmt::format("cannot listen there: {}: write HOST:PORT, or one of {}", printable(text), native_forms));
    }
    text.remove_prefix(marker + 3);
  }
  auto at = split_place(place.scheme, text);
  if (!at) return tl::unexpected(at.error());
  place.at = std::move(*at);
  return place;
}

Result<Target> split_target(std::string_view uri) {
  const size_t marker = uri.find("://");
  if (marker == std::string_view::npos || uri.find('\0') != std::string_view::npos) return malformed(uri);
  Target target;
  target.scheme = uri.substr(0, marker);
  std::string_view rest = uri.substr(marker + 3);
  const size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    target.path = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
  }
  if (target.scheme == "cci") {
    target.routed = true;
    target.address = fmt::format("cci://{}", rest);
    if (const auto address = routing::parse_address(target.address); !address) return malformed(uri);
    return target;
  }
  if (target.scheme == "shm") {
    if (!is_shm_name(rest)) return fail(ErrorKind::usage, fmt::format("not an address: {}: {}", printable(uri), shm_name_hint));
    target.address = fmt::format("shm://{}", rest);
    return target;
  }
  if (target.scheme == "sock") target.scheme = "udp";  // as CCI calls it
  if (!has_number(target.scheme)) return malformed(uri);
  const auto place = split_place(target.scheme, rest);
  if (!place || place->port == 0) return malformed(uri);
  target.address = fmt::format("{}://{}", target.scheme, rest);
  return target;
}

PeerPath peer_path(std::string_view path) {
  PeerPath result;
  result.directory = true;  // as with "", "a/" and "a/."
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view component = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    result.directory = component.empty() || component == "." || slash != std::string_view::npos;
    if (component.empty() || component == ".") continue;
    if (!result.path.empty()) result.path += '/';
    result.path += component;
  }
  return result;
}

}  // namespace ccixfer::program
