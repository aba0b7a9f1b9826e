#include "transports/stream/rma_initiator.h"

#include <algorithm>

#include "core/base/check.h"

namespace ccixfer::stream {

void RmaInitiator::push(const ports::RmaRequest& request, uint64_t token, uint64_t messages_issued) {
  CHECK(!full());
  const uint32_t slot = operations_.take();
  Operation& operation = operations_[slot];
  const uint16_t generation = static_cast<uint16_t>(operation.generation + 1);
  operation = Operation{};
  operation.phase = Phase::waiting;
  operation.generation = generation;
  operation.write = request.write;
  operation.fence = request.fence;
  operation.token = token;
  operation.remote = request.remote;
  operation.source = request.source;
  operation.source_is_file = request.source_is_file;
  operation.destination = request.destination;
  operation.arrival = request.arrival;
  operation.total_bytes = request.write ? request.source.size() : request.destination.size();
  operation.messages_before = messages_issued;
  operation.announces = request.has_completion_message;
  operation.local_completion = request.local_completion;
  if (request.has_completion_message) operation.announcement = copy_message({&request.completion_message, 1});
  operation.issue = issued_++;
  waiting_.push_back(slot);
}

std::optional<uint32_t> RmaInitiator::start(uint64_t messages_ended) {
  if (waiting_.empty()) return std::nullopt;
  Operation& operation = operations_[waiting_.front()];
  if (operation.fence && (active_ > 0 || messages_ended < operation.messages_before)) return std::nullopt;
  ++active_;
  operation.phase = operation.write ? Phase::sending : Phase::asked;
  return waiting_.pop_front();
}

bool RmaInitiator::fence_before(uint64_t issued) const {
  for (size_t i = 0; i < waiting_.size() && operations_[waiting_[i]].issue < issued; ++i) {
    if (operations_[waiting_[i]].fence) return true;
  }
  return false;
}

RmaInitiator::Operation* RmaInitiator::find(uint32_t id, bool write) {
  const uint32_t slot = slot_of(id);
  if (slot >= operations_.size()) return nullptr;
  Operation& operation = operations_[slot];
  if (operation.generation != id >> 16 || operation.write != write) return nullptr;
  const bool in_flight =
      operation.phase == Phase::sending || operation.phase == Phase::asked || operation.phase == Phase::awaiting_end;
  return in_flight ? &operation : nullptr;
}

void RmaInitiator::all_sent(uint32_t slot) {
  CHECK(operations_[slot].phase == Phase::sending);
  operations_[slot].phase = Phase::awaiting_end;
}

void RmaInitiator::finish(uint32_t slot, ports::Ending ending, MessageSender& messages, Duration send_timeout, const Ended& ended) {
  Operation& operation = operations_[slot];
  if (!ending.good() || !operation.announces) return end(slot, ending, ended);
  operation.phase = Phase::announcing;
  operation.ending = ending;
  messages.push({true, slot}, std::move(operation.announcement), send_timeout);
}

void RmaInitiator::cancel(uint32_t slot, const Ended& ended) {
  CHECK(operations_[slot].phase == Phase::sending && operations_[slot].done_bytes == 0);
  end(slot, Status::cancelled, ended);
}

void RmaInitiator::announced(uint32_t slot, Status status, const Ended& ended) {
  CHECK(operations_[slot].phase == Phase::announcing);
  end(slot, status == Status::success ? operations_[slot].ending : ports::Ending(status), ended);
}

void RmaInitiator::end(uint32_t slot, ports::Ending ending, const Ended& ended) {
  const uint64_t token = operations_[slot].token;
  operations_[slot].phase = Phase::free;
  operations_[slot].announcement = {};
  operations_.release(slot);
  --active_;
  ended(token, ending);
}

void RmaInitiator::fail_all(Status status, const Ended& ended) {
  std::vector<uint32_t> slots;
  for (uint32_t slot = 0; slot < operations_.size(); ++slot) {
    if (operations_[slot].phase != Phase::free) slots.push_back(slot);
  }
  std::sort(slots.begin(), slots.end(), [this](uint32_t a, uint32_t b) { return operations_[a].issue < operations_[b].issue; });
  active_ += static_cast<uint32_t>(waiting_.size());
  waiting_.clear();
  for (const uint32_t slot : slots) end(slot, status, ended);
}

}  // namespace ccixfer::stream
