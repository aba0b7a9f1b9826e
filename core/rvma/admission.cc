// Which put goes where, and which not: everything is decided here, before a byte is placed.
#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/rvma/table_impl.h"

namespace ccixfer::rvma {

using ports::PutOperation;

// A put finds its mailbox and the head's memory, fragment by fragment, whatever the order.
ports::Admission MailboxTable::begin_write(uint64_t connection, const ports::RemoteRef& target, uint64_t length_bytes,
                                           uint32_t transport) {
  PutAttempt attempt{connection, transport, target, length_bytes, {target.put.source, target.put.operation, target.handle.number}};
  ports::Admission admission;
  admission.status = impl_->admit(attempt);
  if (admission.status != Status::success) return impl_->refuse(admission.status, attempt);
  admission.already_placed = attempt.already_placed;
  admission.detail = attempt.bound_epoch;
  if (attempt.already_placed) return admission;
  Slot slot;
  slot.key = attempt.key;
  slot.begin = target.offset_bytes;
  slot.length = length_bytes;
  slot.number = attempt.mailbox->number;
  if (attempt.held) {
    slot.kind = Slot::Kind::held;
    attempt.held->operation.begin(slot.begin, slot.begin + length_bytes);
    slot.held = std::move(attempt.held);
  } else {
    slot.kind = Slot::Kind::buffer;
    slot.mailbox = attempt.mailbox;
    slot.buffer = &attempt.mailbox->buffers.front();
    slot.buffer->bound.at(slot.key).begin(slot.begin, slot.begin + length_bytes);
    ++slot.buffer->placing;
  }
  admission.ticket = impl_->issue(std::move(slot));
  return admission;
}

MutableBytes MailboxTable::write_span(ports::Ticket ticket, uint64_t at_bytes) {
  const Slot* slot = impl_->slot_of(ticket);
  if (slot == nullptr || at_bytes >= slot->length) return {};
  if (slot->kind == Slot::Kind::held) {
    if (slot->held->dropped) return {};
    const uint64_t begin = slot->begin - slot->held->operation.base_bytes();
    return MutableBytes(slot->held->memory).subspan(begin + at_bytes, slot->length - at_bytes);
  }
  if (slot->kind != Slot::Kind::buffer || slot->buffer->state == BufferState::revoked) return {};
  const uint64_t begin = slot->begin + slot->buffer->bound.at(slot->key).shift_bytes();
  return slot->buffer->memory.subspan(begin + at_bytes, slot->length - at_bytes);
}

ports::OperationResult MailboxTable::end_write(ports::Ticket ticket, bool complete) {
  const Slot* slot = impl_->slot_of(ticket);
  if (slot == nullptr || slot->kind == Slot::Kind::read) return Status::error;
  const Slot ended = impl_->retire_slot(ticket);
  return ended.kind == Slot::Kind::held ? impl_->end_holding(ended, complete) : impl_->end_placing(ended, complete);
}

// --- get ---

ports::Admission MailboxTable::begin_read(uint64_t connection, const ports::RemoteRef& target, uint64_t length_bytes) {
  PutAttempt attempt{connection, 0, target, length_bytes, {}};
  Slot slot;
  ports::Admission admission;
  Mailbox* mailbox = impl_->find(target.handle.number);
  attempt.mailbox = mailbox;
  const auto grave = impl_->tombstones.find(target.handle.number);
  const bool buried = grave != impl_->tombstones.end();
  attempt.silent = mailbox != nullptr ? !mailbox->options.negative_acks
                   : buried           ? !grave->second.negative_acks
                                      : !impl_->limits.unknown_nacks;
  admission.status = impl_->admit_read(attempt, slot);
  if (admission.status != Status::success) return impl_->refuse(admission.status, attempt);
  admission.ticket = impl_->issue(std::move(slot));
  return admission;
}

Status MailboxTable::Impl::admit_read(PutAttempt& attempt, Slot& slot) {
  if (attempt.mailbox == nullptr)
    return tombstones.contains(attempt.target.handle.number) ? Status::mailbox_closed : Status::mailbox_unknown;
  const Mailbox& mailbox = *attempt.mailbox;
  const ports::RemoteRef& target = attempt.target;
  if (target.handle.key != mailbox.options.key) return Status::mailbox_key;
  if (mailbox.closed) return Status::mailbox_closed;
  if (target.handle.generation != mailbox.incarnation) return Status::mailbox_stale;
  if (attempt.length_bytes == 0) return Status::invalid;
  if (slots.in_use() >= tickets_max) return Status::no_buffers;
  // The last completed epoch's buffer, unless the owner has taken it back.
  if (mailbox.retired.empty() || mailbox.retired.back().buffer.epoch + 1 != mailbox.epoch) return Status::mailbox_empty;
  const Retired& last = mailbox.retired.back();
  if (target.put.epoch != PutOperation::any_epoch && target.put.epoch != last.buffer.epoch) return Status::mailbox_stale;
  const uint64_t filled = attempt.buffer_bytes = last.buffer.length_bytes;
  if (target.offset_bytes > filled || attempt.length_bytes > filled - target.offset_bytes) return Status::mailbox_too_long;
  slot.kind = Slot::Kind::read;
  slot.number = mailbox.number;
  slot.retired_id = last.id;
  slot.begin = target.offset_bytes;
  slot.length = attempt.length_bytes;
  return Status::success;
}

Retired* MailboxTable::Impl::retired_of(const Slot& slot) {
  Mailbox* mailbox = find(slot.number);
  if (mailbox == nullptr) return nullptr;
  const auto kept = std::find_if(mailbox->retired.begin(), mailbox->retired.end(),
                                 [&](const Retired& retired) { return retired.id == slot.retired_id; });
  return kept == mailbox->retired.end() ? nullptr : &*kept;
}

Bytes MailboxTable::read_span(ports::Ticket ticket, uint64_t at_bytes) {
  const Slot* slot = impl_->slot_of(ticket);
  if (slot == nullptr || slot->kind != Slot::Kind::read || at_bytes >= slot->length) return {};
  const Retired* retired = impl_->retired_of(*slot);
  if (retired == nullptr) return {};  // posted again, released, rewound or closed
  return retired->buffer.memory.subspan(slot->begin + at_bytes, slot->length - at_bytes);
}

void MailboxTable::end_read(ports::Ticket ticket) {
  const Slot* slot = impl_->slot_of(ticket);
  if (slot == nullptr || slot->kind != Slot::Kind::read) return;
  static_cast<void>(impl_->retire_slot(ticket));
}

// --- Admission ---

// A refusal is counted; whether it is answered is the mailbox's choice, and the limit's. Withheld, it says nothing at all.
ports::Admission MailboxTable::Impl::refuse(Status status, const PutAttempt& attempt) {
  counters.add(Counter::mailbox_rejected);
  ports::Admission admission;
  admission.status = attempt.silent || !nacks.allow(attempt.connection, now) ? Status::withheld : status;
  if (admission.status == Status::mailbox_too_long) admission.detail = attempt.buffer_bytes;
  return admission;
}

Status MailboxTable::Impl::admit(PutAttempt& attempt) {
  const ports::RemoteRef& target = attempt.target;
  const uint64_t number = target.handle.number;
  Mailbox* catching = catch_all_for(number);
  // What has begun in the catch-all stays there, though its mailbox may have a buffer by now.
  if (catching != nullptr) {
    const bool bound = !catching->buffers.empty() && catching->buffers.front().bound.contains(attempt.key);
    const Outcome outcome = catching->past(attempt.key, PutOperation::any_epoch).outcome;
    attempt.diverted =
        bound || outcome == Outcome::placed || outcome == Outcome::aborted || catching->find_held(attempt.key) != nullptr;
  }
  attempt.mailbox = find(number);
  if (attempt.mailbox == nullptr && !attempt.diverted) {
    if (const auto grave = tombstones.find(number); grave != tombstones.end()) {
      attempt.silent = !grave->second.negative_acks;
      return Status::mailbox_closed;
    }
    attempt.silent = !limits.unknown_nacks;
    if (catching == nullptr) return Status::mailbox_unknown;
    attempt.diverted = true;
  }
  if (!attempt.diverted) return admit_addressed(attempt);
  attempt.mailbox = catching;
  return admit_into(attempt);
}

Status MailboxTable::Impl::admit_addressed(PutAttempt& attempt) {
  const Mailbox& mailbox = *attempt.mailbox;
  const ports::Handle& handle = attempt.target.handle;
  attempt.silent = !mailbox.options.negative_acks;
  if (handle.key != mailbox.options.key) return Status::mailbox_key;
  if (mailbox.closed) return Status::mailbox_closed;
  if (handle.generation != mailbox.incarnation) return Status::mailbox_stale;  // from before a rewind
  attempt.epoch = attempt.target.put.epoch;
  return admit_into(attempt);
}

// The mailbox is known, open, and lets this peer in.
Status MailboxTable::Impl::admit_into(PutAttempt& attempt) {
  Mailbox& mailbox = *attempt.mailbox;
  attempt.silent = !mailbox.options.negative_acks;
  attempt.extent = extent_of(attempt.target, attempt.length_bytes);
  if (attempt.extent.status != Status::success) return attempt.extent.status;
  if (slots.in_use() >= tickets_max) return Status::no_buffers;
  if (!mailbox.buffers.empty()) {
    const Buffer& head = mailbox.buffers.front();
    const auto bound = head.bound.find(attempt.key);
    if (bound != head.bound.end()) {
      if (head.state == BufferState::revoked) return Status::mailbox_stale;
      // Fragments of one put that contradict one another: not ours to guess which one is right.
      if (attempt.tells_epoch() && attempt.epoch != mailbox.epoch) return Status::invalid;
      if (mailbox.options.unique && head.covered.ranges() + head.placing >= coverage_ranges_max) return Status::no_buffers;
      attempt.bound_epoch = mailbox.epoch;
      return admit_bound(bound->second, attempt, attempt.already_placed);
    }
  }
  const auto held = std::find_if(mailbox.held.begin(), mailbox.held.end(), [&](const auto& h) { return h->key == attempt.key; });
  if (held != mailbox.held.end()) {
    if (attempt.tells_epoch() && attempt.epoch != (*held)->epoch) return Status::invalid;
    attempt.held = *held;
    attempt.bound_epoch = attempt.epoch;
    return admit_bound((*held)->operation, attempt, attempt.already_placed);
  }
  const Past past = mailbox.past(attempt.key, attempt.epoch);
  attempt.already_placed = past.outcome == Outcome::placed;
  attempt.bound_epoch = past.epoch;
  if (attempt.already_placed) return Status::success;
  if (past.outcome != Outcome::unknown) return Status::mailbox_stale;
  const Status status = admit_new(attempt);
  return status == Status::mailbox_empty ? admit_to_empty(attempt) : status;
}

Status MailboxTable::Impl::admit_bound(const Operation& operation, const PutAttempt& attempt, bool& already_placed) const {
  if (!operation.same_extent(attempt.extent.base_bytes, attempt.extent.total_bytes)) return Status::invalid;
  const uint64_t begin = attempt.target.offset_bytes;
  switch (operation.state(begin, begin + attempt.length_bytes)) {
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

Status MailboxTable::Impl::admit_new(PutAttempt& attempt) {
  Mailbox& mailbox = *attempt.mailbox;
  const uint64_t total = attempt.extent.total_bytes;
  const bool managed = mailbox.options.placement == Placement::managed;
  for (;;) {
    if (attempt.tells_epoch() && attempt.epoch < mailbox.epoch) return Status::mailbox_stale;
    if (attempt.tells_epoch() && attempt.epoch > mailbox.epoch) return Status::mailbox_empty;
    if (mailbox.buffers.empty()) return Status::mailbox_empty;
    Buffer& head = mailbox.buffers.front();
    // It will never take another operation: whoever wants this very epoch is late, anybody else comes back for the next.
    if (head.state != BufferState::filling)
      return attempt.tells_epoch() && !head.cancel ? Status::mailbox_stale : Status::mailbox_empty;
    attempt.buffer_bytes = head.memory.size();
    if ((managed ? total : attempt.extent.base_bytes + total) > head.memory.size()) return Status::mailbox_too_long;
    if (const Status status = check_quota(mailbox, attempt); status != Status::success) return status;
    if (!managed || total <= head.memory.size() - head.cursor_bytes) break;
    head.advance(BufferEvent::threshold);  // nothing of this put fits behind the others: the head is as full as it gets
    settle(mailbox);
  }
  Buffer& head = mailbox.buffers.front();
  if (head.bound.size() >= limits.operations_per_buffer_max) return Status::no_buffers;
  if (mailbox.options.unique && head.covered.ranges() + head.placing >= coverage_ranges_max) return Status::no_buffers;
  attempt.bound_epoch = mailbox.epoch;
  bind(mailbox, attempt.key, Operation(attempt.extent.base_bytes, total, 0, attempt.connection, attempt.tells_epoch()));
  return Status::success;
}

// No buffer will take it now. One that is posted already, for later, is worth a second try and nothing else.
Status MailboxTable::Impl::admit_to_empty(PutAttempt& attempt) {
  Mailbox& mailbox = *attempt.mailbox;
  const uint64_t gone = mailbox.buffers.empty() || mailbox.buffers.front().state == BufferState::filling ? 0 : 1;
  const uint64_t ahead = attempt.tells_epoch() ? attempt.epoch - mailbox.epoch : gone;
  const bool posted = ahead < mailbox.buffers.size();
  switch (mailbox.options.when_empty) {
    case WhenEmpty::nack:
      break;
    case WhenEmpty::hold:
      return hold(attempt);
    case WhenEmpty::drop:
      attempt.silent = attempt.silent || !posted;
      break;
    case WhenEmpty::catch_all:
      if (Mailbox* catching = catch_all_for(mailbox.number); catching != nullptr && !attempt.diverted && !posted) {
        attempt.mailbox = catching;
        attempt.diverted = true;
        attempt.epoch = PutOperation::any_epoch;
        return admit_into(attempt);
      }
      break;
  }
  const HintOwed owed{attempt.transport, attempt.connection, attempt.key.address};
  auto& owing = mailbox.hints_owed;
  if (mailbox.options.hints && !attempt.silent && owing.size() < hints_owed_max &&
      std::find(owing.begin(), owing.end(), owed) == owing.end()) {
    owing.push_back(owed);
  }
  return Status::mailbox_empty;
}

Status MailboxTable::Impl::hold(PutAttempt& attempt) {
  Mailbox& mailbox = *attempt.mailbox;
  const uint64_t total = attempt.extent.total_bytes;
  // Managed: whether it will fit into that very epoch is not known before it is there, and what is held is acknowledged.
  if (mailbox.options.placement == Placement::managed && attempt.tells_epoch()) return Status::mailbox_empty;
  if (total > mailbox.options.held_bytes_max - mailbox.held_bytes || mailbox.held.size() >= held_operations_max) {
    return Status::mailbox_empty;
  }
  const auto count = std::count_if(mailbox.held.begin(), mailbox.held.end(), [&](const std::shared_ptr<Held>& held) {
    return held->key.source == attempt.key.source || held->operation.connection() == attempt.connection;
  });
  const uint32_t quota = mailbox.options.operations_per_source_max;
  if (quota > 0 && count >= quota) return Status::no_buffers;
  // The buffer that it waits for may be posted already.
  uint64_t epoch = mailbox.epoch;
  for (const Buffer& buffer : mailbox.buffers) {
    if (buffer.cancel) continue;
    const uint64_t end = mailbox.options.placement == Placement::managed ? total : attempt.extent.base_bytes + total;
    attempt.buffer_bytes = buffer.memory.size();
    const bool the_one = attempt.tells_epoch() ? epoch == attempt.epoch : buffer.state == BufferState::queued;
    if (the_one && end > buffer.memory.size()) return Status::mailbox_too_long;
    ++epoch;
  }
  const Operation operation(attempt.extent.base_bytes, total, 0, attempt.connection, attempt.tells_epoch());
  attempt.held = std::make_shared<Held>(attempt.key, attempt.epoch, operation);
  attempt.bound_epoch = attempt.epoch;
  mailbox.held.push_back(attempt.held);
  mailbox.held_bytes += total;
  return Status::success;
}

Status MailboxTable::Impl::check_quota(const Mailbox& mailbox, const PutAttempt& attempt) {
  if (!mailbox.has_quota()) return Status::success;
  const MailboxOptions& options = mailbox.options;
  const Buffer& head = mailbox.buffers.front();
  const auto within = [&](const std::unordered_map<uint64_t, Usage>& usages, uint64_t whose) {
    const auto found = usages.find(whose);
    const Usage usage = found == usages.end() ? Usage{} : found->second;
    const uint64_t total = attempt.extent.total_bytes;
    return (options.operations_per_source_max == 0 || usage.operations < options.operations_per_source_max) &&
           (options.bytes_per_source_max == 0 ||
            (total <= options.bytes_per_source_max && usage.bytes <= options.bytes_per_source_max - total));
  };
  return within(head.by_source, attempt.key.source) && within(head.by_connection, attempt.connection) ? Status::success
                                                                                                      : Status::no_buffers;
}

// To the head. `like` says everything but where in the buffer it goes.
void MailboxTable::Impl::bind(Mailbox& mailbox, const OperationKey& key, const Operation& like) {
  Buffer& head = mailbox.buffers.front();
  CHECK(head.state == BufferState::filling);
  uint64_t shift = 0;
  if (mailbox.options.placement == Placement::managed) {
    shift = head.cursor_bytes - like.base_bytes();
    head.cursor_bytes += like.total_bytes();
  }
  head.address = key.address;
  head.bound.emplace(key, Operation(like.base_bytes(), like.total_bytes(), shift, like.connection(), like.told_epoch()));
  if (!mailbox.has_quota()) return;
  for (Usage* usage : {&head.by_source[key.source], &head.by_connection[like.connection()]}) {
    ++usage->operations;
    usage->bytes += like.total_bytes();
  }
}

// It will not be placed, or it has placed nothing: then it is as if it had never come.
void MailboxTable::Impl::unbind(Mailbox& mailbox, Buffer& buffer, const OperationKey& key) {
  const auto bound = buffer.bound.find(key);
  const Operation& operation = bound->second;
  const bool untouched = operation.untouched();
  const uint64_t end = operation.base_bytes() + operation.shift_bytes() + operation.total_bytes();
  if (mailbox.options.placement == Placement::managed && untouched && end == buffer.cursor_bytes) {
    buffer.cursor_bytes -= operation.total_bytes();
  }
  if (mailbox.has_quota()) {
    for (Usage* usage : {&buffer.by_source[key.source], &buffer.by_connection[operation.connection()]}) {
      --usage->operations;
      if (untouched) usage->bytes -= operation.total_bytes();
    }
  }
  buffer.bound.erase(bound);
}

// --- Tickets ---

ports::Ticket MailboxTable::Impl::issue(Slot slot) {
  const SlotName name = slots.take();
  slots[name.index] = std::move(slot);
  return {name.index, name.generation};
}

Slot* MailboxTable::Impl::slot_of(ports::Ticket ticket) { return slots.find({ticket.index, ticket.generation}); }

Slot MailboxTable::Impl::retire_slot(ports::Ticket ticket) {
  Slot ended = std::exchange(slots[ticket.index], {});
  slots.release(ticket.index);
  return ended;
}

}  // namespace ccixfer::rvma
