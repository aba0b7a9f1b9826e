#include "app/main/process_trust.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/log.h"
#include "core/ports/peer_identity.h"

namespace ccixfer::program {

void ProcessTrust::expect(const std::vector<std::string>& addresses, const trust::PeerId& peer) {
  for (const std::string& address : addresses) expected_[address] = peer;
}

trust::HandshakeOptions ProcessTrust::handshake(trust::HandshakeSide side) {
  return {.side = side,
          .identity = security_.identity.identity,
          .authority = security_.identity.authority,
          .wall_time_s = wall_clock_s_(),
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

// With the same key, but without a certificate that counts, it is not who it was: what it was granted by that goes too.
void ProcessTrust::remember(const trust::ProvedPeer& peer) {
  const std::string id = trust::to_string(peer.id);
  if (security_.peers().find(peer) == nullptr) {
    proved_.erase(id);
    return;
  }
  proved_.insert_or_assign(id, Known{peer, {}, false, wall_clock_s_(), security_.identity.authority});
}

// At most once a second, unless what we believe has changed.
const std::string& ProcessTrust::judge(Known& known) const {
  const std::optional<trust::Authority>& authority = security_.identity.authority;
  const auto which = [](const std::optional<trust::Authority>& of) { return of ? &of->impl() : nullptr; };
  const int64_t now_s = wall_clock_s_();
  if (now_s != known.judged_s || which(authority) != which(known.judged_by)) {
    known.lapsed = trust::why_no_longer(known.peer, authority, now_s);
    known.judged_s = now_s;
    known.judged_by = authority;
  }
  return known.lapsed;
}

const PeerConfig* ProcessTrust::table_of(const std::string& id) const {
  const auto proved = proved_.find(id);
  if (proved == proved_.end()) return nullptr;
  Known& known = proved->second;
  return judge(known).empty() ? security_.peers().find(known.peer) : nullptr;
}

bool ProcessTrust::look_for_lapsed() {
  bool some = false;
  for (auto& [id, known] : proved_) {
    const bool lapsed = !judge(known).empty();
    if (std::exchange(known.is_told, lapsed) || !lapsed) continue;
    log(LogLevel::warning, "{}: its certificate holds no longer: {}", id, known.lapsed);
    some = true;
  }
  return some;
}

routing::PeerGrant ProcessTrust::grant_of(const ports::PeerIdentity& peer) const {
  const PeerConfig* table = table_of(peer.id);
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
  if (proved != proved_.end()) return named(proved->second.peer);
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
