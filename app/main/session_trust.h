// What the transfer commands make of the trust of their process (security.h): who they are in handshakes, and whom they accept as
// the peer that they dialled.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/config/uri.h"
#include "app/main/dialled.h"
#include "app/main/security.h"

namespace ccixfer::program {

[[nodiscard]] int64_t wall_time_s();  // since 1970
[[nodiscard]] session::SealSetup seal_setup(const Security& security);
// Whether a peer that was dialled at that address is the right one. Asks the person at the terminal about a new one, if there is
// one, and blocks for as long; remembers it when they say yes. `expected`: it must be this one. authentication: it is not.
[[nodiscard]] Result<void> judge_peer(Security& security, const trust::ProvedPeer& peer, const std::string& address,
                                      const std::optional<trust::PeerId>& expected, policy::Person person = person_at_terminal());

// Where a transfer goes to or comes from, as a user named it: an address, or a ticket (TICKET, @FILE, or - for standard input),
// which a path may follow (TICKET/PATH, @FILE/PATH and @-/PATH: behind the one that is in the file or comes by standard input).
struct Place {
  std::vector<Target> targets;  // of a ticket all addresses that it holds, the best first; else one
  std::optional<trust::Ticket> ticket;
};
// usage: it is neither, or its path is too long. authentication: the ticket has expired, or with --insecure, which a ticket
// excludes. Blocks for `-`.
[[nodiscard]] Result<Place> find_place(const std::string& text, const CommonOptions& common);
// usage: a peer cannot be asked for this path, as it is too long.
[[nodiscard]] Result<void> check_path(const std::string& path);

// Adds to the plan what a sealed session with that place needs. A new peer is shown to the person at the terminal, if there is one,
// and remembered when they say yes. With a ticket its listener is who is expected. `security` lives as long as the plan.
void secure_plan(DialPlan& plan, Security& security, const Place& place);

}  // namespace ccixfer::program
