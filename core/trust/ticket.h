// A ticket: one line of text that stands for the address of a listener, its identity, and the permission to use it. Whoever has the
// line has the permission until it expires or is used up, so it is as secret as a password.
//
// Text: `cxt1` and base32 (as in peer_id.h, without groups) of: id of the ticket 8 bytes, secret 16, the listener's PeerId 32,
// expiry u64 (seconds since 1970, little-endian), count of addresses u8, for each its length u8 and its text, and 4 bytes of
// SHA-256 over all before, so that a mistyped ticket is not taken for a wrong one. At most ticket_text_bytes_max.
// The secret is never sent: prove() binds it to a handshake, and the listener compares.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/trust/derive.h"
#include "core/trust/peer_id.h"
#include "core/trust/secret.h"

namespace ccixfer::trust {

inline constexpr size_t ticket_text_bytes_max = 2048;
inline constexpr size_t ticket_addresses_max = 8;
inline constexpr size_t ticket_address_bytes_max = 255;
inline constexpr std::string_view ticket_prefix = "cxt1";

using TicketNumber = std::array<uint8_t, 8>;
using TicketSecret = std::array<uint8_t, 16>;

struct Ticket {
  TicketNumber number{};  // public: names the ticket to its listener
  TicketSecret secret{};
  PeerId listener;
  int64_t expires_s = 0;               // since 1970
  std::vector<std::string> addresses;  // URIs, the best first; at least one
  Ticket() = default;
  ~Ticket() { wipe(secret); }
  Ticket(const Ticket&) = default;
  Ticket& operator=(const Ticket&) = default;
};

[[nodiscard]] inline bool looks_like_ticket(std::string_view text) { return text.starts_with(ticket_prefix); }
[[nodiscard]] std::string to_text(const Ticket& ticket);  // CHECKs the bounds
// White space around it is ignored. usage: it is no ticket, or mistyped. The message never contains the ticket.
[[nodiscard]] Result<Ticket> parse_ticket(std::string_view text);
// Proof that we know the secret, for this handshake only (`exported` is Handshake::exported of a label for tickets).
[[nodiscard]] Mac prove(const TicketSecret& secret, const TicketNumber& number, const Secret& exported);

}  // namespace ccixfer::trust
