#include "transports/rdma/rma_in.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "transports/rdma/limits.h"

namespace ccixfer::rdma {

RmaIn::Operation* RmaIn::begin(uint32_t id, bool write, uint64_t total_bytes, const ports::RemoteRef& remote,
                               ports::RmaTarget& target) {
  const uint32_t slot = id & 0xffff;
  if (slot >= slots_max_) return nullptr;
  if (work_ == nullptr) work_ = std::make_unique<Work>();
  if (slot >= work_->slots.size()) work_->slots.resize(size_t{slot} + 1);
  Operation& operation = work_->slots[slot];
  if (operation.kind != Kind::none) return nullptr;
  clear(operation);
  operation.kind = write ? Kind::write : Kind::read;
  operation.id = id;
  operation.total_bytes = total_bytes;
  if (leaving_) {
    operation.result = Status::disconnected;
  } else {
    const ports::Admission admission =
        write ? target.begin_write(connection_, remote, total_bytes) : target.begin_read(connection_, remote, total_bytes);
    operation.result = admission.ending();
    operation.admitted = admission.status == Status::success && !admission.already_placed;
    operation.ticket = admission.ticket;
  }
  if (!operation.admitted) reply(operation);
  return &operation;
}

// Its slot stays in the ring of those with progress to tell, if it is there.
void RmaIn::clear(Operation& operation) {
  const bool progress_due = operation.progress_due;
  operation = Operation{};
  operation.progress_due = progress_due;
}

void RmaIn::reply(Operation& operation) {
  work_->replies.push_back({operation.kind == Kind::write, {operation.id, operation.result, false}});
}

// False: the memory is not there any more.
bool RmaIn::place(Operation& operation, uint64_t offset_bytes, Bytes bytes, ports::RmaTarget& target) {
  while (!bytes.empty()) {
    const MutableBytes memory = target.write_span(operation.ticket, offset_bytes);
    if (memory.empty()) return false;
    const size_t size = std::min(memory.size(), bytes.size());
    std::memcpy(memory.data(), bytes.data(), size);
    offset_bytes += size;
    bytes = bytes.subspan(size);
  }
  return true;
}

// ---- What the peer asks.

bool RmaIn::write(const wire::RmaWrite& frame, Bytes payload, ports::RmaTarget& target) {
  if (frame.offset_bytes != 0 || payload.size() != frame.total_bytes) return false;
  Operation* operation = begin(frame.operation, true, frame.total_bytes, frame.remote, target);
  if (operation == nullptr) return false;
  if (!operation->admitted) return true;
  operation->posted_bytes = frame.total_bytes;
  operation->ending = !place(*operation, 0, payload, target);
  end_if_done(*operation, target);
  return true;
}

bool RmaIn::read(const wire::RmaRead& frame, ports::RmaTarget& target) {
  if (frame.total_bytes > inline_bytes_max) return false;
  const Operation* operation = begin(frame.operation, false, frame.total_bytes, frame.remote, target);
  if (operation == nullptr) return false;
  if (operation->admitted) work_->inline_reads.push_back(slot_of(*operation));
  return true;
}

bool RmaIn::announced(const Announced& record, bool write, ports::RmaTarget& target) {
  Operation* operation = begin(record.operation, write, record.total_bytes, record.remote, target);
  if (operation == nullptr) return false;
  operation->address = record.address;
  operation->key = record.key;
  if (operation->admitted) work_->moving.push_back(slot_of(*operation));
  return true;
}

// ---- Small reads.

RmaIn::InlineRead RmaIn::begin_inline_read(ports::RmaTarget& target) {
  const uint32_t slot = work_->inline_reads.front();
  Operation& operation = work_->slots[slot];
  const auto total = static_cast<size_t>(operation.total_bytes);
  const Bytes memory = operation.ending ? Bytes{} : target.read_span(operation.ticket, 0);
  InlineRead read{{operation.id, operation.total_bytes, 0}, memory.size() < total ? Bytes{} : memory.first(total)};
  if (read.bytes.empty()) {
    operation.ending = true;
    end_inline_read(read, target);
  }
  return read;
}

void RmaIn::end_inline_read(const InlineRead& read, ports::RmaTarget& target) {
  const uint32_t slot = read.frame.operation & 0xffff;
  CHECK(work_->inline_reads.front() == slot);
  work_->inline_reads.drop_front();
  work_->slots[slot].posted_bytes = work_->slots[slot].total_bytes;
  end_if_done(work_->slots[slot], target);
}

// ---- Pieces.

std::optional<RmaIn::Piece> RmaIn::next_piece(uint32_t piece_bytes, ports::RmaTarget& target) {
  while (piece_due()) {
    const uint32_t slot = work_->moving.front();
    Operation& operation = work_->slots[slot];
    const uint64_t at = operation.posted_bytes;
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(piece_bytes, operation.total_bytes - at));
    Piece piece{slot, operation.kind == Kind::write, true, at, {}, operation.address + at, operation.key};
    if (piece.write) {
      piece.memory = target.write_span(operation.ticket, at);
    } else {
      if (target.read_waits(operation.ticket, at, wanted)) {
        work_->waiting.push_back(slot);
        work_->moving.drop_front();
        continue;
      }
      const Bytes memory = target.read_span(operation.ticket, at);
      piece.memory = {const_cast<std::byte*>(memory.data()), memory.size()};  // a read writes nothing there
      if (!memory.empty() && !operation.lent) operation.lent = target.lend(operation.ticket);
      piece.lent = operation.lent;
    }
    if (!piece.memory.empty()) {
      piece.memory = piece.memory.first(std::min(wanted, piece.memory.size()));
      return piece;
    }
    work_->moving.drop_front();
    operation.ending = true;  // revoked
    end_if_done(operation, target);
  }
  return std::nullopt;
}

void RmaIn::posted(const Piece& piece, size_t bytes) {
  Operation& operation = work_->slots[piece.slot];
  operation.posted_bytes += bytes;
  ++operation.pieces;
  ++work_->pieces;
  if (operation.posted_bytes == operation.total_bytes) work_->moving.drop_front();
}

void RmaIn::refuse(const Piece& piece, Status status, ports::RmaTarget& target) {
  Operation& operation = work_->slots[piece.slot];
  CHECK(work_->moving.front() == piece.slot);
  work_->moving.drop_front();
  operation.result = status;
  operation.ending = true;
  end_if_done(operation, target);
}

void RmaIn::moved(uint32_t slot, uint64_t offset_bytes, size_t bytes, bool good, Bytes staged, ports::RmaTarget& target) {
  Operation& operation = work_->slots[slot];
  CHECK(operation.kind != Kind::none && operation.pieces > 0);
  --operation.pieces;
  --work_->pieces;
  if (good && !staged.empty() && !operation.ending) good = place(operation, offset_bytes, staged, target);
  operation.moved_bytes += bytes;
  if (!good && !std::exchange(operation.ending, true)) {
    work_->moving.erase_if([slot](uint32_t each) { return each == slot; });
  }
  end_if_done(operation, target);
  if (operation.admitted && !std::exchange(operation.progress_due, true)) work_->progress.push_back(slot);
}

void RmaIn::resume() {
  if (work_ == nullptr) return;
  while (!work_->waiting.empty()) work_->moving.push_front(work_->waiting.pop_back());
}

std::optional<Progress> RmaIn::next_progress() {
  Operation& operation = work_->slots[work_->progress.front()];
  work_->progress.drop_front();
  if (!std::exchange(operation.progress_due, false) || !operation.admitted) return std::nullopt;
  return Progress{operation.id, operation.moved_bytes};
}

// ---- The end.

void RmaIn::end_if_done(Operation& operation, ports::RmaTarget& target) {
  const bool all = operation.posted_bytes == operation.total_bytes;
  if (!operation.admitted || operation.pieces > 0 || (!all && !operation.ending)) return;
  operation.admitted = false;
  const bool complete = all && !operation.ending;
  ports::OperationResult result = Status::rma_handle;
  if (operation.kind == Kind::write) {
    result = target.end_write(operation.ticket, complete);
    if (!complete && result.good()) result = Status::rma_handle;
  } else {
    target.end_read(operation.ticket);
    if (complete) result = operation.result;
    if (!complete && leaving_) result = Status::disconnected;
  }
  if (operation.result.good()) operation.result = result;  // else: why it ends early
  reply(operation);
}

RmaIn::Reply RmaIn::next_reply() {
  Reply next = work_->replies.pop_front();
  clear(work_->slots[next.end.operation & 0xffff]);
  return next;
}

void RmaIn::give_up(Operation& operation, ports::RmaTarget& target) {
  operation.ending = true;
  end_if_done(operation, target);
}

void RmaIn::leave(ports::RmaTarget& target) {
  leaving_ = true;
  if (work_ == nullptr) return;
  work_->moving.clear();
  work_->waiting.clear();
  work_->inline_reads.clear();
  for (Operation& operation : work_->slots) {
    if (operation.admitted) give_up(operation, target);
  }
}

void RmaIn::abandon(ports::RmaTarget& target) {
  if (work_ == nullptr) return;
  work_->moving.clear();
  work_->waiting.clear();
  work_->inline_reads.clear();
  work_->pieces = 0;
  for (Operation& operation : work_->slots) {
    operation.pieces = 0;
    if (operation.admitted) give_up(operation, target);
  }
}

}  // namespace ccixfer::rdma
