#include "app/trust/dialled_peer_judge.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "app/config/uri.h"
#include "core/base/lower_case.h"
#include "core/base/units.h"
#include "routing/map/address.h"

namespace ccixfer::policy {
namespace {

Verdict accepted(std::string words) { return {Verdict::Kind::accepted, std::move(words)}; }

tl::unexpected<Error> refused(std::string words) { return fail(ErrorKind::authentication, std::move(words)); }

// One text for each IP address, however it is written; any other name as it is.
std::string same_form(std::string host) {
  for (const int family : {AF_INET, AF_INET6}) {
    std::array<unsigned char, 16> raw{};
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (inet_pton(family, host.c_str(), raw.data()) == 1 && inet_ntop(family, raw.data(), text.data(), text.size()) != nullptr)
      return text.data();
  }
  return host;
}

std::string host_of(const std::string& address) {
  if (address.starts_with("cci://")) {
    const auto routed = routing::parse_address(address);
    return routed ? same_form(routed->node) : "";
  }
  const size_t marker = address.find("://");
  const auto place = program::split_host_port(marker == std::string::npos ? address : address.substr(marker + 3));
  return place ? same_form(place->host) : "";
}

bool names_host(const trust::ProvedPeer& peer, const std::string& host) {
  return peer.certified && !host.empty() &&
         std::any_of(peer.names.begin(), peer.names.end(), [&](const std::string& name) { return same_form(name) == host; });
}

// For a shell, as one word.
std::string quoted(std::string_view text) {
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

std::string wanted_by(const program::PeerConfig& peer) {
  return peer.id ? trust::to_string(*peer.id) : fmt::format("a certificate with the name {}", printable(peer.certified_name));
}

}  // namespace

Result<Verdict> DialledPeerJudge::judge(const trust::ProvedPeer& peer, std::string_view address,
                                        const std::optional<trust::PeerId>& expected, Person person) const {
  const std::string place = lower_case(address);
  if (expected) {
    if (*expected == peer.id) return accepted("the ticket");
    return refused(fmt::format("another peer: {} is {}, but the ticket is of {}: ask for a new ticket", printable(place),
                               trust::to_string(peer.id), trust::to_string(*expected)));
  }
  if (const program::PeerConfig* table = peers_.at(place); table != nullptr) {
    if (is(*table, peer)) return accepted(fmt::format("[peer.{}]", printable(table->name)));
    return refused(fmt::format("the peer at {} is {}, but [peer.{}] says {}: find out why before you change the configuration",
                               printable(place), trust::to_string(peer.id), printable(table->name), wanted_by(*table)));
  }
  if (const auto known = known_.find(place); known) return judge_changed(peer, place, *known);
  if (names_host(peer, host_of(place))) return accepted("its certificate");
  if (const program::PeerConfig* table = peers_.find(peer); table != nullptr && table->addresses.empty())
    return accepted(fmt::format("[peer.{}]", printable(table->name)));
  return judge_new(peer, place, person);
}

Result<Verdict> DialledPeerJudge::judge_changed(const trust::ProvedPeer& peer, const std::string& address,
                                                const KnownPeersFile::Found& known) const {
  if (known.id == peer.id) return accepted("known_peers");
  return refused(
      fmt::format("THE PEER HAS CHANGED: {} is {} now and was {}: somebody may be reading along, or the peer has a new key: if you "
                  "know that it "
                  "has, remove line {} of {}",
                  printable(address), trust::to_string(peer.id), trust::to_string(known.id), known.line, printable(known_.file())));
}

Result<Verdict> DialledPeerJudge::judge_new(const trust::ProvedPeer& peer, const std::string& address, Person person) const {
  const std::string id = trust::to_string(peer.id);
  if (declined_.contains({address, id})) return tl::unexpected(declined(address, peer.id));
  if (accepted_.contains({address, id})) return accepted("your answer");
  if (person == Person::present) {
    return Verdict{Verdict::Kind::ask,
                   fmt::format("The peer at {} is new. Its identity is\n  {}\nand `ccixfer id` there should print the same. "
                               "Is it the right one, and shall it be remembered (yes/no)? ",
                               printable(address), id)};
  }
  std::string to_do = fmt::format("add to the configuration: [peer.NAME] id = \"{}\" address = \"{}\"", id, printable(address));
  if (!known_.file().empty()) {
    const std::string& file = known_.file();
    to_do = fmt::format("mkdir -p -m 700 {} && echo {} >> {}", quoted(printable(file.substr(0, file.rfind('/')))),
                        quoted(printable(address) + " " + id), quoted(printable(file)));
  }
  return refused(fmt::format("new peer: {} is {}: if `ccixfer id` there prints the same, {}", printable(address), id, to_do));
}

bool DialledPeerJudge::may_know(std::string_view address) const {
  const std::string place = lower_case(address);
  if (peers_.at(place) != nullptr || known_.find(place)) return true;
  return std::any_of(peers_.all().begin(), peers_.all().end(),
                     [](const program::PeerConfig& peer) { return peer.addresses.empty(); });
}

Result<void> DialledPeerJudge::remember(std::string_view address, const trust::PeerId& id) {
  const std::string place = lower_case(address);
  auto kept = known_.remember(place, id);
  if (!kept) accepted_.emplace(place, trust::to_string(id));
  return kept;
}

void DialledPeerJudge::decline(std::string_view address, const trust::PeerId& id) {
  declined_.emplace(lower_case(address), trust::to_string(id));
}

Error declined(std::string_view address, const trust::PeerId& id) {
  return {ErrorKind::authentication, fmt::format("not accepted: {} is {}: ask its operator what `ccixfer id` prints there",
                                                 printable(address), trust::to_string(id))};
}

}  // namespace ccixfer::policy
