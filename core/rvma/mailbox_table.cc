#include "core/rvma/mailbox_table.h"

#include <deque>
#include <unordered_map>
#include <vector>

#include "core/base/check.h"
#include "core/rvma/mailbox.h"

namespace ccixfer::rvma {
namespace {

constexpr uint32_t tickets_max = 1u << 20;
constexpr size_t closed_remembered_max = 4096;  // a cache: an older closed mailbox is answered 'unknown'

using Key = OperationKey;

struct Slot {
  uint32_t generation = 1;
  Mailbox* mailbox = nullptr;  // nullptr: free. Mailbox and buffer stay while they have a ticket
  Buffer* buffer = nullptr;
  Key key;
  uint64_t begin = 0;
  uint64_t length = 0;
};

}  // namespace

struct MailboxTable::Impl {
  Limits limits;
  Counters& counters;
  std::unordered_map<uint64_t, Mailbox> mailboxes;
  std::vector<Slot> slots;
  std::vector<uint32_t> free_slots;
  std::deque<Completion> completions;  // bound: the buffers posted
  std::vector<std::optional<uint64_t>> recently_closed;

  Impl(Limits l, Counters& c) : limits(l), counters(c) {}

  Mailbox* find(uint64_t number) {
    const auto it = mailboxes.find(number);
    return it == mailboxes.end() ? nullptr : &it->second;
  }
  std::optional<uint64_t>& closed_entry(uint64_t number) {
    if (recently_closed.empty()) recently_closed.resize(closed_remembered_max);
    return recently_closed[(number * 0x9e3779b97f4a7c15ull) >> 52];
  }

  Status admit(const ports::RemoteRef& target, uint64_t length_bytes, Mailbox*& mailbox, bool& already_placed);
  Status admit_bound(Mailbox& mailbox, const ports::RemoteRef& target, uint64_t length_bytes, const Extent& extent,
                     bool& already_placed);
  Status admit_new(Mailbox& mailbox, const ports::RemoteRef& target, const Extent& extent);
  ports::Ticket issue(Mailbox& mailbox, const Key& key, uint64_t begin, uint64_t length);
  Slot* slot_of(ports::Ticket ticket);

  void placed(Mailbox& mailbox, Buffer& buffer, const Slot& slot);
  void settle(Mailbox& mailbox);
  void publish(Mailbox& mailbox);
  void cancel(const Mailbox& mailbox, const Buffer& buffer, uint64_t epoch);
  void remove_if_drained(Mailbox& mailbox);
};

MailboxTable::MailboxTable(Limits limits, Counters& counters) : impl_(std::make_unique<Impl>(limits, counters)) {}
MailboxTable::~MailboxTable() = default;

// --- The owner's side ---

Status MailboxTable::open(uint64_t mailbox, const MailboxOptions& options) {
  if (impl_->find(mailbox) != nullptr) return Status::busy;
  if (impl_->mailboxes.size() >= impl_->limits.mailboxes_max) return Status::no_memory;
  Mailbox& opened = impl_->mailboxes[mailbox];
  opened.options = options;
  opened.number = mailbox;
  std::optional<uint64_t>& entry = impl_->closed_entry(mailbox);
  if (entry == mailbox) entry.reset();
  return Status::success;
}

Status MailboxTable::post(uint64_t mailbox, MutableBytes buffer, uint64_t context) {
  Mailbox* found = impl_->find(mailbox);
  if (found == nullptr) return Status::mailbox_unknown;
  if (found->closed) return Status::mailbox_closed;
  if (buffer.empty()) return Status::invalid;
  if (found->buffers.size() >= impl_->limits.buffers_per_mailbox_max) return Status::no_buffers;
  Buffer& posted = found->buffers.emplace_back();
  posted.memory = buffer;
  posted.context = context;
  return Status::success;
}

Status MailboxTable::close(uint64_t mailbox) {
  Mailbox* found = impl_->find(mailbox);
  if (found == nullptr) return Status::mailbox_unknown;
  if (found->closed) return Status::mailbox_closed;
  found->closed = true;
  const bool head_in_use = !found->buffers.empty() && found->buffers.front().placing > 0;
  uint64_t epoch = found->epoch;
  for (auto it = found->buffers.begin(); it != found->buffers.end(); ++epoch) {
    it->state = BufferState::revoked;
    if (head_in_use && it == found->buffers.begin()) {
      ++it;
      continue;
    }
    impl_->cancel(*found, *it, epoch);
    it = found->buffers.erase(it);
  }
  impl_->remove_if_drained(*found);
  return Status::success;
}

Status MailboxTable::increment_epoch(uint64_t mailbox) {
  Mailbox* found = impl_->find(mailbox);
  if (found == nullptr) return Status::mailbox_unknown;
  if (found->closed) return Status::mailbox_closed;
  if (found->buffers.empty()) return Status::again;
  Buffer& head = found->buffers.front();
  if (head.state == BufferState::revoked) return Status::busy;
  head.state = BufferState::revoked;
  impl_->settle(*found);
  return Status::success;
}

std::optional<uint64_t> MailboxTable::epoch(uint64_t mailbox) const {
  const Mailbox* found = impl_->find(mailbox);
  if (found == nullptr || found->closed) return std::nullopt;
  return found->epoch;
}

bool MailboxTable::closing(uint64_t mailbox) const {
  const Mailbox* found = impl_->find(mailbox);
  return found != nullptr && found->closed;
}

std::optional<Completion> MailboxTable::next_completion() {
  if (impl_->completions.empty()) return std::nullopt;
  Completion completion = impl_->completions.front();
  impl_->completions.pop_front();
  return completion;
}

// --- The transport's side ---

// A put finds its mailbox and the head's memory, fragment by fragment, whatever the order.
ports::Admission MailboxTable::begin_write(uint64_t connection, const ports::RemoteRef& target, uint64_t length_bytes) {
  static_cast<void>(connection);  // every fragment holds its own ticket, and the transport ends those of a dead connection
  ports::Admission admission;
  Mailbox* mailbox = nullptr;
  admission.status = impl_->admit(target, length_bytes, mailbox, admission.already_placed);
  if (admission.status != Status::success) {
    impl_->counters.add(Counter::mailbox_rejected);
    // An answer cannot be left out here (the initiator's operation would hang): without NACKs it tells nothing.
    if (mailbox != nullptr && !mailbox->options.negative_acks) admission.status = Status::error;
    return admission;
  }
  if (!admission.already_placed) {
    admission.ticket = impl_->issue(*mailbox, {target.put.source, target.put.operation}, target.offset_bytes, length_bytes);
  }
  return admission;
}

MutableBytes MailboxTable::write_span(ports::Ticket ticket, uint64_t at_bytes) {
  const Slot* slot = impl_->slot_of(ticket);
  if (slot == nullptr || slot->buffer->state == BufferState::revoked || at_bytes >= slot->length) return {};
  return slot->buffer->memory.subspan(slot->begin + at_bytes, slot->length - at_bytes);
}

Status MailboxTable::end_write(ports::Ticket ticket, bool complete) {
  Slot* slot = impl_->slot_of(ticket);
  if (slot == nullptr) return Status::error;
  const Slot ended = *slot;
  slot->mailbox = nullptr;
  if (++slot->generation == 0) slot->generation = 1;
  impl_->free_slots.push_back(ticket.index);

  Mailbox& mailbox = *ended.mailbox;
  Buffer& buffer = *ended.buffer;
  --buffer.placing;
  if (buffer.state == BufferState::revoked) {
    const Status status = mailbox.closed ? Status::mailbox_closed : Status::mailbox_stale;
    impl_->settle(mailbox);
    return status;  // the reason why it is not complete, if it is not
  }
  if (complete) {
    impl_->placed(mailbox, buffer, ended);
  } else {
    const auto operation = buffer.bound.find(ended.key);
    static_cast<void>(operation->second.end(ended.begin, ended.begin + ended.length, false));
    if (operation->second.untouched()) buffer.bound.erase(operation);  // as if it had never come
  }
  impl_->settle(mailbox);
  return complete ? Status::success : Status::disconnected;
}

// --- Admission ---

Status MailboxTable::Impl::admit(const ports::RemoteRef& target, uint64_t length_bytes, Mailbox*& mailbox, bool& already_placed) {
  mailbox = find(target.handle.number);
  if (mailbox == nullptr) {
    return closed_entry(target.handle.number) == target.handle.number ? Status::mailbox_closed : Status::mailbox_unknown;
  }
  if (target.handle.key != mailbox->options.key) return Status::mailbox_key;
  if (mailbox->closed) return Status::mailbox_closed;
  const Extent extent = extent_of(target, length_bytes);
  if (extent.status != Status::success) return extent.status;
  if (free_slots.empty() && slots.size() >= tickets_max) return Status::no_buffers;

  const Key key{target.put.source, target.put.operation};
  if (!mailbox->buffers.empty() && mailbox->buffers.front().bound.contains(key)) {
    return admit_bound(*mailbox, target, length_bytes, extent, already_placed);
  }
  const Outcome outcome = mailbox->outcome(key);
  already_placed = outcome == Outcome::placed;
  if (already_placed) return Status::success;
  if (outcome == Outcome::aborted) return Status::mailbox_stale;
  if (outcome == Outcome::forgotten && target.put.epoch == ports::PutOperation::any_epoch) return Status::mailbox_stale;
  return admit_new(*mailbox, target, extent);
}

Status MailboxTable::Impl::admit_bound(Mailbox& mailbox, const ports::RemoteRef& target, uint64_t length_bytes,
                                       const Extent& extent, bool& already_placed) {
  Buffer& head = mailbox.buffers.front();
  if (head.state == BufferState::revoked) return Status::mailbox_stale;
  const Operation& operation = head.bound.at({target.put.source, target.put.operation});
  // Fragments of one put that contradict one another: not ours to guess which one is right.
  const bool same_epoch = target.put.epoch == ports::PutOperation::any_epoch || target.put.epoch == mailbox.epoch;
  if (!same_epoch || !operation.same_extent(extent.base_bytes, extent.total_bytes)) return Status::invalid;
  switch (operation.state(target.offset_bytes, target.offset_bytes + length_bytes)) {
    case FragmentState::placing:
      return Status::mailbox_busy;
    case FragmentState::placed:
      already_placed = true;
      return Status::success;
    case FragmentState::absent:
      break;
  }
  return operation.full() ? Status::no_buffers : Status::success;
}

Status MailboxTable::Impl::admit_new(Mailbox& mailbox, const ports::RemoteRef& target, const Extent& extent) {
  const bool expects = target.put.epoch != ports::PutOperation::any_epoch;
  if (expects && target.put.epoch < mailbox.epoch) return Status::mailbox_stale;
  if (expects && target.put.epoch > mailbox.epoch) return Status::mailbox_empty;
  if (mailbox.buffers.empty()) return Status::mailbox_empty;
  Buffer& head = mailbox.buffers.front();
  // It will never take another operation: whoever wants this very epoch is late, anybody else comes back for the next.
  if (head.state != BufferState::filling) return expects ? Status::mailbox_stale : Status::mailbox_empty;
  if (extent.base_bytes + extent.total_bytes > head.memory.size()) return Status::mailbox_too_long;
  if (head.bound.size() >= limits.operations_per_buffer_max) return Status::no_buffers;
  head.bound.emplace(Key{target.put.source, target.put.operation}, Operation(extent.base_bytes, extent.total_bytes));
  return Status::success;
}

ports::Ticket MailboxTable::Impl::issue(Mailbox& mailbox, const Key& key, uint64_t begin, uint64_t length) {
  uint32_t index = 0;
  if (free_slots.empty()) {
    index = static_cast<uint32_t>(slots.size());
    slots.emplace_back();
  } else {
    index = free_slots.back();
    free_slots.pop_back();
  }
  Buffer& head = mailbox.buffers.front();
  head.bound.at(key).begin(begin, begin + length);
  ++head.placing;
  Slot& slot = slots[index];
  slot.mailbox = &mailbox;
  slot.buffer = &head;
  slot.key = key;
  slot.begin = begin;
  slot.length = length;
  return {index, slot.generation};
}

Slot* MailboxTable::Impl::slot_of(ports::Ticket ticket) {
  if (ticket.index >= slots.size()) return nullptr;
  Slot& slot = slots[ticket.index];
  return slot.mailbox != nullptr && slot.generation == ticket.generation ? &slot : nullptr;
}

// --- Counting and publishing ---

void MailboxTable::Impl::placed(Mailbox& mailbox, Buffer& buffer, const Slot& slot) {
  const auto bound = buffer.bound.find(slot.key);
  const uint64_t end = slot.begin + slot.length;
  const uint64_t fresh = bound->second.end(slot.begin, end, true);
  buffer.cover(slot.begin, end);
  if (mailbox.options.type == ThresholdType::bytes) buffer.count += fresh;
  if (bound->second.whole() && !bound->second.being_placed()) {
    if (mailbox.options.type == ThresholdType::operations) ++buffer.count;
    buffer.bound.erase(bound);
    mailbox.remember(slot.key, true);
  }
  if (mailbox.options.threshold > 0 && buffer.count >= mailbox.options.threshold) buffer.state = BufferState::closing;
}

// Publishes the head if nothing holds it any longer; removes the mailbox if it was closed and is drained.
void MailboxTable::Impl::settle(Mailbox& mailbox) {
  Buffer& head = mailbox.buffers.front();
  const bool ready =
      (head.state == BufferState::closing && head.bound.empty()) || (head.state == BufferState::revoked && head.placing == 0);
  if (!ready) return;
  CHECK(head.placing == 0);
  if (mailbox.closed) {
    cancel(mailbox, head, mailbox.epoch);
    mailbox.buffers.pop_front();
    remove_if_drained(mailbox);
    return;
  }
  publish(mailbox);
}

void MailboxTable::Impl::publish(Mailbox& mailbox) {
  Buffer& head = mailbox.buffers.front();
  Completion completion;
  completion.buffer = head.memory.data();
  completion.length_bytes = head.extent_bytes;
  completion.count = head.count;
  completion.epoch = mailbox.epoch;
  completion.mailbox = mailbox.number;
  completion.context = head.context;
  completion.has_holes = head.has_holes();
  completions.push_back(completion);
  for (const auto& [key, operation] : head.bound) mailbox.remember(key, false);  // the rest of them must not land in the next
  mailbox.buffers.pop_front();
  ++mailbox.epoch;
  if (mailbox.history) mailbox.history->forget(mailbox.epoch);
}

void MailboxTable::Impl::cancel(const Mailbox& mailbox, const Buffer& buffer, uint64_t epoch) {
  Completion completion;
  completion.epoch = epoch;
  completion.mailbox = mailbox.number;
  completion.context = buffer.context;
  completion.status = Status::cancelled;
  completions.push_back(completion);
}

void MailboxTable::Impl::remove_if_drained(Mailbox& mailbox) {
  if (!mailbox.closed || !mailbox.buffers.empty()) return;
  const uint64_t number = mailbox.number;
  closed_entry(number) = number;
  mailboxes.erase(number);
}

}  // namespace ccixfer::rvma
