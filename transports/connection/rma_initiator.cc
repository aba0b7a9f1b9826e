#include "transports/connection/rma_initiator.h"

#include <algorithm>

#include "core/base/check.h"

namespace ccixfer::connection {

void RmaInitiator::push(const ports::RmaRequest& request, uint64_t token, uint64_t messages_issued) {
  CHECK(!full());
  if (work_ == nullptr) work_ = std::make_unique<Work>();
  const uint32_t slot = work_->operations.take().index;
  Operation& operation = work_->operations[slot];
  operation = Operation{};
  operation.write = request.write;
  operation.fence = request.fence;
  operation.token = token;
  operation.remote = request.remote;
  operation.source = request.source;
  operation.source_is_file = request.source_is_file;
  operation.destination = request.destination;
  operation.key = request.local.key;
  operation.fill = request.fill;
  operation.total_bytes = request.write ? request.source.size() : request.destination.size();
  operation.messages_before = messages_issued;
  operation.announces = request.has_completion_message;
  operation.local_completion = request.local_completion;
  if (request.has_completion_message) operation.announcement = copy_message({&request.completion_message, 1});
  operation.issue = issued_++;
  work_->waiting.push_back(slot);
}

void RmaInitiator::start(uint64_t messages_ended) {
  while (work_ != nullptr && !work_->waiting.empty()) {
    Operation& operation = work_->operations[work_->waiting.front()];
    if (operation.fence && (work_->active > 0 || messages_ended < operation.messages_before)) return;
    ++work_->active;
    operation.phase = operation.write ? Phase::sending : Phase::asked;
    (operation.write ? work_->writes : work_->requests).push_back(work_->waiting.pop_front());
  }
}

void RmaInitiator::resume() {
  if (work_ == nullptr) return;
  while (!work_->waiting_writes.empty()) work_->writes.push_front(work_->waiting_writes.pop_back());
}

bool RmaInitiator::fence_before(uint64_t issued) const {
  if (work_ == nullptr) return false;
  for (size_t i = 0; i < work_->waiting.size() && work_->operations[work_->waiting[i]].issue < issued; ++i) {
    if (work_->operations[work_->waiting[i]].fence) return true;
  }
  return false;
}

RmaInitiator::Operation* RmaInitiator::find(uint32_t id, bool write) {
  Operation* operation = work_ == nullptr ? nullptr : work_->operations.find({slot_of(id), id >> 16});
  if (operation == nullptr || operation->write != write) return nullptr;
  const bool in_flight = operation->phase == Phase::sending || operation->phase == Phase::awaiting_end ||
                         (operation->phase == Phase::asked && operation->requested);
  return in_flight ? operation : nullptr;
}

uint32_t RmaInitiator::next_request() {
  const uint32_t slot = work_->requests.pop_front();
  work_->operations[slot].requested = true;
  return slot;
}

void RmaInitiator::all_sent(uint32_t slot) {
  CHECK(work_->operations[slot].phase == Phase::sending);
  work_->operations[slot].phase = Phase::awaiting_end;
}

void RmaInitiator::finish(uint32_t slot, ports::OperationResult ending, MessageSender& messages, Duration send_timeout,
                          const Ended& ended) {
  Operation& operation = work_->operations[slot];
  if (!ending.good() || !operation.announces) return end(slot, ending, ended);
  operation.phase = Phase::announcing;
  operation.ending = ending;
  messages.push({true, slot}, std::move(operation.announcement), send_timeout);
}

void RmaInitiator::cancel(uint32_t slot, const Ended& ended) {
  CHECK(work_->operations[slot].phase == Phase::sending && work_->operations[slot].done_bytes == 0);
  end(slot, Status::cancelled, ended);
}

void RmaInitiator::announced(uint32_t slot, Status status, const Ended& ended) {
  CHECK(work_->operations[slot].phase == Phase::announcing);
  end(slot, status == Status::success ? work_->operations[slot].ending : ports::OperationResult(status), ended);
}

void RmaInitiator::end(uint32_t slot, ports::OperationResult ending, const Ended& ended) {
  const uint64_t token = work_->operations[slot].token;
  work_->operations[slot].announcement = {};
  work_->operations.release(slot);
  --work_->active;
  ended(token, ending);
}

void RmaInitiator::fail_all(Status status, const Ended& ended) {
  if (work_ == nullptr) return;
  work_->writes.clear();
  work_->waiting_writes.clear();
  work_->requests.clear();
  std::vector<uint32_t> slots;
  for (uint32_t slot = 0; slot < work_->operations.size(); ++slot) {
    if (work_->operations.is_live(slot)) slots.push_back(slot);
  }
  std::sort(slots.begin(), slots.end(),
            [this](uint32_t a, uint32_t b) { return work_->operations[a].issue < work_->operations[b].issue; });
  work_->active += static_cast<uint32_t>(work_->waiting.size());
  work_->waiting.clear();
  for (const uint32_t slot : slots) end(slot, status, ended);
}

}  // namespace ccixfer::connection
