// The file of issued tickets: refused with one line that names the file and has nothing of the ticket in it, or the same after it
// was written and read again.
#include "app/trust/ticket_rows.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto rows = policy::parse_ticket_rows(as_text(fuzz::bytes_of(data, size)), "tickets");
  if (!rows) {
    const std::string& words = rows.error().message;
    fuzz::must(rows.error().kind == ErrorKind::usage && words.starts_with("tickets:") && words.size() < 200);
    for (const char c : words) fuzz::must(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
    return 0;
  }
  fuzz::must(rows->size() <= policy::ticket_rows_max);
  for (const policy::TicketRow& row : *rows) {
    fuzz::must(row.uses_left <= policy::ticket_uses_max && row.root.starts_with('/') && row.root.find('\0') == std::string::npos);
  }
  const auto again = policy::parse_ticket_rows(policy::format_ticket_rows(*rows), "tickets");
  fuzz::must(again && *again == *rows);
  return 0;
}
