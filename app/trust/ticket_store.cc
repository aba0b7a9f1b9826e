#include "app/trust/ticket_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "app/trust/private_file.h"
#include "core/base/check.h"
#include "core/base/units.h"
#include "core/host/descriptor.h"

namespace ccixfer::policy {
namespace {

tl::unexpected<Error> not_accepted(std::string words) { return fail(ErrorKind::authentication, std::move(words)); }
tl::unexpected<Error> not_known() { return not_accepted("the ticket is not accepted: check it, or ask for a new one"); }

tl::unexpected<Error> in_use() {
  return fail(ErrorKind::network, "the ticket is in use by other transfers: try again later, or ask for a new one");
}

TicketRow* row_of(std::vector<TicketRow>& rows, const trust::TicketNumber& number) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const TicketRow& row) { return row.number == number; });
  return found == rows.end() ? nullptr : &*found;
}

// It was delivered so lately that its dialler may not know. What comes later under its id is a transfer of its own: the id is the
// peer's choice, and one that was used once must not be good for ever, also where the clock is set back.
bool is_echo(const TicketRow& row, const TransferId& transfer, int64_t now_s) {
  return std::any_of(row.delivered.begin(), row.delivered.end(), [&](const TicketDelivery& one) {
    const int64_t age_s = now_s - one.at_s;
    return one.transfer == transfer && age_s >= -ticket_echo_s && age_s <= ticket_echo_s;
  });
}

// The last instant at which anybody could still be told something about the ticket.
bool is_gone(const TicketRow& row, int64_t now_s) {
  int64_t end_s = row.expires_s;
  if (row.uses_left == 0 && !row.delivered.empty()) end_s = std::min(end_s, row.delivered.back().at_s);
  return now_s > end_s && now_s - end_s > ticket_told_s;
}

tl::unexpected<Error> no_place() {
  return fail(ErrorKind::usage, "no place for tickets: this account has no home: set HOME or XDG_STATE_HOME");
}

// A file of its own, since the tickets' is replaced.
Result<host::Descriptor> lock_beside(const std::string& file) {
  if (file.empty()) return no_place();
  const std::string name = file + ".lock";
  host::Descriptor fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  int status = fd ? 0 : -1;
  if (fd) {
    while ((status = ::flock(fd.get(), LOCK_EX)) != 0 && errno == EINTR) {
    }
  }
  if (status != 0) {
    return fail(ErrorKind::file_io, fmt::format("cannot lock the tickets: {}: {}: make it writable for this account",
                                                printable(name), std::strerror(errno)));
  }
  return fd;
}

void wipe(std::string& text) { trust::wipe({reinterpret_cast<uint8_t*>(text.data()), text.size()}); }

// The last one stays: it says when the ticket was used up.
void forget_old_deliveries(TicketRow& row, int64_t now_s) {
  while (row.delivered.size() > 1 && now_s - row.delivered.front().at_s > ticket_echo_s) row.delivered.erase(row.delivered.begin());
}

// A session that began as an echo and ended too late for one finds no use in a ticket that is used up: the ticket stays as it was,
// and is not good for as long again.
void deliver(TicketRow& row, const TicketDelivery& delivery) {
  if (row.uses_left == 0 || is_echo(row, delivery.transfer, delivery.at_s)) return;
  std::erase_if(row.delivered, [&](const TicketDelivery& one) { return one.transfer == delivery.transfer; });
  --row.uses_left;
  forget_old_deliveries(row, delivery.at_s);
  if (row.delivered.size() == ticket_uses_max) row.delivered.erase(row.delivered.begin());
  row.delivered.push_back(delivery);
}

}  // namespace

TicketUse::TicketUse(TicketStore& store, const TicketRow& row, const TransferId& transfer)
    : store_(&store), number_(row.number), transfer_(transfer), direction_(row.direction) {
  ++store.running_[number_][transfer_];
}

TicketUse::TicketUse(TicketUse&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      number_(other.number_),
      transfer_(other.transfer_),
      direction_(other.direction_) {}

TicketUse& TicketUse::operator=(TicketUse&& other) noexcept {
  if (this == &other) return *this;
  if (store_ != nullptr) store_->left(number_, transfer_);
  store_ = std::exchange(other.store_, nullptr);
  number_ = other.number_;
  transfer_ = other.transfer_;
  direction_ = other.direction_;
  return *this;
}

TicketUse::~TicketUse() {
  if (store_ != nullptr) store_->left(number_, transfer_);
}

Result<void> TicketUse::delivered() {
  CHECK(store_ != nullptr);
  return store_->take_use(number_, transfer_);
}

Result<std::vector<TicketRow>> TicketStore::rows() const {
  if (file_.empty()) return no_place();
  auto content = read_trusted(file_, Others::get_nothing, ticket_file_bytes_max);
  if (!content) return tl::unexpected(content.error());
  std::string text = content->value_or("");
  auto rows = parse_ticket_rows(text, file_);
  wipe(text);
  if (*content) wipe(**content);
  if (!rows) return rows;
  for (const Delivered& one : unwritten_) {
    if (TicketRow* row = row_of(*rows, one.number); row != nullptr) deliver(*row, one.delivery);
  }
  std::erase_if(*rows, [now_s = wall_clock_s_()](const TicketRow& row) { return is_gone(row, now_s); });
  return rows;
}

Result<void> TicketStore::change(const Change& apply) {
  if (!file_.empty()) {
    if (auto made = make_directory_of(file_); !made) return made;
  }
  const auto lock = lock_beside(file_);
  if (!lock) return tl::unexpected(lock.error());
  auto all = rows();
  if (!all) return tl::unexpected(all.error());
  if (auto applied = apply(*all); !applied) return applied;
  std::string text = format_ticket_rows(*all);
  const auto written =
      text.size() > ticket_file_bytes_max
          ? fail(ErrorKind::usage, fmt::format("too many tickets: {}: use some up, or remove lines", printable(file_)))
          : write_private(file_, text, Existing::replace);
  wipe(text);
  if (!written) return tl::unexpected(written.error());
  for (const Delivered& one : unwritten_) slots_.give_back(one.number, one.delivery.transfer);
  unwritten_.clear();
  return {};
}

Result<trust::Ticket> TicketStore::issue(const TicketTerms& terms, const trust::PeerId& listener,
                                         const std::vector<std::string>& addresses) {
  CHECK(terms.uses > 0 && terms.uses <= ticket_uses_max && terms.root.starts_with('/'));
  trust::Ticket ticket;
  for (const std::string& address : addresses) {
    if (ticket.addresses.size() < trust::ticket_addresses_max && address.size() <= trust::ticket_address_bytes_max)
      ticket.addresses.push_back(address);
  }
  if (ticket.addresses.empty())
    return fail(ErrorKind::usage, "no address fits into a ticket: listen on one: give --listen HOST:PORT");
  trust::random_bytes(ticket.number);
  trust::random_bytes(ticket.secret);
  ticket.listener = listener;
  ticket.expires_s = wall_clock_s_() + static_cast<int64_t>(terms.expires_in_s);
  TicketRow row;
  row.number = ticket.number;
  row.secret = ticket.secret;
  row.expires_s = ticket.expires_s;
  row.uses_left = terms.uses;
  row.direction = terms.direction;
  row.root = terms.root;
  const auto kept = change([&](std::vector<TicketRow>& rows) -> Result<void> {
    // What is over makes room before what is not.
    const auto over = [now_s = wall_clock_s_()](const TicketRow& one) { return one.uses_left == 0 || one.expires_s < now_s; };
    if (rows.size() >= ticket_rows_max) std::erase_if(rows, over);
    if (rows.size() >= ticket_rows_max)
      return fail(ErrorKind::usage, fmt::format("too many tickets: {}: use some up, or remove lines", printable(file_)));
    rows.push_back(row);
    return {};
  });
  if (!kept) return tl::unexpected(kept.error());
  return ticket;
}

Result<TicketRow> TicketStore::proved(const trust::TicketNumber& number, Bytes proof, const trust::Secret& exported,
                                      const std::string& root) const {
  auto all = rows();
  if (!all) return tl::unexpected(all.error());
  const TicketRow* found = row_of(*all, number);
  // An unknown one takes as long as a known one.
  const bool proved = trust::equal(trust::prove(found != nullptr ? found->secret : trust::TicketSecret{}, number, exported), proof);
  if (found == nullptr || !proved || found->root != root) return not_known();
  return *found;
}

Result<TicketUse> TicketStore::admit(const trust::TicketNumber& number, Bytes proof, const trust::Secret& exported,
                                     const std::string& root, const TransferId& transfer) {
  write_what_is_left();
  const auto row = proved(number, proof, exported, root);
  if (!row) return tl::unexpected(row.error());
  const auto may = may_run(*row, transfer);
  if (!may) return tl::unexpected(may.error());
  if (*may) {
    if (auto taken = take_place(number, transfer); !taken) return tl::unexpected(taken.error());
  }
  return TicketUse(*this, *row, transfer);
}

// Counted anew under the lock: another process may have delivered or begun something meanwhile.
Result<void> TicketStore::take_place(const trust::TicketNumber& number, const TransferId& transfer) {
  const auto lock = lock_beside(file_);
  if (!lock) return tl::unexpected(lock.error());
  const auto all = find(number);
  if (!all) return tl::unexpected(all.error());
  if (!*all) return not_known();
  if (const auto may = may_run(**all, transfer); !may) return tl::unexpected(may.error());
  const auto others = slots_.held_by_others(number);
  if (!others) return tl::unexpected(others.error());
  if (running_undelivered(**all) + *others >= (*all)->uses_left) return in_use();
  return slots_.take(number, transfer);
}

Result<Direction> TicketStore::look(const trust::TicketNumber& number, Bytes proof, const trust::Secret& exported,
                                    const std::string& root, const TransferId& transfer) const {
  const auto row = proved(number, proof, exported, root);
  if (!row) return tl::unexpected(row.error());
  const auto may = may_run(*row, transfer);
  if (!may && may.error().kind != ErrorKind::network) return tl::unexpected(may.error());
  return row->direction;
}

Result<bool> TicketStore::may_run(const TicketRow& row, const TransferId& transfer) const {
  const int64_t now_s = wall_clock_s_();
  const auto running = running_.find(row.number);
  if (running != running_.end() && running->second.contains(transfer)) return false;
  if (is_echo(row, transfer, now_s)) return false;
  if (row.uses_left == 0) return not_accepted("the ticket is used up: ask for a new one");
  if (row.expires_s <= now_s) return not_accepted("the ticket has expired: ask for a new one");
  if (running_undelivered(row) >= row.uses_left) return in_use();
  return true;
}

// Those that were delivered lately have taken their use already.
size_t TicketStore::running_undelivered(const TicketRow& row) const {
  const auto running = running_.find(row.number);
  if (running == running_.end()) return 0;
  const int64_t now_s = wall_clock_s_();
  size_t counted = 0;
  for (const auto& [other, sessions] : running->second) counted += is_echo(row, other, now_s) ? 0u : 1u;
  return counted;
}

// What the disk did not take when it was told. Else it would be lost with this process, and the ticket good again.
void TicketStore::write_what_is_left() {
  if (!unwritten_.empty()) static_cast<void>(change([](std::vector<TicketRow>&) -> Result<void> { return {}; }));
}

Result<void> TicketStore::take_use(const trust::TicketNumber& number, const TransferId& transfer) {
  const Delivered one{number, {transfer, wall_clock_s_()}};
  unwritten_.push_back(one);  // rows() counts it in
  return change([](std::vector<TicketRow>&) -> Result<void> { return {}; });
}

void TicketStore::left(const trust::TicketNumber& number, const TransferId& transfer) {
  const auto ticket = running_.find(number);
  CHECK(ticket != running_.end());
  const auto session = ticket->second.find(transfer);
  CHECK(session != ticket->second.end());
  if (--session->second == 0) {
    const bool to_write = std::any_of(unwritten_.begin(), unwritten_.end(), [&](const Delivered& one) {
      return one.number == number && one.delivery.transfer == transfer;
    });
    if (!to_write) slots_.give_back(number, transfer);
    ticket->second.erase(session);
  }
  if (ticket->second.empty()) running_.erase(ticket);
}

Result<std::optional<TicketRow>> TicketStore::find(const trust::TicketNumber& number) const {
  auto all = rows();
  if (!all) return tl::unexpected(all.error());
  const TicketRow* found = row_of(*all, number);
  return found == nullptr ? std::optional<TicketRow>() : std::optional(*found);
}

Result<Grant> authorise(const TicketUse& ticket, Direction direction, std::string_view path) {
  return authorise(ticket.number(), ticket.direction(), direction, path);
}

Result<Grant> authorise(const trust::TicketNumber& ticket, Direction of_ticket, Direction direction, std::string_view path) {
  const std::string name = fmt::format("ticket {}", to_text(ticket));
  if (of_ticket != direction) {
    return fail(ErrorKind::not_authorised,
                fmt::format("not authorised: {} may not {} {}: it is for the other direction: ask for one of a {}", name,
                            name_of(direction), path.empty() ? "here" : printable(path),
                            direction == Direction::write ? "recv --root" : "send --serve"));
  }
  Grant grant;
  grant.name = name;
  grant.prefixes = {""};
  return grant;
}

}  // namespace ccixfer::policy
