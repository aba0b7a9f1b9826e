// What the audit log says of one session, of one attempt that was refused, or of what a router admitted. Values in, text out; pure.
// It names whom it is about, and nobody else. There is no place in it for a key or a ticket's secret.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace ccixfer::policy {

struct AuditRecord {
  enum class Event : uint8_t { session, refused, admitted, connection };  // the last two: of a router
  Event event = Event::session;
  std::string peer;       // cx1-...; "": it proved nothing
  std::string name;       // NAME of its [peer.NAME], the name in its certificate, or `ticket NUMBER`; "": none
  std::string address;    // where it came from
  std::string direction;  // `push`, `pull`; of a router `route`, `link`, `admin`; "": not known yet
  std::string path;       // below the root; "": all of it
  uint64_t files = 0;
  uint64_t bytes = 0;
  bool of_router = false;  // it has `to` then, and no path, files and transfer, as a router knows of none
  std::string to;          // the address that was asked for; of a link, what the other router calls itself
  uint64_t left_out = 0;   // AuditLog's: refusals since the line before that have none
  ErrorKind outcome = ErrorKind::ok;
  std::string reason;  // of an outcome that is not ok
  double seconds = 0;
  std::string transfer;  // 32 hexadecimal digits; "": not known yet
};

// `2026-11-24T15:23:37.042Z` (RFC 3339).
[[nodiscard]] std::string rfc3339(int64_t wall_ms);

// One line of JSON with its newline, ASCII only, so that nothing in a name makes two lines or moves a cursor. A path that is not
// UTF-8 is percent-escaped and flagged by `escaped`.
[[nodiscard]] std::string audit_line(const AuditRecord& record, int64_t wall_ms);

// For the journal: a message for people, and the members of the line as CCIXFER_ fields.
using JournalFields = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] JournalFields audit_fields(const AuditRecord& record, int64_t wall_ms);

}  // namespace ccixfer::policy
