#include "app/main/process_trust.h"

#include <fmt/format.h>

#include <utility>

#include "core/ports/peer_identity.h"

namespace ccixfer::program {

void ProcessTrust::expect(const std::vector<std::string>& addresses, const trust::PeerId& peer) {
  for (const std::string& address : addresses) expected_[address] = peer;
}

trust::HandshakeOptions ProcessTrust::handshake(trust::HandshakeSide side) {
  return {.side = side,
          .identity = security_.identity.identity,
          .authority = security_.identity.authority,
          .wall_time_s = wall_time_s(),
          .prefers = std::nullopt};
}

Result<void> ProcessTrust::admit_acceptor(const trust::ProvedPeer& peer, std::string_view uri) {
  remember(peer);
  const auto expected = expected_.find(std::string(uri));
  return judge_peer(security_, peer, std::string(uri), expected == expected_.end() ? std::nullopt : std::optional(expected->second),
                    asks_ ? person_at_terminal() : policy::Person::absent);
}

Result<void> ProcessTrust::admit_dialler(const trust::ProvedPeer& peer, ports::Role role) {
  remember(peer);
  if (listener_ == ListenerKind::router) return {};
  const PeerConfig* table = security_.peers().find(peer);
  if (role == ports::Role::hop && (table == nullptr || !table->router)) {
    return fail(
        ErrorKind::not_authorised,
        fmt::format("not authorised: {} may not pass connections on: give its [peer.NAME] router = true on the host behind it",
                    trust::to_string(peer.id)));
  }
  if (listener_ == ListenerKind::measurements && table == nullptr) {
    return fail(
        ErrorKind::not_authorised,
        fmt::format("not authorised: {} may not measure: add to the configuration of the side that serves: [peer.NAME] id = "
                    "\"{}\"",
                    trust::to_string(peer.id), trust::to_string(peer.id)));
  }
  return {};
}

void ProcessTrust::remember(const trust::ProvedPeer& peer) {
  if (security_.peers().find(peer) != nullptr) proved_.insert_or_assign(trust::to_string(peer.id), peer);
}

routing::PeerGrant ProcessTrust::grant_of(const ports::PeerIdentity& peer) const {
  const auto proved = proved_.find(peer.id);
  const PeerConfig* table = proved == proved_.end() ? nullptr : security_.peers().find(proved->second);
  if (table == nullptr) return {};
  return {.route = table->route, .router = table->router, .as = table->as, .admin = table->admin};
}

void ProcessTrust::sent_away(std::string_view uri, const trust::ProvedPeer* peer, const Error& error) {
  if (!tell_sent_away_) return;
  policy::AuditRecord record;
  record.event = policy::AuditRecord::Event::refused;
  if (peer != nullptr) {
    Named who = named(*peer);
    record.peer = std::move(who.id);
    record.name = std::move(who.name);
  }
  record.address = ports::host_in(uri);
  record.outcome = error.kind;
  record.reason = error.message;
  tell_sent_away_(std::move(record));
}

ProcessTrust::Named ProcessTrust::named(const trust::ProvedPeer& peer) const {
  const PeerConfig* table = security_.peers().find(peer);
  const std::string proved = connection::proved_name(peer);
  const std::string id = trust::to_string(peer.id);
  return {id, table != nullptr ? table->name : proved == id ? std::string() : proved};
}

ProcessTrust::Named ProcessTrust::named(const ports::PeerIdentity& peer) const {
  const auto proved = proved_.find(peer.id);
  if (proved != proved_.end()) return named(proved->second);
  return {peer.id, peer.proved == peer.id ? std::string() : peer.proved};
}

std::shared_ptr<ProcessTrust> process_trust(std::optional<Security>& security, ListenerKind listener) {
  return security ? std::make_shared<ProcessTrust>(*security, listener) : nullptr;
}

std::shared_ptr<ProcessTrust> trust_of_dialler(std::optional<Security>& security, const std::vector<Place>& places) {
  std::shared_ptr<ProcessTrust> trust = process_trust(security, ListenerKind::transfers);
  for (const Place& place : places) {
    if (!trust || !place.ticket) continue;
    std::vector<std::string> addresses;
    for (const Target& target : place.targets) addresses.push_back(target.address);
    trust->expect(addresses, place.ticket->listener);
  }
  return trust;
}

}  // namespace ccixfer::program
