// The file of the tickets that this account's listeners issued. Text in, text out; pure.
// First line `ccixfer tickets 1`, then one line a ticket, its parts with one space between them:
//   NUMBER SECRET EXPIRES USES DIRECTION ROOT [TRANSFER@TIME...]
// NUMBER, SECRET and TRANSFER in hexadecimal; EXPIRES and TIME in seconds since 1970; USES left; DIRECTION `write` or `read`; ROOT
// with each byte but letters, digits and /._- as %XX. TRANSFER: one that was delivered with the ticket, the oldest first.
// Errors: usage, `FILE:LINE: what is wrong: what to do`. They never contain what stands in the line.
// Bounds: ticket_rows_max, ticket_file_bytes_max.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/trust/grants.h"
#include "core/base/result.h"
#include "core/trust/ticket.h"

namespace ccixfer::policy {

inline constexpr size_t ticket_rows_max = 4096;
inline constexpr size_t ticket_file_bytes_max = 4u << 20;
inline constexpr uint32_t ticket_uses_max = 1000;

using TransferId = std::array<uint8_t, 16>;  // as in app/session/messages.h

struct TicketDelivery {
  TransferId transfer{};
  int64_t at_s = 0;  // since 1970
  friend bool operator==(const TicketDelivery&, const TicketDelivery&) = default;
};

struct TicketRow {
  trust::TicketNumber number{};
  trust::TicketSecret secret{};
  int64_t expires_s = 0;   // since 1970
  uint32_t uses_left = 0;  // at most ticket_uses_max
  Direction direction = Direction::write;
  std::string root;  // absolute
  std::vector<TicketDelivery> delivered;
  TicketRow() = default;
  ~TicketRow() { trust::wipe(secret); }
  TicketRow(const TicketRow&) = default;
  TicketRow& operator=(const TicketRow&) = default;
  friend bool operator==(const TicketRow&, const TicketRow&) = default;
};

// An empty text is a file without tickets. `what` names the file in messages.
[[nodiscard]] Result<std::vector<TicketRow>> parse_ticket_rows(std::string_view text, std::string_view what);
[[nodiscard]] std::string format_ticket_rows(const std::vector<TicketRow>& rows);

[[nodiscard]] std::string to_text(const trust::TicketNumber& number);  // in hexadecimal: for people, and not secret

}  // namespace ccixfer::policy
