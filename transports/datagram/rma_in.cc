#include "transports/datagram/rma_in.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::datagram {

void RmaIn::open(uint32_t slots_max, uint32_t chunk_bytes, uint64_t connection) {
  slots_max_ = slots_max;
  longest_chunk_bytes_ = chunk_bytes_ = static_cast<uint16_t>(chunk_bytes);
  connection_ = connection;
}

std::unique_ptr<RmaIn::Generations> RmaIn::generations() const {
  if (operations_.empty()) return nullptr;
  auto all = std::make_unique<Generations>();
  all->reserve(operations_.size());
  for (const Operation& operation : operations_) all->push_back(operation.generation << 1 | (operation.write ? 1 : 0));
  return all;
}

void RmaIn::go_on(const Generations& generations) {
  operations_.resize(generations.size());
  for (size_t slot = 0; slot < generations.size(); ++slot) {
    operations_[slot].generation = generations[slot] >> 1;
    operations_[slot].write = (generations[slot] & 1) != 0;
  }
}

bool RmaIn::is_quiet() const {
  return !leaving_ && replies_.empty() &&
         std::none_of(operations_.begin(), operations_.end(), [](const Operation& operation) { return operation.active; });
}

RmaIn::Operation* RmaIn::slot_of(uint64_t id) {
  const uint64_t slot = id & 0xffff;
  if (slot >= slots_max_ || id >> 16 == 0) return nullptr;
  if (slot >= operations_.size()) operations_.resize(slot + 1);
  return &operations_[slot];
}

RmaIn::Operation* RmaIn::current(uint64_t id) {
  const uint64_t slot = id & 0xffff;
  if (slot >= operations_.size()) return nullptr;
  Operation& operation = operations_[slot];
  return operation.generation == id >> 16 && operation.active ? &operation : nullptr;
}

Grid RmaIn::grid_of(uint64_t total_bytes, uint16_t told_chunk_bytes) const {
  return {total_bytes, told_chunk_bytes == 0 ? uint32_t{longest_chunk_bytes_} : told_chunk_bytes};
}

void RmaIn::begin(Operation& operation, uint64_t id, bool write, const Grid& grid, const ports::RemoteRef& remote) {
  const bool in_replies = operation.in_replies, in_reads = operation.in_reads;
  operation = Operation{};
  operation.in_replies = in_replies;
  operation.in_reads = in_reads;
  operation.generation = id >> 16;
  operation.active = true;
  operation.write = write;
  operation.handle = remote.handle;
  operation.target_offset_bytes = remote.offset_bytes;
  operation.grid = grid;
  operation.through.open(grid.chunks());
}

void RmaIn::decide(Operation& operation, uint64_t id, ports::OperationResult ending) {
  operation.active = false;
  operation.admitted = false;
  operation.ending = ending;
  operation.through = {};
  queue_reply(static_cast<uint32_t>(id & 0xffff));
}

// A read that ended well needs no answer: its bytes are there.
bool RmaIn::owes_reply(uint32_t slot) const {
  const Operation& operation = operations_[slot];
  return !operation.active && (operation.write || !operation.ending.good());
}

void RmaIn::queue_reply(uint32_t slot) {
  if (!owes_reply(slot) || std::exchange(operations_[slot].in_replies, true)) return;
  replies_.push_back(slot);
}

bool RmaIn::write(const RmaWriteFrame& frame, ports::RmaTarget& target) {
  Operation* operation = slot_of(frame.operation);
  if (operation == nullptr) return false;
  const Grid grid = grid_of(frame.total_bytes, frame.chunk_bytes);
  if (grid.chunk_bytes > longest_chunk_bytes_) return false;
  if (!frame.bytes.empty() && !grid.piece(frame.offset_bytes, frame.bytes.size())) return false;
  const uint64_t generation = frame.operation >> 16;
  if (generation < operation->generation) return true;  // late
  if (generation > operation->generation) {
    if (operation->active && operation->write) return false;  // another one in the slot of one that has not ended
    if (operation->admitted) target.end_read(operation->ticket);
    begin(*operation, frame.operation, true, grid, frame.remote);
    if (leaving_) {
      decide(*operation, frame.operation, Status::disconnected);
      return true;
    }
    const ports::Admission admission = target.begin_write(connection_, frame.remote, frame.total_bytes);
    if (admission.status != Status::success || admission.already_placed) {
      decide(*operation, frame.operation, admission.ending());
      return true;
    }
    operation->ticket = admission.ticket;
    operation->admitted = true;
  }
  if (!operation->write) return false;
  if (!operation->active) return true;  // late
  if (operation->grid != grid || operation->handle != frame.remote.handle ||
      operation->target_offset_bytes != frame.remote.offset_bytes) {
    return false;
  }
  return frame.bytes.empty() || take(*operation, {frame.operation, frame.offset_bytes, frame.bytes}, target);
}

bool RmaIn::knows(uint64_t id) const {
  const uint64_t slot = id & 0xffff;
  return slot >= slots_max_ || (slot < operations_.size() && id >> 16 <= operations_[slot].generation);
}

bool RmaIn::write_more(const RmaWriteMoreFrame& frame, ports::RmaTarget& target) {
  Operation* operation = slot_of(frame.operation);
  if (operation == nullptr || frame.operation >> 16 > operation->generation) return false;
  if (frame.operation >> 16 < operation->generation) return true;  // late
  if (!operation->write) return false;
  if (!operation->active) return true;  // late
  return take(*operation, frame, target);
}

bool RmaIn::take(Operation& operation, const RmaWriteMoreFrame& frame, ports::RmaTarget& target) {
  const std::optional<Piece> piece = operation.grid.piece(frame.offset_bytes, frame.bytes.size());
  if (!piece) return false;
  const bool is_whole = piece->part == 0;
  if (is_whole && operation.through.is_in_parts(piece->index)) return take_in_parts(operation, frame, piece->index, target);
  switch (operation.through.mark(*piece, operation.grid.parts(piece->index))) {
    case ChunkWindow::Mark::beyond:
      return false;
    case ChunkWindow::Mark::duplicate:
      return true;
    case ChunkWindow::Mark::fresh:
      break;
  }
  place(operation, frame, target);
  return true;
}

// A whole chunk that comes late, when some of its parts have come: only the others are placed.
bool RmaIn::take_in_parts(Operation& operation, const RmaWriteMoreFrame& frame, uint64_t index, ports::RmaTarget& target) {
  const Grid grid = operation.grid;
  for (uint32_t part = 1; part <= grid.parts(index) && operation.active; ++part) {
    const uint64_t offset = grid.offset({index, part});
    const Bytes bytes = frame.bytes.subspan(offset - frame.offset_bytes, grid.length({index, part}));
    if (!take(operation, {frame.operation, offset, bytes}, target)) return false;
  }
  return true;
}

void RmaIn::place(Operation& operation, const RmaWriteMoreFrame& frame, ports::RmaTarget& target) {
  for (size_t done = 0; done < frame.bytes.size();) {
    const MutableBytes span = target.write_span(operation.ticket, frame.offset_bytes + done);
    if (span.empty()) {
      const ports::OperationResult ending = target.end_write(operation.ticket, false);
      return decide(operation, frame.operation, ending.good() ? ports::OperationResult(Status::rma_handle) : ending);
    }
    const size_t size = std::min(span.size(), frame.bytes.size() - done);
    std::memcpy(span.data(), frame.bytes.data() + done, size);
    done += size;
  }
  if (operation.through.complete()) decide(operation, frame.operation, target.end_write(operation.ticket, true));
}

bool RmaIn::read(const RmaReadFrame& frame, ports::RmaTarget& target) {
  Operation* operation = slot_of(frame.operation);
  if (operation == nullptr) return false;
  const uint64_t generation = frame.operation >> 16;
  const Grid grid = grid_of(frame.total_bytes, frame.chunk_bytes);
  if (grid.chunk_bytes > longest_chunk_bytes_) return false;
  if (generation < operation->generation) return true;  // late
  if (generation == operation->generation) return !operation->write;
  if (operation->active && operation->write) return false;
  if (operation->admitted) target.end_read(operation->ticket);  // all of it has come, and the peer did not wait for us to know
  begin(*operation, frame.operation, false, grid, frame.remote);
  if (leaving_) {
    decide(*operation, frame.operation, Status::disconnected);
    return true;
  }
  const ports::Admission admission = target.begin_read(connection_, frame.remote, frame.total_bytes);
  if (admission.status != Status::success) {
    decide(*operation, frame.operation, admission.ending());
    return true;
  }
  operation->ticket = admission.ticket;
  operation->admitted = true;
  if (!std::exchange(operation->in_reads, true)) reads_.push_back(static_cast<uint32_t>(frame.operation & 0xffff));
  return true;
}

bool RmaIn::reply_due() {
  while (!replies_.empty()) {
    if (owes_reply(replies_.front())) return true;
    operations_[replies_.front()].in_replies = false;  // another operation has its slot: the peer knows
    replies_.drop_front();
  }
  return false;
}

reliability::Carried RmaIn::take_reply(wire::Writer& out, uint8_t carried_kind) {
  CHECK(reply_due());
  const uint32_t slot = replies_.front();
  replies_.drop_front();
  Operation& operation = operations_[slot];
  operation.in_replies = false;
  const uint64_t id = operation.generation << 16 | slot;
  encode(out, RmaEndFrame{id, operation.ending, operation.write});
  return {.kind = carried_kind, .b = id};
}

void RmaIn::reply_lost(uint64_t id) {
  if (operations_[id & 0xffff].generation == id >> 16) queue_reply(static_cast<uint32_t>(id & 0xffff));
}

size_t RmaIn::frame_bytes(const Operation& operation, const Chunk& chunk) const {
  return chunk_frame_bytes(chunk.operation, operation.grid.offset(chunk.piece)) + operation.grid.length(chunk.piece);
}

bool RmaIn::fits(const Operation& operation, const Chunk& chunk) const {
  return frame_bytes(operation, chunk) <= chunk_bytes_ + chunk_frame_bytes_short;
}

std::optional<RmaIn::Chunk> RmaIn::next_chunk() {
  while (!lost_.empty()) {
    const Chunk chunk = lost_.front();
    const Operation* operation = current(chunk.operation);
    const bool matters = operation != nullptr && !operation->through.has(chunk.piece);
    if (matters && fits(*operation, chunk)) return chunk;
    lost_.drop_front();
    if (matters) split(*operation, chunk);
  }
  while (!reads_.empty()) {
    Operation& operation = operations_[reads_.front()];
    if (operation.active && !operation.write && operation.next < operation.through.count()) {
      if (operation.next >= operation.through.end()) return std::nullopt;
      const Chunk chunk{operation.generation << 16 | reads_.front(), {operation.next, 0}};
      if (fits(operation, chunk)) return chunk;
      ++operation.next;
      split(operation, chunk);
      return lost_.front();
    }
    operation.in_reads = false;
    reads_.drop_front();
  }
  return std::nullopt;
}

// The path carries less than when the peer cut the operation.
void RmaIn::split(const Operation& operation, const Chunk& chunk) {
  for (uint32_t part = operation.grid.parts(chunk.piece.index); part > 0; --part)
    lost_.push_front({chunk.operation, {chunk.piece.index, part}});
}

bool RmaIn::chunk_due() { return next_chunk().has_value(); }

size_t RmaIn::next_chunk_frame_bytes() {
  const Chunk chunk = next_chunk().value();
  return frame_bytes(operations_[chunk.operation & 0xffff], chunk);
}

std::optional<reliability::Carried> RmaIn::take_chunk(wire::Writer& out, uint8_t carried_kind, ports::RmaTarget& target) {
  const Chunk chunk = next_chunk().value();
  Operation& operation = operations_[chunk.operation & 0xffff];
  if (lost_.empty()) {
    ++operation.next;
  } else {
    lost_.drop_front();
  }
  const uint64_t offset = operation.grid.offset(chunk.piece);
  const uint64_t length = operation.grid.length(chunk.piece);
  const Bytes span = target.read_span(operation.ticket, offset);
  if (span.size() < length) {  // revoked, or not filled so far: nobody waits here for the rest
    target.end_read(operation.ticket);
    decide(operation, chunk.operation, Status::rma_handle);
    return std::nullopt;
  }
  encode(out, RmaReadDataFrame{chunk.operation, offset, span.first(length)});
  return reliability::Carried{.kind = carried_kind, .a = chunk.piece.part, .b = chunk.operation, .c = chunk.piece.index};
}

void RmaIn::chunk_acked(uint64_t id, const Piece& piece, ports::RmaTarget& target) {
  Operation* operation = current(id);
  if (operation == nullptr || operation->write) return;
  static_cast<void>(operation->through.mark(piece, operation->grid.parts(piece.index)));
  if (!operation->through.complete()) return;
  target.end_read(operation->ticket);
  decide(*operation, id, Status::success);
}

void RmaIn::chunk_lost(uint64_t id, const Piece& piece) {
  const Operation* operation = current(id);
  if (operation != nullptr && !operation->write && !operation->through.has(piece)) lost_.push_back({id, piece});
}

void RmaIn::abandon(ports::RmaTarget& target) {
  for (uint32_t slot = 0; slot < operations_.size(); ++slot) {
    Operation& operation = operations_[slot];
    if (!operation.active) continue;
    if (operation.admitted && operation.write) static_cast<void>(target.end_write(operation.ticket, false));
    if (operation.admitted && !operation.write) target.end_read(operation.ticket);
    decide(operation, operation.generation << 16 | slot, Status::disconnected);
  }
}

}  // namespace ccixfer::datagram
