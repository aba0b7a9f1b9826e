// What happens when bytes are placed: counting, publishing, handing back.
#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/rvma/table_impl.h"

namespace ccixfer::rvma {

// A fragment is off the buffer.
ports::OperationResult MailboxTable::Impl::end_placing(const Slot& slot, bool complete) {
  Mailbox& mailbox = *slot.mailbox;
  Buffer& buffer = *slot.buffer;
  --buffer.placing;
  if (buffer.state == BufferState::revoked) {
    const Status status = mailbox.closed ? Status::mailbox_closed : Status::mailbox_stale;
    const bool silent = !mailbox.options.negative_acks;
    settle(mailbox);
    return silent ? Status::withheld : status;  // the reason why it is not complete, if it is not
  }
  const uint64_t epoch = mailbox.epoch;
  if (complete) {
    placed(mailbox, buffer, slot.key, slot.begin, slot.length);
  } else {
    Operation& operation = buffer.bound.at(slot.key);
    static_cast<void>(operation.end(slot.begin, slot.begin + slot.length, false));
    if (operation.untouched()) unbind(mailbox, buffer, slot.key);
  }
  settle(mailbox);
  return complete ? ports::OperationResult(Status::success, epoch) : ports::OperationResult(Status::disconnected);
}

ports::OperationResult MailboxTable::Impl::end_holding(const Slot& slot, bool complete) {
  Held& held = *slot.held;
  Mailbox* mailbox = find(slot.number);
  if (held.dropped) {
    const bool silent = mailbox != nullptr && !mailbox->options.negative_acks;
    const auto grave = tombstones.find(slot.number);
    const bool silent_grave = grave != tombstones.end() && !grave->second.negative_acks;
    return silent || silent_grave ? Status::withheld : mailbox == nullptr ? Status::mailbox_closed : Status::mailbox_stale;
  }
  CHECK(mailbox != nullptr);
  static_cast<void>(held.operation.end(slot.begin, slot.begin + slot.length, complete));
  if (held.operation.untouched()) {
    mailbox->held_bytes -= held.memory.size();
    mailbox->held.remove_if([&](const std::shared_ptr<Held>& h) { return h == slot.held; });
  }
  const bool silent = !mailbox->options.negative_acks;
  settle(*mailbox);
  if (held.dropped) return silent ? Status::withheld : Status::mailbox_stale;  // it came too late to be whole
  return complete ? ports::OperationResult(Status::success, held.epoch) : ports::OperationResult(Status::disconnected);
}

void MailboxTable::Impl::placed(Mailbox& mailbox, Buffer& buffer, const OperationKey& key, uint64_t begin, uint64_t length) {
  Operation& operation = buffer.bound.at(key);
  const uint64_t of_operation = operation.end(begin, begin + length, true);
  const uint64_t at = begin + operation.shift_bytes();
  const uint64_t of_buffer = buffer.cover(at, at + length);
  buffer.bytes += mailbox.options.unique ? of_buffer : of_operation;
  if (operation.whole() && !operation.being_placed()) {
    ++buffer.operations;
    const bool told = operation.told_epoch();
    unbind(mailbox, buffer, key);
    mailbox.remember(key, told, true);
  }
  // The one place where a threshold is crossed, and the state lets it happen once.
  const bool reached = buffer.threshold > 0 && buffer.count() >= buffer.threshold;
  if (reached && buffer.state == BufferState::filling) buffer.advance(BufferEvent::threshold);
}

// Everything that follows: the head is published or handed back when nothing holds it any longer, the next one takes its place and
// the puts that were held for it; a closed mailbox goes with its last buffer.
void MailboxTable::Impl::settle(Mailbox& mailbox) {
  do {
    while (!mailbox.buffers.empty()) {
      Buffer& head = mailbox.buffers.front();
      const bool unused =
          (head.state == BufferState::closing && head.bound.empty()) || (head.state == BufferState::revoked && head.placing == 0);
      if (!unused) break;
      CHECK(head.placing == 0);
      if (head.cancel) {
        cancel(mailbox, head, head.cancelled_epoch);
        mailbox.buffers.pop_front();
      } else {
        publish(mailbox);
      }
      if (!mailbox.buffers.empty() && !mailbox.closed) mailbox.buffers.front().advance(BufferEvent::become_head);
    }
  } while (place_held(mailbox));
  if (mailbox.closed && mailbox.buffers.empty()) {
    bury(mailbox);
    mailboxes.erase(mailbox.number);
    return;
  }
  give_hints(mailbox);
}

// The first of the held puts that is whole and may go into the head. False: there is none.
bool MailboxTable::Impl::place_held(Mailbox& mailbox) {
  if (mailbox.held.empty() || mailbox.closed) return false;
  // Its epoch went by, or takes nothing new any more, while parts of it were missing.
  const Buffer* first = mailbox.buffers.empty() ? nullptr : &mailbox.buffers.front();
  const bool head_is_over = first != nullptr && first->state != BufferState::filling && !first->cancel;
  const uint64_t epoch_min = mailbox.epoch + (head_is_over ? 1 : 0);
  const auto late = [&](const std::shared_ptr<Held>& held) { return held->epoch < epoch_min; };  // any_epoch is never late
  for (auto it = mailbox.held.begin(); it != mailbox.held.end();) {
    if (!late(*it)) {
      ++it;
      continue;
    }
    (*it)->dropped = true;
    mailbox.held_bytes -= (*it)->memory.size();
    mailbox.remember((*it)->key, true, false);
    it = mailbox.held.erase(it);
  }
  if (mailbox.buffers.empty() || mailbox.buffers.front().state != BufferState::filling) return false;
  Buffer& head = mailbox.buffers.front();
  for (auto it = mailbox.held.begin(); it != mailbox.held.end(); ++it) {
    const Operation& operation = (*it)->operation;
    if (!operation.whole() || operation.being_placed()) continue;
    if ((*it)->epoch != ports::PutOperation::any_epoch && (*it)->epoch != mailbox.epoch) continue;
    const uint64_t total = operation.total_bytes();
    const bool managed = mailbox.options.placement == Placement::managed;
    if ((managed ? total : operation.base_bytes() + total) > head.memory.size()) continue;
    if (managed && total > head.memory.size() - head.cursor_bytes) {
      head.advance(BufferEvent::threshold);
      return true;
    }
    const std::shared_ptr<Held> held = *it;
    mailbox.held.erase(it);
    mailbox.held_bytes -= total;
    held->epoch = mailbox.epoch;
    bind(mailbox, held->key, operation);
    Operation& bound = head.bound.at(held->key);
    const uint64_t begin = bound.base_bytes();
    bound.begin(begin, begin + total);
    std::memcpy(head.memory.data() + begin + bound.shift_bytes(), held->memory.data(), total);
    placed(mailbox, head, held->key, begin, total);
    return true;
  }
  return false;
}

void MailboxTable::Impl::publish(Mailbox& mailbox) {
  Buffer& head = mailbox.buffers.front();
  head.advance(BufferEvent::unused);
  Completion completion;
  completion.buffer = head.memory.data();
  completion.length_bytes = head.extent_bytes;
  completion.count = head.count();
  completion.bytes = head.bytes;
  completion.epoch = mailbox.epoch;
  completion.has_holes = head.has_holes();
  // The rest of them must not land in the next.
  for (const auto& [key, operation] : head.bound) mailbox.remember(key, operation.told_epoch(), false);
  if (mailbox.options.retired_max > 0) {
    if (mailbox.retired.size() >= mailbox.options.retired_max) mailbox.retired.drop_front();
    mailbox.retired.push_back({{head.memory, head.extent_bytes, mailbox.epoch}, next_retired_id++});
  }
  tell(mailbox, head, completion);
  mailbox.buffers.pop_front();
  ++mailbox.epoch;
  if (mailbox.history) mailbox.history->forget(mailbox.epoch);
}

void MailboxTable::Impl::cancel(Mailbox& mailbox, Buffer& buffer, uint64_t epoch) {
  buffer.advance(BufferEvent::cancel);
  Completion completion;
  completion.epoch = epoch;
  completion.status = Status::cancelled;
  tell(mailbox, buffer, completion);
}

void MailboxTable::Impl::tell(const Mailbox& mailbox, const Buffer& buffer, Completion completion) {
  completion.mailbox = mailbox.number;
  completion.address = buffer.address;
  completion.context = buffer.context;
  if (buffer.record == nullptr) {
    completions.push_back(completion);
    return;
  }
  CompletionRecord& record = *buffer.record;
  record.length_bytes = completion.length_bytes;
  record.count = completion.count;
  record.bytes = completion.bytes;
  record.epoch = completion.epoch;
  record.context = completion.context;
  record.address = completion.address;
  record.status = completion.status;
  record.has_holes = completion.has_holes;
  rvma::publish(record, buffer.memory.data(), waker);
}

void MailboxTable::Impl::give_hints(Mailbox& mailbox) {
  if (mailbox.hints_owed.empty() || mailbox.buffers.empty() || mailbox.buffers.front().state != BufferState::filling) return;
  for (const HintOwed& owed : mailbox.hints_owed) {
    auto& waiting = hints[owed.transport];
    if (waiting.size() < hints_max) waiting.push_back({owed.connection, owed.address, mailbox.epoch});
  }
  mailbox.hints_owed.clear();
}

}  // namespace ccixfer::rvma
