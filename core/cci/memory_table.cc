#include "core/cci/memory_table.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/slot_table.h"
#include "core/cci/registrations.h"

namespace ccixfer::cci {
namespace {

using ports::Admission;
using ports::Handle;
using ports::HandleKind;
using ports::RemoteRef;
using ports::Ticket;

constexpr uint32_t tickets_max = 1u << 20;
// Tickets of mailboxes and of regions share one number space: the highest bit tells them apart.
constexpr uint32_t mailbox_ticket_bit = 1u << 31;

struct Region {
  bool writable = false;  // by reads of ours
  uint8_t access = 0;
  uint64_t key = 0;
  MutableBytes memory;
  ports::FillProgress* fill = nullptr;  // it is still being filled
  uint32_t lent = 0;                    // reads of which a network has bytes by reference; a slot with any is not used again
  // Of a part: the whole, which has to live; it is lent whenever a part of it is.
  std::optional<SlotName> whole = {};
  Keys keys = {};  // a part has none where those of the whole serve
};

struct Transfer {
  bool write = false;
  bool lent = false;
  SlotName region;  // its name finds nothing any more: deregistered, the transfer is revoked
  uint64_t offset = 0;
  uint64_t length = 0;
};

bool inside(uint64_t offset, uint64_t length, uint64_t size) { return offset <= size && length <= size - offset; }

SlotName slot_name_of(const Handle& handle) { return {static_cast<uint32_t>(handle.number), handle.generation}; }

bool of_mailbox(Ticket ticket) { return (ticket.index & mailbox_ticket_bit) != 0; }
Ticket inner(Ticket ticket) { return {ticket.index & ~mailbox_ticket_bit, ticket.generation}; }

// Connections of one transport, told from those of the others.
class OfTransport final : public ports::RmaTarget {
 public:
  // A mix of both: two that meet share a quota, nothing worse, and of 2^64 values they hardly do.
  OfTransport(MemoryTable& table, uint32_t index) : table_(table), index_(index), tag_(index * 0x9e3779b97f4a7c15ull) {}
  Admission begin_write(uint64_t connection, const RemoteRef& target, uint64_t length_bytes) override {
    if (table_.is_refused(index_, target.handle)) return refused();
    return table_.begin_write_of(index_, connection ^ tag_, target, length_bytes);
  }
  MutableBytes write_span(Ticket ticket, uint64_t at_bytes) override { return table_.write_span(ticket, at_bytes); }
  ports::OperationResult end_write(Ticket ticket, bool complete) override { return table_.end_write(ticket, complete); }
  Admission begin_read(uint64_t connection, const RemoteRef& target, uint64_t length_bytes) override {
    if (table_.is_refused(index_, target.handle)) return refused();
    return table_.begin_read_of(supports_cut_through_, connection ^ tag_, target, length_bytes);
  }
  void set_supports_cut_through(bool supports) { supports_cut_through_ = supports; }
  Bytes read_span(Ticket ticket, uint64_t at_bytes) override { return table_.read_span(ticket, at_bytes); }
  void end_read(Ticket ticket) override { table_.end_read(ticket); }
  [[nodiscard]] bool read_waits(Ticket ticket, uint64_t at_bytes, uint64_t size_bytes) const override {
    return table_.read_waits(ticket, at_bytes, size_bytes);
  }
  [[nodiscard]] const ports::FillProgress* fill_of(Ticket ticket) const override { return table_.fill_of(ticket); }
  bool lend(Ticket ticket) override { return table_.lend(ticket); }
  void set_lender(ports::Lender* lender) override { lender_ = lender; }
  [[nodiscard]] ports::Lender* lender() const { return lender_; }
  [[nodiscard]] bool wanted_back(Ticket ticket) const override { return table_.wanted_back(ticket); }
  [[nodiscard]] uint64_t wants() const override { return table_.wants(); }
  [[nodiscard]] bool hint_waits() const override { return table_.mailboxes().hint_waits(index_); }
  [[nodiscard]] uint32_t index() const { return index_; }
  std::optional<ports::Hint> next_hint() override {
    std::optional<ports::Hint> hint = table_.mailboxes().next_hint(index_);
    if (hint) hint->connection ^= tag_;
    return hint;
  }

 private:
  static Admission refused() {
    Admission admission;
    admission.status = Status::no_memory;
    return admission;
  }
  MemoryTable& table_;
  uint32_t index_;
  uint64_t tag_;
  bool supports_cut_through_ = true;
  ports::Lender* lender_ = nullptr;
};

}  // namespace

struct MemoryTable::Impl {
  ports::Entropy& entropy;
  Counters& counters;
  rvma::MailboxTable mailboxes;
  NamedSlots<Region> regions;  // released once they are deregistered and nothing of them is lent
  NamedSlots<Transfer> transfers;
  uint64_t incarnation = 0;
  uint64_t operations = 0;
  uint64_t wants = 0;
  ports::Lender* lender = nullptr;  // of the transport that has the table itself for its target
  std::vector<std::unique_ptr<OfTransport>> targets;
  Registrations networks;

  Impl(ports::Entropy& e, Counters& c, rvma::MailboxTable::Limits limits) : entropy(e), counters(c), mailboxes(limits, c) {
    while (incarnation == 0) incarnation = entropy.next_u64();
  }

  Handle add(MutableBytes memory, uint8_t access, bool writable);
  Handle name_of(uint32_t index) const;
  static ports::MemoryAccess access_of(const Region& region);
  Region* whole_of(const Region& region);
  Region* slot_of(const Handle& handle);  // also a part whose whole is gone
  Region* with_its_whole(Region* region);
  Region* find(const Handle& handle);
  Registered registered(Region& region, uint32_t transport);
  void remove_keys(uint32_t index);
  void is_back(uint32_t index);
  OfTransport* target_of(const ports::RmaTarget& target) const;
  Transfer* transfer_of(Ticket ticket);
  Region* region_of(const Transfer& transfer);
  Admission begin(const RemoteRef& target, uint64_t length_bytes, bool write, bool cut_through);
  Status check(const RemoteRef& target, uint64_t length_bytes, bool write, bool cut_through);
  Ticket issue(const RemoteRef& target, uint64_t length_bytes, bool write);
  void retire(Ticket ticket);
  void settle();
  void withdraw(Bytes memory);
};

MemoryTable::MemoryTable(ports::Entropy& entropy, Counters& counters, rvma::MailboxTable::Limits mailbox_limits)
    : impl_(std::make_unique<Impl>(entropy, counters, mailbox_limits)) {}
MemoryTable::~MemoryTable() = default;

rvma::MailboxTable& MemoryTable::mailboxes() { return impl_->mailboxes; }
void MemoryTable::turn(Instant now) { impl_->mailboxes.turn(now); }

ports::RmaTarget& MemoryTable::target_of_another_transport() {
  impl_->targets.push_back(std::make_unique<OfTransport>(*this, static_cast<uint32_t>(impl_->targets.size())));
  return *impl_->targets.back();
}

bool MemoryTable::is_target_of_this(const ports::RmaTarget& target) const {
  return &target == this ||
         std::any_of(impl_->targets.begin(), impl_->targets.end(), [&](const auto& one) { return one.get() == &target; });
}

// --- Regions ---

Handle MemoryTable::Impl::name_of(uint32_t index) const {
  const Region& region = regions[index];
  Handle handle;
  handle.kind = HandleKind::region;
  handle.access = region.access & (access_read | access_write);
  handle.generation = regions.name_of(index).generation;
  handle.number = index;
  handle.key = region.key;
  handle.length = region.memory.size();
  return handle;
}

ports::MemoryAccess MemoryTable::Impl::access_of(const Region& region) {
  return {region.writable, (region.access & (access_read | access_read_parts)) != 0,
          (region.access & (access_write | access_puts)) != 0};
}

Handle MemoryTable::Impl::add(MutableBytes memory, uint8_t access, bool writable) {
  if (memory.empty() || regions.in_use() >= regions_max) return {};
  const uint32_t index = regions.take().index;
  Region& region = regions[index];
  region.writable = writable;
  region.access = access;
  region.memory = memory;
  region.fill = nullptr;
  region.whole.reset();
  if (networks.add(memory, access_of(region), region.keys) != Status::success) {
    regions.release(index);
    return {};
  }
  region.key = entropy.next_u64();
  return name_of(index);
}

Handle MemoryTable::register_region(MutableBytes memory, uint8_t access) {
  const bool for_puts = (access & access_puts) != 0;
  return impl_->add(memory, access & (access_read | access_write | access_read_parts | access_puts), !for_puts);
}

Handle MemoryTable::register_region(Bytes memory) {
  // Never written: neither peers (access) nor our own reads (writable) may.
  return impl_->add({const_cast<std::byte*>(memory.data()), memory.size()}, access_read, false);
}

Handle MemoryTable::register_filling(Bytes memory, ports::FillProgress* fill) {
  const Handle handle = register_region(memory);
  if (Region* region = impl_->find(handle)) region->fill = fill;
  return handle;
}

Handle MemoryTable::register_part(const Handle& whole_handle, uint64_t offset_bytes, uint64_t length_bytes, uint8_t access,
                                  ports::FillProgress* fill) {
  Impl& impl = *impl_;
  const Region* named = impl.find(whole_handle);
  if (named == nullptr || length_bytes == 0 || !inside(offset_bytes, length_bytes, named->memory.size())) return {};
  if (impl.regions.in_use() >= regions_max) return {};
  const MutableBytes memory = named->memory.subspan(offset_bytes, length_bytes);
  // A part of a part is one of the same whole.
  const SlotName whole_name = named->whole.value_or(slot_name_of(whole_handle));
  const uint32_t index = impl.regions.take().index;
  const Region& whole = impl.regions[whole_name.index];
  Region& region = impl.regions[index];
  region.writable = whole.writable;
  region.access = access & access_read;
  region.memory = memory;
  region.fill = fill;
  region.whole = whole_name;
  const bool is_covered = region.access == 0 || Impl::access_of(whole).peers_read;
  if (!is_covered && impl.networks.add(memory, Impl::access_of(region), region.keys) != Status::success) {
    impl.regions.release(index);
    return {};
  }
  region.key = impl.entropy.next_u64();
  return impl.name_of(index);
}

Status MemoryTable::deregister_region(const Handle& handle) {
  Region* region = impl_->slot_of(handle);
  if (region == nullptr) return Status::rma_handle;
  if (region->lent > 0) impl_->settle();
  const auto index = static_cast<uint32_t>(handle.number);
  impl_->regions.end_name(index);
  region->fill = nullptr;
  impl_->withdraw(region->memory);
  if (region->lent > 0) {
    ++impl_->wants;
    return Status::busy;
  }
  impl_->remove_keys(index);
  impl_->regions.release(index);
  return Status::success;
}

// With those of its parts: they are over with it.
void MemoryTable::Impl::remove_keys(uint32_t index) {
  Region& region = regions[index];
  if (region.whole || region.keys == nullptr) return networks.remove(region.keys);
  networks.remove(region.keys);
  for (uint32_t i = 0; i < regions.size(); ++i) {
    if (regions.is_live(i) && regions[i].whole && regions[i].whole->index == index) networks.remove(regions[i].keys);
  }
}

void MemoryTable::Impl::settle() {
  if (lender != nullptr) lender->settle();
  for (const auto& target : targets) {
    if (target->lender() != nullptr) target->lender()->settle();
  }
}

// No new write is let in there any more, and those that the networks are in the middle of let go of it.
void MemoryTable::Impl::withdraw(Bytes memory) {
  if (lender != nullptr) lender->withdraw(memory);
  for (const auto& target : targets) {
    if (target->lender() != nullptr) target->lender()->withdraw(memory);
  }
}

void MemoryTable::set_lender(ports::Lender* lender) { impl_->lender = lender; }

bool MemoryTable::in_use(const Handle& handle) const {
  if (handle.kind != HandleKind::region || handle.number >= impl_->regions.size()) return false;
  const uint32_t index = slot_name_of(handle).index;
  return !impl_->regions.is_live(index) && impl_->regions[index].lent > 0 &&
         impl_->regions.name_of(index).generation == handle.generation;
}

Region* MemoryTable::Impl::whole_of(const Region& region) { return region.whole ? regions.find(*region.whole) : nullptr; }

Region* MemoryTable::Impl::slot_of(const Handle& handle) {
  if (handle.kind != HandleKind::region || handle.number >= regions.size()) return nullptr;
  Region* region = regions.find(slot_name_of(handle));
  return region != nullptr && region->key == handle.key ? region : nullptr;
}

// nullptr: also a part whose whole is gone.
Region* MemoryTable::Impl::with_its_whole(Region* region) {
  const bool is_gone = region == nullptr || (region->whole && whole_of(*region) == nullptr);
  return is_gone ? nullptr : region;
}

Region* MemoryTable::Impl::find(const Handle& handle) { return with_its_whole(slot_of(handle)); }

// ---- The networks with which memory is registered.

OfTransport* MemoryTable::Impl::target_of(const ports::RmaTarget& target) const {
  const auto found = std::find_if(targets.begin(), targets.end(), [&](const auto& one) { return one.get() == &target; });
  return found == targets.end() ? nullptr : found->get();
}

void MemoryTable::attach(const ports::RmaTarget& target, ports::Transport& transport) {
  OfTransport& bound = *impl_->target_of(target);
  bound.set_supports_cut_through(transport.supports_cut_through());
  const uint32_t index = bound.index();
  impl_->networks.attach(index, transport);
  for (uint32_t i = 0; i < impl_->regions.size(); ++i) {
    Region& region = impl_->regions[i];
    const bool has_own = !region.whole || region.keys != nullptr;
    if (impl_->regions.is_live(i) && has_own) impl_->networks.add_to(index, region.memory, Impl::access_of(region), region.keys);
  }
}

void MemoryTable::detach(const ports::RmaTarget& target) { impl_->networks.detach(impl_->target_of(target)->index()); }

Registered MemoryTable::Impl::registered(Region& region, uint32_t transport) {
  if (region.keys != nullptr || !region.whole) return Registrations::find(region.keys, transport);
  const Region* whole = whole_of(region);
  return whole == nullptr ? Registered{} : Registrations::find(whole->keys, transport);
}

Status MemoryTable::local_key(const ports::RmaTarget& target, const Handle& handle, ports::MemoryKey& key) {
  if (!impl_->networks.any()) return Status::success;
  Region* region = impl_->find(handle);
  if (region == nullptr) return Status::rma_handle;
  const Registered registered = impl_->registered(*region, impl_->target_of(target)->index());
  key = registered.key;
  return registered.refused ? Status::no_memory : Status::success;
}

bool MemoryTable::is_refused(uint32_t transport, const Handle& handle) {
  if (!impl_->networks.any()) return false;
  Region* region = impl_->find(handle);
  return region != nullptr && impl_->registered(*region, transport).refused;
}

Status MemoryTable::resolve_local(const Handle& handle, uint64_t offset_bytes, uint64_t length_bytes, bool for_writing,
                                  MutableBytes& out) {
  Region* region = impl_->find(handle);
  if (region == nullptr) return Status::rma_handle;
  if (length_bytes == 0 || !inside(offset_bytes, length_bytes, region->memory.size())) return Status::range;
  if (for_writing && !region->writable) return Status::rma_op;
  out = region->memory.subspan(offset_bytes, length_bytes);
  return Status::success;
}

void MemoryTable::name_put(ports::PutOperation& put) {
  if (put.source != 0) return;
  put.source = impl_->incarnation;
  put.operation = ++impl_->operations;
}

// --- Transfers of peers ---

Status MemoryTable::Impl::check(const RemoteRef& target, uint64_t length_bytes, bool write, bool cut_through) {
  const Region* region = find(target.handle);
  if (region == nullptr) return Status::rma_handle;
  if ((region->access & (write ? access_write : access_read)) == 0) return Status::rma_op;
  if (!inside(target.offset_bytes, length_bytes, region->memory.size())) return Status::rma_handle;
  if (length_bytes == 0) return Status::invalid;
  if (region->fill != nullptr && region->fill->once && (region->fill->taken || length_bytes != region->memory.size())) {
    return Status::rma_op;
  }
  // Of memory that is read once, bytes may be in the splice pipe, also when all have come.
  if (region->fill != nullptr && !cut_through && (region->fill->once || !region->fill->complete)) return Status::rma_op;
  if (transfers.in_use() >= tickets_max) return Status::no_buffers;
  return Status::success;
}

Ticket MemoryTable::Impl::issue(const RemoteRef& target, uint64_t length_bytes, bool write) {
  const SlotName name = transfers.take();
  Transfer& transfer = transfers[name.index];
  transfer.write = write;
  transfer.region = slot_name_of(target.handle);
  transfer.offset = target.offset_bytes;
  transfer.length = length_bytes;
  return {name.index, name.generation};
}

Admission MemoryTable::Impl::begin(const RemoteRef& target, uint64_t length_bytes, bool write, bool cut_through) {
  Admission admission;
  admission.status = check(target, length_bytes, write, cut_through);
  if (admission.status == Status::success) {
    admission.ticket = issue(target, length_bytes, write);
    if (ports::FillProgress* fill = find(target.handle)->fill) fill->taken = true;
  } else {
    counters.add(Counter::rma_rejected);
  }
  return admission;
}

Transfer* MemoryTable::Impl::transfer_of(Ticket ticket) { return transfers.find({ticket.index, ticket.generation}); }

Region* MemoryTable::Impl::region_of(const Transfer& transfer) { return with_its_whole(regions.find(transfer.region)); }

// One read less of which a network has bytes. The last one of a region that was deregistered frees it.
void MemoryTable::Impl::is_back(uint32_t index) {
  if (--regions[index].lent > 0 || regions.is_live(index)) return;
  remove_keys(index);
  regions.release(index);
}

void MemoryTable::Impl::retire(Ticket ticket) {
  Transfer& transfer = transfers[ticket.index];
  if (std::exchange(transfer.lent, false)) {
    const std::optional<SlotName> whole = regions[transfer.region.index].whole;
    is_back(transfer.region.index);
    if (whole) is_back(whole->index);
  }
  transfers.release(ticket.index);
}

Admission MemoryTable::begin_write(uint64_t connection, const RemoteRef& target, uint64_t length_bytes) {
  return begin_write_of(0, connection, target, length_bytes);
}

Admission MemoryTable::begin_write_of(uint32_t transport, uint64_t connection, const RemoteRef& target, uint64_t length_bytes) {
  if (target.handle.kind != HandleKind::mailbox) return impl_->begin(target, length_bytes, true, true);
  Admission admission = impl_->mailboxes.begin_write(connection, target, length_bytes, transport);
  admission.ticket.index |= mailbox_ticket_bit;
  return admission;
}

MutableBytes MemoryTable::write_span(Ticket ticket, uint64_t at_bytes) {
  if (of_mailbox(ticket)) return impl_->mailboxes.write_span(inner(ticket), at_bytes);
  const Transfer* transfer = impl_->transfer_of(ticket);
  if (transfer == nullptr || !transfer->write || at_bytes >= transfer->length) return {};
  Region* region = impl_->region_of(*transfer);
  if (region == nullptr) return {};
  return region->memory.subspan(transfer->offset + at_bytes, transfer->length - at_bytes);
}

ports::OperationResult MemoryTable::end_write(Ticket ticket, bool complete) {
  if (of_mailbox(ticket)) return impl_->mailboxes.end_write(inner(ticket), complete);
  const Transfer* transfer = impl_->transfer_of(ticket);
  if (transfer == nullptr || !transfer->write) return Status::error;
  const bool revoked = impl_->region_of(*transfer) == nullptr;
  impl_->retire(ticket);
  if (revoked) return Status::rma_handle;  // the reason why it is not complete, if it is not
  return complete ? Status::success : Status::disconnected;
}

Admission MemoryTable::begin_read(uint64_t connection, const RemoteRef& target, uint64_t length_bytes) {
  return begin_read_of(true, connection, target, length_bytes);
}

Admission MemoryTable::begin_read_of(bool cut_through, uint64_t connection, const RemoteRef& target, uint64_t length_bytes) {
  if (target.handle.kind != HandleKind::mailbox) return impl_->begin(target, length_bytes, false, cut_through);
  Admission admission = impl_->mailboxes.begin_read(connection, target, length_bytes);
  admission.ticket.index |= mailbox_ticket_bit;
  return admission;
}

Bytes MemoryTable::read_span(Ticket ticket, uint64_t at_bytes) {
  if (of_mailbox(ticket)) return impl_->mailboxes.read_span(inner(ticket), at_bytes);
  const Transfer* transfer = impl_->transfer_of(ticket);
  if (transfer == nullptr || transfer->write || at_bytes >= transfer->length) return {};
  Region* region = impl_->region_of(*transfer);
  if (region == nullptr) return {};
  const uint64_t from = transfer->offset + at_bytes;
  uint64_t size = transfer->length - at_bytes;
  // What was in the memory before is nobody's to read.
  if (region->fill != nullptr && !region->fill->complete)
    size = std::min(size, region->fill->placed_bytes - std::min(from, region->fill->placed_bytes));
  return region->memory.subspan(from, size);
}

bool MemoryTable::read_waits(Ticket ticket, uint64_t at_bytes, uint64_t size_bytes) const {
  if (of_mailbox(ticket)) return false;
  const Transfer* transfer = impl_->transfer_of(ticket);
  const Region* region = transfer == nullptr ? nullptr : impl_->region_of(*transfer);
  if (region == nullptr || region->fill == nullptr) return false;
  return !region->fill->ready(transfer->offset + at_bytes, size_bytes, region->memory.size());
}

const ports::FillProgress* MemoryTable::fill_of(Ticket ticket) const {
  if (of_mailbox(ticket)) return nullptr;
  const Transfer* transfer = impl_->transfer_of(ticket);
  const Region* region = transfer == nullptr ? nullptr : impl_->region_of(*transfer);
  return region == nullptr || region->fill == nullptr || !region->fill->once ? nullptr : region->fill;
}

bool MemoryTable::lend(Ticket ticket) {
  Transfer* transfer = of_mailbox(ticket) ? nullptr : impl_->transfer_of(ticket);
  Region* region = transfer == nullptr || transfer->write ? nullptr : impl_->region_of(*transfer);
  if (region == nullptr) return false;
  if (std::exchange(transfer->lent, true)) return true;
  ++region->lent;
  if (Region* whole = impl_->whole_of(*region)) ++whole->lent;
  return true;
}

bool MemoryTable::wanted_back(Ticket ticket) const {
  if (of_mailbox(ticket)) return false;
  const Transfer* transfer = impl_->transfer_of(ticket);
  return transfer != nullptr && transfer->lent && impl_->region_of(*transfer) == nullptr;
}

uint64_t MemoryTable::wants() const { return impl_->wants; }

void MemoryTable::end_read(Ticket ticket) {
  if (of_mailbox(ticket)) return impl_->mailboxes.end_read(inner(ticket));
  const Transfer* transfer = impl_->transfer_of(ticket);
  if (transfer == nullptr || transfer->write) return;
  impl_->retire(ticket);
}

}  // namespace ccixfer::cci
