#include "core/rvma/mailbox_table.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/rvma/table_impl.h"

namespace ccixfer::rvma {

MailboxTable::MailboxTable(Limits limits, Counters& counters) : impl_(std::make_unique<Impl>(limits, counters)) {}
MailboxTable::~MailboxTable() = default;

void MailboxTable::set_waker(RecordWaker* waker) { impl_->waker = waker; }
void MailboxTable::turn(Instant now) { impl_->now = std::max(impl_->now, now); }

Mailbox* MailboxTable::Impl::find(uint64_t number) {
  const auto it = mailboxes.find(number);
  return it == mailboxes.end() ? nullptr : &it->second;
}

Mailbox* MailboxTable::Impl::find_open(uint64_t number, Status& status) {
  Mailbox* found = find(number);
  status = found == nullptr ? Status::mailbox_unknown : found->closed ? Status::mailbox_closed : Status::success;
  return status == Status::success ? found : nullptr;
}

Mailbox* MailboxTable::Impl::catch_all_for(uint64_t number) {
  if (!catch_all || *catch_all == number) return nullptr;
  Mailbox* found = find(*catch_all);
  return found != nullptr && !found->closed ? found : nullptr;
}

Status MailboxTable::open(uint64_t mailbox, const MailboxOptions& options) {
  if (impl_->find(mailbox) != nullptr) return Status::busy;
  if (impl_->mailboxes.size() >= impl_->limits.mailboxes_max) return Status::no_memory;
  const auto grave = impl_->tombstones.find(mailbox);
  if (grave != impl_->tombstones.end()) {
    if (grave->second.key == options.key) return Status::mailbox_key;
    impl_->tombstones.erase(grave);
  }
  Mailbox& opened = impl_->mailboxes[mailbox];
  opened.options = options;
  opened.number = mailbox;
  return Status::success;
}

Status MailboxTable::post(uint64_t mailbox, MutableBytes memory, const PostOptions& options) {
  Status status = Status::success;
  Mailbox* found = impl_->find_open(mailbox, status);
  if (found == nullptr) return status;
  if (memory.empty()) return Status::invalid;
  if (found->buffers.size() >= impl_->limits.buffers_per_mailbox_max) return Status::no_buffers;
  // A held put was acknowledged: it must find room in the buffer that it waits for.
  const uint64_t epoch = found->epoch + found->buffers.size() - (!found->buffers.empty() && found->buffers.front().cancel ? 1 : 0);
  for (const auto& held : found->held) {
    if (held->epoch != ports::PutOperation::any_epoch && held->epoch != epoch) continue;
    const uint64_t base = found->options.placement == Placement::managed ? 0 : held->operation.base_bytes();
    if (base + held->operation.total_bytes() > memory.size()) return Status::range;
  }
  found->retired.erase_if([&](const Retired& retired) {  // posted again
    const MutableBytes old = retired.buffer.memory;
    return old.data() < memory.data() + memory.size() && memory.data() < old.data() + old.size();
  });
  Buffer& posted = found->buffers.emplace_back();
  posted.memory = memory;
  posted.context = options.context;
  posted.record = options.record;
  posted.type = options.type.value_or(found->options.type);
  posted.threshold = options.threshold.value_or(found->options.threshold);
  if (posted.type == ThresholdType::bytes && posted.threshold > memory.size()) posted.threshold = 0;
  if (posted.record != nullptr) arm(*posted.record);
  if (found->buffers.size() == 1) posted.advance(BufferEvent::become_head);
  impl_->settle(*found);
  return Status::success;
}

void MailboxTable::Impl::drop_held(Mailbox& mailbox) {
  for (const auto& held : mailbox.held) held->dropped = true;
  mailbox.held.clear();
  mailbox.held_bytes = 0;
}

Status MailboxTable::close(uint64_t mailbox) {
  Status status = Status::success;
  Mailbox* found = impl_->find_open(mailbox, status);
  if (found == nullptr) return status;
  found->closed = true;
  found->retired.clear();
  impl_->drop_held(*found);
  if (impl_->catch_all == mailbox) impl_->catch_all.reset();
  if (!found->buffers.empty()) {
    Buffer& head = found->buffers.front();
    if (head.state != BufferState::revoked) head.advance(BufferEvent::revoke);
    if (!head.cancel) head.cancelled_epoch = found->epoch++;
    head.cancel = true;
    auto it = found->buffers.begin();
    if (head.placing > 0) {
      ++it;  // comes back when they are off it
    } else {
      impl_->cancel(*found, head, head.cancelled_epoch);
      it = found->buffers.erase(it);
    }
    for (; it != found->buffers.end(); it = found->buffers.erase(it)) impl_->cancel(*found, *it, found->epoch++);
  }
  impl_->settle(*found);
  return Status::success;
}

void MailboxTable::Impl::bury(const Mailbox& mailbox) {
  const uint64_t stamp = next_stamp++;
  tombstones[mailbox.number] = {mailbox.options.key, mailbox.options.negative_acks, stamp};
  closed_order.emplace_back(mailbox.number, stamp);
  while (closed_order.size() > limits.closed_remembered_max) {
    const auto [number, buried] = closed_order.front();
    closed_order.drop_front();
    const auto grave = tombstones.find(number);
    if (grave != tombstones.end() && grave->second.stamp == buried) tombstones.erase(grave);
  }
}

Status MailboxTable::increment_epoch(uint64_t mailbox) {
  Status status = Status::success;
  Mailbox* found = impl_->find_open(mailbox, status);
  if (found == nullptr) return status;
  if (found->buffers.empty()) return Status::again;
  Buffer& head = found->buffers.front();
  if (head.state == BufferState::revoked) return Status::busy;
  head.advance(BufferEvent::revoke);
  impl_->settle(*found);
  return Status::success;
}

std::optional<uint64_t> MailboxTable::epoch(uint64_t mailbox) const {
  const Mailbox* found = impl_->find(mailbox);
  if (found == nullptr || found->closed) return std::nullopt;
  return found->epoch;
}

size_t MailboxTable::buffer_pointers(uint64_t mailbox, std::span<CompletedBuffer> out) const {
  const Mailbox* found = impl_->find(mailbox);
  if (found == nullptr) return 0;
  const size_t count = std::min(out.size(), found->retired.size());
  for (size_t i = 0; i < count; ++i) out[i] = found->retired[found->retired.size() - 1 - i].buffer;
  return count;
}

Status MailboxTable::rewind(uint64_t mailbox, uint64_t epoch, std::vector<CompletedBuffer>& undone) {
  Status status = Status::success;
  Mailbox* found = impl_->find_open(mailbox, status);
  if (found == nullptr) return status;
  if (!found->buffers.empty() && found->buffers.front().state == BufferState::revoked) return Status::busy;
  const auto kept = std::find_if(found->retired.begin(), found->retired.end(),
                                 [&](const Retired& retired) { return retired.buffer.epoch == epoch; });
  if (epoch > found->epoch || (epoch < found->epoch && kept == found->retired.end())) return Status::range;
  undone.clear();
  for (auto it = kept; it != found->retired.end(); ++it) undone.push_back(it->buffer);
  found->retired.erase(kept, found->retired.end());
  ++found->incarnation;
  found->history.reset();
  found->hints_owed.clear();
  impl_->drop_held(*found);
  if (!found->buffers.empty() && found->buffers.front().touched()) {
    Buffer& head = found->buffers.front();
    head.advance(BufferEvent::revoke);
    head.cancel = true;
    head.cancelled_epoch = found->epoch;
  }
  found->epoch = epoch;
  impl_->settle(*found);
  return Status::success;
}

Status MailboxTable::release(uint64_t mailbox, const std::byte* buffer) {
  Mailbox* found = impl_->find(mailbox);
  if (found == nullptr) return Status::mailbox_unknown;
  const size_t released = found->retired.erase_if([&](const Retired& retired) { return retired.buffer.memory.data() == buffer; });
  return released > 0 ? Status::success : Status::not_found;
}

size_t MailboxTable::abort_source(uint64_t mailbox, uint64_t source) {
  Mailbox* found = impl_->find(mailbox);
  if (found == nullptr || found->closed) return 0;
  size_t aborted = std::erase_if(found->held, [&](const std::shared_ptr<Held>& held) {
    if (held->key.source != source || held->operation.whole()) return false;  // a whole one was acknowledged: it counts
    held->dropped = true;
    found->held_bytes -= held->memory.size();
    found->remember(held->key, held->operation.told_epoch(), false);
    return true;
  });
  if (found->buffers.empty()) return aborted;
  Buffer& head = found->buffers.front();
  std::vector<OperationKey> keys;
  for (const auto& [key, operation] : head.bound) {
    if (key.source == source && !operation.being_placed()) keys.push_back(key);
  }
  for (const OperationKey& key : keys) {
    const bool told = head.bound.at(key).told_epoch();
    impl_->unbind(*found, head, key);
    if (!head.cancel) found->remember(key, told, false);
  }
  impl_->settle(*found);
  return aborted + keys.size();
}

ports::Handle MailboxTable::handle(uint64_t mailbox) const {
  ports::Handle handle;
  const Mailbox* found = impl_->find(mailbox);
  if (found == nullptr || found->closed) return handle;
  handle.kind = ports::HandleKind::mailbox;
  handle.generation = found->incarnation;
  handle.number = mailbox;
  handle.key = found->options.key;
  return handle;
}

bool MailboxTable::closing(uint64_t mailbox) const {
  const Mailbox* found = impl_->find(mailbox);
  return found != nullptr && found->closed;
}

void MailboxTable::set_catch_all(std::optional<uint64_t> mailbox) { impl_->catch_all = mailbox; }

std::optional<Completion> MailboxTable::next_completion() {
  if (impl_->completions.empty()) return std::nullopt;
  Completion completion = impl_->completions.front();
  impl_->completions.drop_front();
  return completion;
}

bool MailboxTable::hint_waits(uint32_t transport) const { return impl_->hints.contains(transport); }

std::optional<ports::Hint> MailboxTable::next_hint(uint32_t transport) {
  const auto waiting = impl_->hints.find(transport);
  if (waiting == impl_->hints.end()) return std::nullopt;
  const ports::Hint hint = waiting->second.front();
  waiting->second.drop_front();
  if (waiting->second.empty()) impl_->hints.erase(waiting);
  return hint;
}

}  // namespace ccixfer::rvma
