#include "transports/stream/rma_responder.h"

#include <algorithm>

#include "transports/stream/limits.h"

namespace ccixfer::stream {

RmaResponder::Operation* RmaResponder::free_slot(uint32_t id) {
  const uint32_t slot = id & 0xffff;
  if (slot >= slots_max_) return nullptr;
  if (work_ == nullptr) work_ = std::make_unique<Work>();
  if (slot >= work_->slots.size()) work_->slots.resize(size_t{slot} + 1);
  return work_->slots[slot].kind == Kind::none ? &work_->slots[slot] : nullptr;
}

void RmaResponder::reply(Operation& operation, bool early) {
  operation.ended = !early;
  work_->replies.push_back({operation.kind == Kind::write, {operation.id, operation.ending, early}});
}

bool RmaResponder::chunk(const wire::RmaWrite& frame, uint32_t payload_bytes, ports::RmaTarget& target) {
  const uint32_t slot = frame.operation & 0xffff;
  const bool is_new = work_ == nullptr || slot >= work_->slots.size();
  const bool first = frame.offset_bytes == 0 && (is_new || work_->slots[slot].kind == Kind::none);
  if (first) {
    Operation* operation = free_slot(frame.operation);
    if (operation == nullptr || frame.abort) return false;
    *operation = Operation{};
    operation->kind = Kind::write;
    operation->id = frame.operation;
    operation->handle = frame.remote.handle;
    operation->target_offset_bytes = frame.remote.offset_bytes;
    operation->total_bytes = frame.total_bytes;
    if (leaving_) {
      operation->ending = Status::disconnected;
    } else {
      const ports::Admission admission = target.begin_write(connection_, frame.remote, frame.total_bytes);
      operation->ending = admission.ending();
      operation->admitted = admission.status == Status::success && !admission.already_placed;
      operation->ticket = admission.ticket;
    }
    if (!operation->ending.good() && payload_bytes < frame.total_bytes) reply(*operation, true);
    return true;
  }
  if (is_new) return false;
  Operation& operation = work_->slots[slot];
  if (operation.kind != Kind::write || operation.ended || operation.id != frame.operation ||
      operation.done_bytes != frame.offset_bytes || operation.total_bytes != frame.total_bytes ||
      operation.handle != frame.remote.handle || operation.target_offset_bytes != frame.remote.offset_bytes) {
    return false;
  }
  if (frame.abort) {
    if (operation.admitted) static_cast<void>(target.end_write(operation.ticket, false));
    operation.admitted = false;
    if (operation.ending.good()) operation.ending = Status::cancelled;
    reply(operation, false);
  }
  return true;
}

void RmaResponder::revoke_write(Operation& operation, ports::RmaTarget& target) {
  operation.admitted = false;
  operation.ending = target.end_write(operation.ticket, false);
  if (operation.ending.good()) operation.ending = Status::rma_handle;
  reply(operation, true);
}

MutableBytes RmaResponder::write_span(uint32_t slot, size_t size, ports::RmaTarget& target) {
  Operation& operation = work_->slots[slot];
  if (!operation.admitted) return {};
  const MutableBytes span = target.write_span(operation.ticket, operation.done_bytes);
  if (span.empty()) revoke_write(operation, target);
  return span.first(std::min(size, span.size()));
}

void RmaResponder::written(uint32_t slot, size_t bytes, ports::RmaTarget& target) {
  Operation& operation = work_->slots[slot];
  operation.done_bytes += bytes;
  if (operation.done_bytes < operation.total_bytes) return;
  if (operation.admitted) operation.ending = target.end_write(operation.ticket, true);
  operation.admitted = false;
  reply(operation, false);
}

bool RmaResponder::request(const wire::RmaRead& frame, ports::RmaTarget& target) {
  Operation* operation = free_slot(frame.operation);
  if (operation == nullptr) return false;
  *operation = Operation{};
  operation->kind = Kind::read;
  operation->id = frame.operation;
  operation->total_bytes = frame.total_bytes;
  if (leaving_) {
    operation->ending = Status::disconnected;
  } else {
    const ports::Admission admission = target.begin_read(connection_, frame.remote, frame.total_bytes);
    operation->ending = admission.ending();
    operation->admitted = admission.status == Status::success;
    operation->ticket = admission.ticket;
  }
  if (operation->admitted) {
    work_->to_read.push_back(frame.operation & 0xffff);
  } else {
    reply(*operation, false);
  }
  return true;
}

uint64_t RmaResponder::next_bytes(const Operation& operation, uint64_t chunk_bytes, const ports::RmaTarget& target) {
  const uint64_t rest = operation.total_bytes - operation.done_bytes;
  const uint64_t wanted = std::min(rest, chunk_bytes);
  return target.read_waits(operation.ticket, operation.done_bytes, wanted) ? std::min(rest, chunk_bytes_min) : wanted;
}

std::optional<uint32_t> RmaResponder::next_to_read(uint64_t chunk_bytes, const ports::RmaTarget& target) {
  while (read_due()) {
    const uint32_t slot = work_->to_read.pop_front();
    const Operation& operation = work_->slots[slot];
    if (!operation.admitted ||
        !target.read_waits(operation.ticket, operation.done_bytes, next_bytes(operation, chunk_bytes, target))) {
      return slot;
    }
    work_->waiting.push_back(slot);
  }
  return std::nullopt;
}

void RmaResponder::resume() {
  if (work_ == nullptr) return;
  while (!work_->waiting.empty()) work_->to_read.push_front(work_->waiting.pop_back());
}

RmaResponder::Chunk RmaResponder::next_chunk(uint32_t slot, uint64_t chunk_bytes, ports::RmaTarget& target) {
  Operation& operation = work_->slots[slot];
  const uint64_t size = operation.admitted ? next_bytes(operation, chunk_bytes, target) : 0;
  const Bytes span = read_span(slot, operation.done_bytes, static_cast<size_t>(size), target);
  if (span.empty()) {
    chunk_sent(slot, 0, target);
    return {};
  }
  return {{operation.id, operation.total_bytes, operation.done_bytes}, static_cast<uint32_t>(span.size())};
}

Bytes RmaResponder::read_span(uint32_t slot, uint64_t offset, size_t size, ports::RmaTarget& target) {
  Operation& operation = work_->slots[slot];
  if (!operation.admitted) return {};
  const Bytes span = target.read_span(operation.ticket, offset);
  if (span.empty()) {
    operation.ending = Status::rma_handle;
    end_read(operation, target);
  }
  return span.first(std::min(size, span.size()));
}

bool RmaResponder::continues(uint32_t slot, uint64_t done_bytes, const ports::RmaTarget& target) const {
  const Operation& operation = work_->slots[slot];
  if (!operation.admitted || done_bytes >= operation.total_bytes) return false;
  return !target.read_waits(operation.ticket, done_bytes, std::min(operation.total_bytes - done_bytes, chunk_bytes_min));
}

const ports::FillProgress* RmaResponder::fill_of(uint32_t slot, const ports::RmaTarget& target) const {
  const Operation& operation = work_->slots[slot];
  return operation.admitted ? target.fill_of(operation.ticket) : nullptr;
}

void RmaResponder::chunk_sent(uint32_t slot, uint32_t bytes, ports::RmaTarget& target) {
  Operation& operation = work_->slots[slot];
  operation.done_bytes += bytes;
  if (operation.admitted && operation.done_bytes < operation.total_bytes) {
    work_->to_read.push_front(slot);
    return;
  }
  if (operation.admitted) end_read(operation, target);
  reply(operation, false);
}

void RmaResponder::end_read(Operation& operation, ports::RmaTarget& target) {
  operation.admitted = false;
  if (!operation.lent) return target.end_read(operation.ticket);
  work_->held.push_back({operation.ticket, operation.lent_until});
}

bool RmaResponder::lend(uint32_t slot, ports::RmaTarget& target) {
  Operation& operation = work_->slots[slot];
  if (!operation.lent && operation.admitted) operation.lent = work_->held.size() < lent_reads_max && target.lend(operation.ticket);
  return operation.lent && operation.admitted;
}

void RmaResponder::given(uint32_t slot, uint64_t position) {
  if (work_->slots[slot].lent) work_->slots[slot].lent_until = position;
}

void RmaResponder::acknowledged(uint64_t position, ports::RmaTarget& target) {
  if (work_ == nullptr) return;
  std::erase_if(work_->held, [&](const Held& held) {
    if (held.until > position) return false;
    target.end_read(held.ticket);
    return true;
  });
}

bool RmaResponder::owes(uint64_t position, ports::RmaTarget& target) {
  if (work_ == nullptr) return false;
  for (uint32_t slot = 0; slot < work_->slots.size(); ++slot) {
    const Operation& operation = work_->slots[slot];
    if (operation.kind != Kind::read || !operation.admitted || !operation.lent || !target.wanted_back(operation.ticket)) continue;
    static_cast<void>(read_span(slot, operation.done_bytes, 1, target));
  }
  acknowledged(position, target);
  return std::ranges::any_of(work_->held, [&](const Held& held) { return target.wanted_back(held.ticket); });
}

void RmaResponder::closed(ports::RmaTarget& target) { acknowledged(UINT64_MAX, target); }

RmaResponder::Reply RmaResponder::next_reply() {
  Reply reply = work_->replies.pop_front();
  if (!reply.end.early) work_->slots[reply.end.operation & 0xffff] = Operation{};
  return reply;
}

void RmaResponder::abandon(ports::RmaTarget& target) {
  if (work_ == nullptr) return;
  for (Operation& operation : work_->slots) {
    if (operation.admitted && operation.kind == Kind::write) static_cast<void>(target.end_write(operation.ticket, false));
    if (operation.admitted && operation.kind == Kind::read) end_read(operation, target);
    operation.admitted = false;
    if (operation.kind != Kind::none && operation.ending.good()) operation.ending = Status::disconnected;
  }
  resume();
}

}  // namespace ccixfer::stream
