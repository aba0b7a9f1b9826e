#include "app/main/gate.h"

#include <fmt/format.h>

#include <span>

#include "app/report/outcome.h"
#include "app/session/session_keys.h"
#include "core/base/check.h"
#include "core/base/log.h"

namespace ccixfer::program {

// The handshake may be long past: who waits for a place can wait for hours.
Result<void> Gate::check_certificate(const trust::ProvedPeer& peer) const {
  const std::string why = why_no_longer_(peer);
  if (why.empty()) return {};
  log(LogLevel::warning, "{}: its certificate holds no longer: {}", trust::to_string(peer.id), why);
  return fail(
      ErrorKind::authentication,
      fmt::format("the certificate of {} holds no longer: it has expired or is revoked: get a new one", trust::to_string(peer.id)));
}

Result<void> Gate::may_wait(const session::Link& link, const session::Open& open, const std::string& path) {
  const trust::ProvedPeer* peer = link.proved();
  CHECK(peer != nullptr);
  if (auto holds = check_certificate(*peer); !holds) return holds;
  Result<policy::Grant> grant = [&]() -> Result<policy::Grant> {
    if (!open.ticket) return policy::authorise(*peer, peers_.find(*peer), direction_, path);
    const auto of = tickets_.look(open.ticket->number, std::as_bytes(std::span(open.ticket->proof)), link.keys()->ticket(), root_,
                                  link.transfer_key());
    if (!of) return tl::unexpected(of.error());
    return policy::authorise(open.ticket->number, *of, direction_, path);
  }();
  if (!grant) return tl::unexpected(grant.error());
  return {};
}

Result<policy::Grant> Gate::admit(const session::Link& link, const session::Open& open, const std::string& path) {
  const trust::ProvedPeer* peer = link.proved();
  CHECK(peer != nullptr);
  if (auto holds = check_certificate(*peer); !holds) return tl::unexpected(holds.error());
  if (!open.ticket) return policy::authorise(*peer, peers_.find(*peer), direction_, path);
  Result<policy::TicketUse> use = tickets_.admit(open.ticket->number, std::as_bytes(std::span(open.ticket->proof)),
                                                 link.keys()->ticket(), root_, link.transfer_key());
  if (!use) return tl::unexpected(use.error());
  Result<policy::Grant> grant = policy::authorise(*use, direction_, path);
  if (grant) uses_.insert_or_assign(&link, Use{std::move(*use), (open.options & session::option_dry_run) != 0});
  return grant;
}

std::string Gate::name_of(const trust::ProvedPeer& peer) const {
  const PeerConfig* table = peers_.find(peer);
  return table == nullptr ? std::string() : table->name;
}

std::optional<Error> Gate::ended(const session::Link& link, const Error& result) {
  const auto use = uses_.find(&link);
  if (use == uses_.end()) return std::nullopt;
  // Files that failed or changed at the source will not be delivered by the same ticket another time: the transfer has ended.
  const bool delivered = report::has_delivered(result.kind) && !use->second.is_dry;
  std::optional<Error> problem;
  if (delivered) {
    if (auto taken = use->second.use.delivered(); !taken) problem = taken.error();
  }
  uses_.erase(use);
  return problem;
}

}  // namespace ccixfer::program
