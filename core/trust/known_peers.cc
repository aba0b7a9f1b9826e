#include "core/trust/known_peers.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/base/lower_case.h"
#include "core/base/units.h"

namespace ccixfer::trust {
namespace {

constexpr size_t shown_bytes_max = 80;  // of a wrong line

bool good_address(std::string_view address) {
  return address.find("://") != std::string_view::npos && !address.starts_with('#') &&
         std::all_of(address.begin(), address.end(), [](char c) { return c > ' ' && c <= '~'; });
}

tl::unexpected<Error> wrong(std::string_view what, size_t number, std::string_view why) {
  return fail(ErrorKind::usage, fmt::format("{}:{}: {}", what, number, why));
}

}  // namespace

Result<KnownPeers> KnownPeers::parse(std::string_view text, std::string_view what) {
  if (text.size() > known_peers_bytes_max) {
    return fail(ErrorKind::usage,
                fmt::format("too long: {}: it may have {} bytes: remove peers that are gone", what, known_peers_bytes_max));
  }
  KnownPeers known;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    const size_t space = line.find(' ');
    const std::string_view address = line.substr(0, space);
    if (space == std::string_view::npos) return wrong(what, number, "a line is an address, a space and an id");
    if (!good_address(address)) {
      return wrong(what, number,
                   fmt::format("not an address: {}: write tcp://HOST:PORT or cci://AS:SUBNET:NODE:EP",
                               printable(address.substr(0, shown_bytes_max))));
    }
    const Result<PeerId> id = parse_peer_id(line.substr(space + 1));
    if (!id) return wrong(what, number, id.error().message);
    known.peers_.push_back({lower_case(address), *id});
  }
  return known;
}

std::optional<PeerId> KnownPeers::find(std::string_view address) const {
  const auto found = std::find_if(peers_.rbegin(), peers_.rend(), [&](const Peer& peer) { return peer.address == address; });
  if (found == peers_.rend()) return std::nullopt;
  return found->id;
}

std::string KnownPeers::line(std::string_view address, const PeerId& id) {
  CHECK(good_address(address));
  return fmt::format("{} {}\n", address, to_string(id));
}

}  // namespace ccixfer::trust
