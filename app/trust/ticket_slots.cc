#include "app/trust/ticket_slots.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/units.h"

namespace ccixfer::policy {
namespace {

constexpr off_t slots_apart = 1024;  // of two tickets
static_assert(ticket_uses_max <= slots_apart);

// Numbers are random, so that two tickets do not meet in the 53 bits that are left.
off_t first_slot_of(const trust::TicketNumber& ticket) {
  uint64_t number = 0;
  for (const uint8_t byte : ticket) number = number << 8 | byte;
  return static_cast<off_t>(number >> 12) * slots_apart;
}

struct flock range(short type, off_t start, off_t length) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = start;
  lock.l_len = length;
  return lock;
}

}  // namespace

Result<void> TicketSlots::open() {
  if (fd_) return {};
  fd_.reset(::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd_) return {};
  return fail(ErrorKind::file_io, fmt::format("cannot open the slots of tickets: {}: {}: make it writable for this account",
                                              printable(file_), std::strerror(errno)));
}

Result<size_t> TicketSlots::held_by_others(const trust::TicketNumber& ticket) {
  if (auto opened = open(); !opened) return tl::unexpected(opened.error());
  const off_t begin = first_slot_of(ticket);
  size_t count = 0;
  // All of them first, since as a rule there is none. Of several the kernel gives any, so they are asked for one by one.
  for (off_t slot = -1; slot < slots_apart; ++slot) {
    struct flock found = slot < 0 ? range(F_WRLCK, begin, slots_apart) : range(F_WRLCK, begin + slot, 1);
    if (::fcntl(fd_.get(), F_OFD_GETLK, &found) != 0) {
      return fail(ErrorKind::file_io, fmt::format("cannot count the slots of tickets: {}: {}: use a file system with locks",
                                                  printable(file_), std::strerror(errno)));
    }
    const bool is_held = found.l_type != F_UNLCK;
    if (slot < 0 && !is_held) return 0;
    count += slot >= 0 && is_held ? 1u : 0u;
  }
  return count;
}

Result<void> TicketSlots::take(const trust::TicketNumber& ticket, const TransferId& transfer) {
  if (auto opened = open(); !opened) return opened;
  std::map<TransferId, uint32_t>& held = held_[ticket];
  if (held.contains(transfer)) return {};
  for (uint32_t slot = 0; slot < slots_apart; ++slot) {
    const bool ours = std::any_of(held.begin(), held.end(), [slot](const auto& one) { return one.second == slot; });
    struct flock wanted = range(F_WRLCK, first_slot_of(ticket) + slot, 1);
    if (ours) continue;
    if (::fcntl(fd_.get(), F_OFD_SETLK, &wanted) == 0) {
      held.emplace(transfer, slot);
      return {};
    }
    if (errno != EAGAIN && errno != EACCES) break;
  }
  if (held.empty()) held_.erase(ticket);
  return fail(ErrorKind::file_io, fmt::format("cannot take a slot of a ticket: {}: {}: use a file system with locks",
                                              printable(file_), std::strerror(errno)));
}

void TicketSlots::give_back(const trust::TicketNumber& ticket, const TransferId& transfer) {
  const auto held = held_.find(ticket);
  if (held == held_.end()) return;
  const auto slot = held->second.find(transfer);
  if (slot == held->second.end()) return;
  struct flock free = range(F_UNLCK, first_slot_of(ticket) + slot->second, 1);
  static_cast<void>(::fcntl(fd_.get(), F_OFD_SETLK, &free));
  held->second.erase(slot);
  if (held->second.empty()) held_.erase(held);
}

}  // namespace ccixfer::policy
