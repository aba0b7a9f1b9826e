// The tickets that listeners of this account issued: made, kept over a restart, proved, used up.
//
// - A ticket is good for one direction below one root, the real absolute path of --root or --serve.
// - A use is taken when a transfer ended as delivered, so that one that was interrupted goes on with the same ticket. Until then at
//   most as many transfers run with a ticket as it has uses left, whatever processes share the file (ticket_slots.h). A transfer
//   that runs in one process cannot begin anew in another until its session has ended there.
// - A transfer that runs may begin new sessions although its ticket has expired meanwhile, and one that was delivered may do so for
//   ticket_echo_s more, since its dialler may not have heard the end. What is delivered later than that takes a use of its own,
//   whatever id the dialler gives it; where none is left, nothing comes after it.
// - What a stranger learns: nothing. An unknown number, a wrong proof and another root give the same words. Only who proves the
//   secret is told that the ticket has expired or is used up; for that, rows are kept for ticket_told_s and pruned then.
//
// The file (ticket_rows.h) is read for each question and replaced whole under a lock (`FILE.lock`), so two processes may share it.
// It is 0600 in a directory of 0700. Every call may wait for the disk.
// Errors: authentication: the ticket does not count. network: it is in use, try again. usage, file_io, no_space: the file.
// Ownership: a TicketUse must not outlive its store. Not thread-safe.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/trust/grants.h"
#include "app/trust/ticket_rows.h"
#include "app/trust/ticket_slots.h"
#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/trust/peer_id.h"
#include "core/trust/secret.h"
#include "core/trust/ticket.h"

namespace ccixfer::policy {

inline constexpr int64_t ticket_echo_s = 120;
inline constexpr int64_t ticket_told_s = 7 * 24 * 3600;

struct TicketTerms {
  Direction direction = Direction::write;
  std::string root;           // absolute
  uint64_t expires_in_s = 0;  // more than 0
  uint32_t uses = 1;          // 1 to ticket_uses_max
};

class TicketStore;

// The permission of one session that proved a ticket. It counts as running until it goes.
class TicketUse {
 public:
  TicketUse(TicketUse&&) noexcept;
  TicketUse& operator=(TicketUse&&) noexcept;
  ~TicketUse();
  [[nodiscard]] Direction direction() const { return direction_; }
  [[nodiscard]] const trust::TicketNumber& number() const { return number_; }
  // The transfer ended as delivered: a use is taken, once for each transfer. If the file cannot be written, the use is taken in
  // this process, and written with the next change, before the next session, or at the end of the process.
  [[nodiscard]] Result<void> delivered();

 private:
  friend class TicketStore;
  TicketUse(TicketStore& store, const TicketRow& row, const TransferId& transfer);
  TicketStore* store_;
  trust::TicketNumber number_;
  TransferId transfer_;
  Direction direction_;
};

class TicketStore {
 public:
  using WallClock = std::function<int64_t()>;  // seconds since 1970
  TicketStore(std::string file, WallClock wall_clock_s)
      : file_(std::move(file)), wall_clock_s_(std::move(wall_clock_s)), slots_(file_ + ".running") {}
  ~TicketStore() { write_what_is_left(); }
  TicketStore(const TicketStore&) = delete;
  TicketStore& operator=(const TicketStore&) = delete;

  // Of `addresses` the first that fit into a ticket are taken; usage if none does.
  [[nodiscard]] Result<trust::Ticket> issue(const TicketTerms& terms, const trust::PeerId& listener,
                                            const std::vector<std::string>& addresses);
  // A peer names a ticket and proves that it knows the secret (`exported`: Handshake::exported), for a transfer below `root`.
  [[nodiscard]] Result<TicketUse> admit(const trust::TicketNumber& number, Bytes proof, const trust::Secret& exported,
                                        const std::string& root, const TransferId& transfer);
  // Whether admit() would refuse it for good, and takes nothing: a ticket that others use now is no error. Gives what it is for.
  [[nodiscard]] Result<Direction> look(const trust::TicketNumber& number, Bytes proof, const trust::Secret& exported,
                                       const std::string& root, const TransferId& transfer) const;
  [[nodiscard]] Result<std::optional<TicketRow>> find(const trust::TicketNumber& number) const;

 private:
  friend class TicketUse;
  using Change = std::function<Result<void>(std::vector<TicketRow>&)>;
  struct Delivered {
    trust::TicketNumber number;
    TicketDelivery delivery;
  };
  [[nodiscard]] Result<std::vector<TicketRow>> rows() const;  // with what could not be written yet, without the pruned
  [[nodiscard]] Result<void> change(const Change& apply);
  [[nodiscard]] Result<TicketRow> proved(const trust::TicketNumber& number, Bytes proof, const trust::Secret& exported,
                                         const std::string& root) const;
  // Whether it may run by what is known here, and whether it takes a place among those that run then.
  [[nodiscard]] Result<bool> may_run(const TicketRow& row, const TransferId& transfer) const;
  [[nodiscard]] Result<void> take_place(const trust::TicketNumber& number, const TransferId& transfer);
  [[nodiscard]] size_t running_undelivered(const TicketRow& row) const;
  [[nodiscard]] Result<void> take_use(const trust::TicketNumber& number, const TransferId& transfer);
  void write_what_is_left();
  void left(const trust::TicketNumber& number, const TransferId& transfer);

  std::string file_;
  WallClock wall_clock_s_;
  std::map<trust::TicketNumber, std::map<TransferId, uint32_t>> running_;  // count of sessions
  std::vector<Delivered> unwritten_;
  TicketSlots slots_;  // of transfers that run, and of those whose use is not written yet
};

// What a ticket permits: all below its root, without limits, without device files and set-ID bits. `path` as in authorise().
// not_authorised: the ticket is for the other direction.
[[nodiscard]] Result<Grant> authorise(const TicketUse& ticket, Direction direction, std::string_view path);
[[nodiscard]] Result<Grant> authorise(const trust::TicketNumber& ticket, Direction of_ticket, Direction direction,
                                      std::string_view path);

}  // namespace ccixfer::policy
