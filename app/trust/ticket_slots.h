// The transfers that run with the tickets of one file, of all processes that use it: each holds a slot of its ticket, which is a
// byte of `FILE.running` under a lock of the open file (fcntl(2), F_OFD_SETLK). The file has no content. The kernel frees the slots
// of a process that dies.
// Whoever counts and takes holds the lock of the tickets (ticket_store.h), so that two do not both take the last use.
// Errors: file_io, the file cannot be opened or locked. Bounds: ticket_uses_max slots a ticket. Not thread-safe.
#pragma once
#include <cstddef>
#include <map>
#include <string>

#include "app/trust/ticket_rows.h"
#include "core/base/result.h"
#include "core/host/descriptor.h"

namespace ccixfer::policy {

class TicketSlots {
 public:
  explicit TicketSlots(std::string file) : file_(std::move(file)) {}
  // How many transfers of others run with this ticket.
  [[nodiscard]] Result<size_t> held_by_others(const trust::TicketNumber& ticket);
  // Nothing if the transfer holds one already.
  [[nodiscard]] Result<void> take(const trust::TicketNumber& ticket, const TransferId& transfer);
  void give_back(const trust::TicketNumber& ticket, const TransferId& transfer);

 private:
  [[nodiscard]] Result<void> open();

  std::string file_;
  host::Descriptor fd_;
  std::map<trust::TicketNumber, std::map<TransferId, uint32_t>> held_;  // which slot
};

}  // namespace ccixfer::policy
