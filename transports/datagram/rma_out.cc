#include "transports/datagram/rma_out.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace ccixfer::datagram {
namespace {
constexpr uint64_t description_again = 2;     // chunks after the first description
constexpr uint64_t description_distance = 8;  // then so many times as far
}  // namespace

void RmaOut::open(uint32_t slots_max, uint32_t chunk_bytes) {
  slots_max_ = slots_max;
  longest_chunk_bytes_ = chunk_bytes_ = static_cast<uint16_t>(chunk_bytes);
}

void RmaOut::push(const ports::RmaRequest& request, uint64_t token, uint64_t messages_issued) {
  CHECK(!full());
  const uint32_t slot = operations_.take();
  Operation& operation = operations_[slot];
  const uint64_t generation = std::max(operation.generation, generation_before_) + 1;
  operation = Operation{};
  operation.phase = Phase::waiting;
  operation.generation = generation;
  operation.write = request.write;
  operation.fence = request.fence;
  operation.announces = request.has_completion_message;
  operation.local_completion = request.local_completion;
  operation.token = token;
  operation.issue = issued_++;
  operation.remote = request.remote;
  operation.source = request.source;
  operation.destination = request.destination;
  const uint64_t total_bytes = request.write ? request.source.size() : request.destination.size();
  operation.grid = {total_bytes, chunk_bytes_in(chunk_bytes_, name(slot), total_bytes)};
  operation.cut_for_bytes = chunk_bytes_;
  operation.messages_before = messages_issued;
  operation.through.open(operation.grid.chunks());
  operation.one_frame = total_bytes + rma_write_frame_bytes <= chunk_bytes_ + chunk_frame_bytes_short;
  operation.described = operation.one_frame;
  if (request.has_completion_message) {
    operation.announcement.assign(request.completion_message.begin(), request.completion_message.end());
  }
  waiting_.push_back(slot);
}

uint64_t RmaOut::generation_most() const {
  uint64_t most = generation_before_;
  for (size_t slot = 0; slot < operations_.size(); ++slot) most = std::max(most, operations_[slot].generation);
  return most;
}

void RmaOut::start(uint64_t messages_ended) {
  while (!waiting_.empty()) {
    const uint32_t slot = waiting_.front();
    Operation& operation = operations_[slot];
    if (operation.fence && (active_ > 0 || messages_ended < operation.messages_before)) return;
    waiting_.drop_front();
    ++active_;
    operation.phase = Phase::active;
    (operation.write ? writes_ : requests_).push_back(name(slot));
  }
}

bool RmaOut::fence_before(uint64_t issued) const {
  for (size_t i = 0; i < waiting_.size() && operations_[waiting_[i]].issue < issued; ++i) {
    if (operations_[waiting_[i]].fence) return true;
  }
  return false;
}

RmaOut::Known RmaOut::look(uint64_t id, bool write, Operation*& found) {
  const uint64_t slot = id & 0xffff;
  const uint64_t generation = id >> 16;
  if (generation != 0 && generation <= generation_before_) return Known::over;
  if (slot >= operations_.size()) return Known::never;
  Operation& operation = operations_[slot];
  if (generation == 0 || generation > operation.generation) return Known::never;
  if (generation < operation.generation) return Known::over;
  if (operation.phase == Phase::waiting || operation.write != write) return Known::never;
  if (operation.phase != Phase::active) return Known::over;
  found = &operation;
  return Known::active;
}

bool RmaOut::is_missing(const Operation& operation, const Piece& piece) {
  return piece.index == description ? !operation.described : !operation.through.has(piece);
}

size_t RmaOut::frame_bytes(const Chunk& chunk) const {
  const Operation& operation = operations_[chunk.operation & 0xffff];
  const Piece& piece = chunk.piece;
  if (piece.index == description) return rma_write_frame_bytes;
  const bool describes = operation.one_frame && piece.part == 0;
  const size_t head = describes ? rma_write_frame_bytes : chunk_frame_bytes(chunk.operation, operation.grid.offset(piece));
  return head + operation.grid.length(piece);
}

bool RmaOut::fits(const Chunk& chunk) const {
  if (chunk_bytes_ >= operations_[chunk.operation & 0xffff].cut_for_bytes) return true;
  return chunk.piece.index == description || frame_bytes(chunk) <= chunk_bytes_ + chunk_frame_bytes_short;
}

// The path carries less than when the operation was cut. What was one frame with its description is described by itself.
void RmaOut::split(Operation& operation, const Chunk& chunk) {
  const bool was_one_frame = std::exchange(operation.one_frame, false);
  if (fits(chunk)) {
    lost_.push_front(chunk);
  } else {
    for (uint32_t part = operation.grid.parts(chunk.piece.index); part > 0; --part)
      lost_.push_front({chunk.operation, {chunk.piece.index, part}});
  }
  if (!was_one_frame) return;
  operation.described = false;
  lost_.push_front({chunk.operation, {description, 0}});
}

std::optional<RmaOut::Chunk> RmaOut::next_chunk() {
  Operation* operation = nullptr;
  while (!lost_.empty()) {
    const Chunk chunk = lost_.front();
    const bool matters = look(chunk.operation, true, operation) == Known::active && is_missing(*operation, chunk.piece);
    if (matters && fits(chunk)) return chunk;
    lost_.drop_front();
    if (matters) split(*operation, chunk);
  }
  while (!writes_.empty()) {
    if (look(writes_.front(), true, operation) == Known::active && operation->next < operation->through.count()) {
      if (!operation->described && operation->next >= operation->describe_at) return Chunk{writes_.front(), {description, 0}};
      if (operation->next >= operation->through.end()) return std::nullopt;  // too far ahead of one that is missing
      const Chunk chunk{writes_.front(), {operation->next, 0}};
      if (fits(chunk)) return chunk;
      ++operation->next;
      split(*operation, chunk);
      return lost_.front();
    }
    writes_.drop_front();
  }
  return std::nullopt;
}

bool RmaOut::chunk_due() { return next_chunk().has_value(); }

size_t RmaOut::next_chunk_frame_bytes() { return frame_bytes(next_chunk().value()); }

uint16_t RmaOut::told_chunk_bytes(const Operation& operation) const {
  return operation.grid.chunk_bytes == longest_chunk_bytes_ ? 0 : static_cast<uint16_t>(operation.grid.chunk_bytes);
}

reliability::Carried RmaOut::take_chunk(wire::Writer& out, uint8_t carried_kind) {
  const Chunk chunk = next_chunk().value();
  Operation& operation = operations_[chunk.operation & 0xffff];
  const Piece& piece = chunk.piece;
  const reliability::Carried carried{.kind = carried_kind, .a = piece.part, .b = chunk.operation, .c = piece.index};
  if (!lost_.empty()) {
    lost_.drop_front();
  } else if (piece.index == description) {
    operation.describe_at = operation.describe_at == 0 ? description_again : operation.describe_at * description_distance;
  } else {
    ++operation.next;
  }
  if (piece.index == description) {
    encode(out, RmaWriteFrame{chunk.operation, operation.grid.total_bytes, 0, operation.remote, {}, told_chunk_bytes(operation)});
    return carried;
  }
  const uint64_t offset = operation.grid.offset(piece);
  const Bytes bytes = operation.source.subspan(offset, operation.grid.length(piece));
  if (operation.one_frame) {
    encode(out, RmaWriteFrame{chunk.operation, operation.grid.total_bytes, offset, operation.remote, bytes,
                              told_chunk_bytes(operation)});
  } else {
    encode(out, RmaWriteMoreFrame{chunk.operation, offset, bytes});
  }
  return carried;
}

std::optional<uint64_t> RmaOut::chunk_acked(uint64_t id, const Piece& piece) {
  Operation* operation = nullptr;
  if (look(id, true, operation) != Known::active) return std::nullopt;
  operation->described = true;
  if (piece.index == description) return std::nullopt;
  static_cast<void>(operation->through.mark(piece, operation->grid.parts(piece.index)));
  if (!operation->local_completion || !operation->through.complete()) return std::nullopt;
  return operation->token;
}

void RmaOut::chunk_lost(uint64_t id, const Piece& piece) {
  Operation* operation = nullptr;
  if (look(id, true, operation) != Known::active || !is_missing(*operation, piece)) return;
  // A packet that has a chunk before its description is not taken while the peer does not know the write.
  piece.index == description ? lost_.push_front({id, piece}) : lost_.push_back({id, piece});
}

bool RmaOut::request_due() {
  Operation* operation = nullptr;
  while (!requests_.empty()) {
    if (look(requests_.front(), false, operation) == Known::active) return true;
    requests_.drop_front();
  }
  return false;
}

reliability::Carried RmaOut::take_request(wire::Writer& out, uint8_t carried_kind) {
  CHECK(request_due());
  const uint64_t id = requests_.front();
  requests_.drop_front();
  const Operation& operation = operations_[id & 0xffff];
  encode(out, RmaReadFrame{id, operation.grid.total_bytes, operation.remote, told_chunk_bytes(operation)});
  return {.kind = carried_kind, .b = id};
}

void RmaOut::request_lost(uint64_t id) {
  Operation* operation = nullptr;
  if (look(id, false, operation) == Known::active) requests_.push_back(id);
}

bool RmaOut::data(const RmaReadDataFrame& frame, OutMessages& messages, Duration send_timeout, const Ended& ended) {
  Operation* operation = nullptr;
  const Known known = look(frame.operation, false, operation);
  if (known != Known::active) return known == Known::over;
  const std::optional<Piece> piece = operation->grid.piece(frame.offset_bytes, frame.bytes.size());
  if (!piece) return false;
  switch (operation->through.mark(*piece, operation->grid.parts(piece->index))) {
    case ChunkWindow::Mark::beyond:
      return false;
    case ChunkWindow::Mark::duplicate:
      return true;
    case ChunkWindow::Mark::fresh:
      break;
  }
  std::memcpy(operation->destination.data() + frame.offset_bytes, frame.bytes.data(), frame.bytes.size());
  if (operation->through.complete()) {
    finish(static_cast<uint32_t>(frame.operation & 0xffff), Status::success, messages, send_timeout, ended);
  }
  return true;
}

bool RmaOut::end(const RmaEndFrame& frame, OutMessages& messages, Duration send_timeout, const Ended& ended) {
  Operation* operation = nullptr;
  const Known known = look(frame.operation, frame.write, operation);
  if (known != Known::active) return known == Known::over;
  // Whole before all of it went out: only a mailbox may know the put from an earlier connection.
  const bool all_out = operation->next == operation->through.count();
  const bool was_named = operation->next > 0 || operation->describe_at > 0;
  const bool known_before = operation->remote.handle.kind == ports::HandleKind::mailbox && was_named;
  if (frame.ending.good() && !all_out && !known_before) return false;
  finish(static_cast<uint32_t>(frame.operation & 0xffff), frame.ending, messages, send_timeout, ended);
  return true;
}

void RmaOut::finish(uint32_t slot, ports::OperationResult ending, OutMessages& messages, Duration send_timeout,
                    const Ended& ended) {
  Operation& operation = operations_[slot];
  if (!ending.good() || !operation.announces) return finish_slot(slot, ending, ended);
  operation.phase = Phase::announcing;
  operation.ending = ending;
  messages.push({true, slot}, std::move(operation.announcement), send_timeout);
}

void RmaOut::announced(uint32_t slot, Status status, const Ended& ended) {
  CHECK(operations_[slot].phase == Phase::announcing);
  finish_slot(slot, status == Status::success ? operations_[slot].ending : ports::OperationResult(status), ended);
}

void RmaOut::finish_slot(uint32_t slot, ports::OperationResult ending, const Ended& ended) {
  Operation& operation = operations_[slot];
  operation.phase = Phase::free;
  operation.announcement = {};
  operation.through = {};
  operations_.release(slot);
  --active_;
  ended(operation.token, ending);
}

void RmaOut::fail_all(Status status, const Ended& ended) {
  std::vector<uint32_t> slots;
  for (uint32_t slot = 0; slot < operations_.size(); ++slot) {
    if (operations_[slot].phase != Phase::free) slots.push_back(slot);
  }
  std::sort(slots.begin(), slots.end(), [this](uint32_t a, uint32_t b) { return operations_[a].issue < operations_[b].issue; });
  active_ += static_cast<uint32_t>(waiting_.size());
  waiting_.clear();
  for (const uint32_t slot : slots) finish_slot(slot, status, ended);
}

}  // namespace ccixfer::datagram
