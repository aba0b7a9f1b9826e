#include "routing/transport/fragmented_rma.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"

namespace ccixfer::routing {
namespace {

constexpr uint64_t page_bytes = 4096;

// Equal pieces, so that there is no tiny last one: ceil(length / count), rounded up to a page, and at
// most `most`.
uint32_t fragment_bytes_of(uint64_t length, uint32_t most) {
  const uint64_t count = (length + most - 1) / most;
  const uint64_t even = (length + count - 1) / count;
  return static_cast<uint32_t>(std::min<uint64_t>(most, (even + page_bytes - 1) / page_bytes * page_bytes));
}

}  // namespace

FragmentedRma::~FragmentedRma() {
  for (const auto& [cookie, fragment] : fragments_) static_cast<void>(memory_.deregister_region(fragment.exposed));
  for (const auto& [number, operation] : operations_) static_cast<void>(memory_.deregister_region(operation.local));
}

uint64_t FragmentedRma::add(const ports::RmaRequest& request, uint64_t token, uint32_t fragment_bytes_max) {
  Operation operation;
  operation.token = token;
  operation.request = request;
  operation.completion_message.assign(request.completion_message.begin(), request.completion_message.end());
  operation.request.completion_message = {};
  operation.length_bytes = request.write ? request.source.size() : request.destination.size();
  operation.fragment_bytes = fragment_bytes_of(operation.length_bytes, fragment_bytes_max);
  if (!request.write) {
    // For our own lower reads: no peer may touch it.
    operation.local = memory_.register_part(request.local.region, request.local.offset_bytes, operation.length_bytes, 0);
    if (operation.local.kind == ports::HandleKind::none) return 0;
  }
  // The fragments of a put count as one operation at the mailbox. The first one goes alone. If some
  // fragments were refused and others not, a put that never ends would stay in the buffer.
  ports::RemoteRef& remote = operation.request.remote;
  if (remote.handle.kind == ports::HandleKind::mailbox && remote.put.total_bytes == 0) {
    remote.put.base_offset_bytes = remote.offset_bytes;
    remote.put.total_bytes = operation.length_bytes;
  }
  const bool may_be_refused = request.write && remote.handle.kind == ports::HandleKind::mailbox && !request.buffer_is_posted;
  operation.admitted = !may_be_refused || operation.length_bytes <= operation.fragment_bytes;
  const uint64_t number = next_operation_++;
  operations_.emplace(number, std::move(operation));
  return number;
}

void FragmentedRma::issue(uint32_t fragments_in_flight_max, Way& way) {
  while (!issuing_.empty() && fragments_.size() < fragments_in_flight_max && !over_) {
    const uint64_t number = issuing_.pop_front();
    const auto found = operations_.find(number);
    if (found == operations_.end()) continue;
    Operation& operation = found->second;
    if (operation.ending.good() && !begin_fragment(number, operation, way)) {
      operation.ending = Status::no_memory;  // the table of regions is full
      try_end(number, way);
      continue;
    }
    const bool more = operation.admitted && operation.next_offset_bytes < operation.length_bytes;
    if (operation.ending.good() && more) issuing_.push_back(number);
  }
}

bool FragmentedRma::begin_fragment(uint64_t number, Operation& operation, Way& way) {
  trace_stage("[stage 5] fragmenter");
  FragmentMessage request;
  request.kind = operation.request.write ? MessageKind::write_request : MessageKind::read_request;
  request.cookie = next_cookie_;
  request.remote = operation.request.remote;
  request.remote.offset_bytes += operation.next_offset_bytes;
  request.length_bytes =
      static_cast<uint32_t>(std::min<uint64_t>(operation.fragment_bytes, operation.length_bytes - operation.next_offset_bytes));
  if (operation.request.write) {
    const ports::LocalRegion& local = operation.request.local;
    request.exposed = memory_.register_part(local.region, local.offset_bytes + operation.next_offset_bytes, request.length_bytes,
                                            cci::access_read);
    if (request.exposed.kind == ports::HandleKind::none) return false;
    ++operation.exposed;
  }
  ++next_cookie_;
  fragments_.emplace(request.cookie, Fragment{number, operation.next_offset_bytes, request.length_bytes, request.exposed, false});
  operation.next_offset_bytes += request.length_bytes;
  ++operation.in_flight;
  std::vector<std::byte> message;
  encode(request, message);
  way.post(std::move(message));
  return true;
}

// Of a write: no peer reads it any more. With its last one the source is the application's again.
void FragmentedRma::withdraw(Fragment& fragment, Way& way) {
  if (fragment.exposed.kind == ports::HandleKind::none) return;
  unexpose(fragment, way);
  Operation& operation = operations_.at(fragment.operation);
  --operation.exposed;
  tell_if_free(operation, way);
}

void FragmentedRma::tell_if_free(const Operation& operation, Way& way) {
  const bool over = operation.exposed == 0 && operation.lent.empty() && operation.next_offset_bytes == operation.length_bytes;
  if (over && operation.request.local_completion) way.source_is_free(operation.token);
}

// Of a write. While the network below refers to the memory, the operation does not end, since the end
// gives the memory back.
void FragmentedRma::unexpose(Fragment& fragment, Way& way) {
  const ports::Handle handle = std::exchange(fragment.exposed, {});
  if (memory_.deregister_region(handle) != Status::busy) return;
  operations_.at(fragment.operation).lent.push_back(handle);
  way.lends();
}

bool FragmentedRma::has_lent() const {
  return std::ranges::any_of(operations_, [](const auto& each) { return !each.second.lent.empty(); });
}

bool FragmentedRma::release_lent(Way& way) {
  std::vector<uint64_t> free_again;
  for (auto& [number, operation] : operations_) {
    if (operation.lent.empty()) continue;
    std::erase_if(operation.lent, [this](const ports::Handle& handle) { return !memory_.in_use(handle); });
    if (operation.lent.empty()) free_again.push_back(number);
  }
  for (const uint64_t number : free_again) {
    tell_if_free(operations_.at(number), way);
    if (!over_) try_end(number, way);
  }
  return !free_again.empty();
}

FragmentedRma::Verdict FragmentedRma::released(uint64_t cookie, Way& way) {
  const auto found = fragments_.find(cookie);
  if (found == fragments_.end()) return Verdict::unknown;
  withdraw(found->second, way);
  return Verdict::fine;
}

FragmentedRma::Verdict FragmentedRma::acknowledged(const FragmentAck& ack, Way& way) {
  const auto found = fragments_.find(ack.cookie);
  const auto operation = found == fragments_.end() ? operations_.end() : operations_.find(found->second.operation);
  if (operation == operations_.end() || !operation->second.request.write) return Verdict::unknown;
  end_fragment(ack.cookie, ack.ending, way);
  return Verdict::fine;
}

FragmentedRma::Verdict FragmentedRma::replied(const FragmentMessage& reply, Way& way) {
  const auto found = fragments_.find(reply.cookie);
  const auto operation = found == fragments_.end() ? operations_.end() : operations_.find(found->second.operation);
  if (operation == operations_.end() || operation->second.request.write || found->second.reading) return Verdict::unknown;
  if (!reply.ending.good()) {
    end_fragment(reply.cookie, reply.ending, way);
    return Verdict::fine;
  }
  if (reply.length_bytes != found->second.length_bytes) return Verdict::violation;
  found->second.reading = true;
  ++operation->second.reads_below;
  ready_reads_.push_back(reply);
  begin_reads(way);
  return Verdict::fine;
}

void FragmentedRma::begin_reads(Way& way) {
  while (!ready_reads_.empty()) {
    const FragmentMessage& reply = ready_reads_.front();
    const Fragment& fragment = fragments_.at(reply.cookie);
    const uint64_t cookie = reply.cookie;
    const Status status =
        way.read({operations_.at(fragment.operation).local, fragment.offset_bytes, reply.exposed, fragment.length_bytes, cookie});
    if (status == Status::no_buffers) return way.has_work();
    ready_reads_.drop_front();
    if (status != Status::success) return read_ended(cookie, status, way);  // the others follow in the next turn
  }
}

void FragmentedRma::read_ended(uint64_t cookie, Status status, Way& way) {
  const auto found = fragments_.find(cookie);
  if (found == fragments_.end() || !found->second.reading) return;
  const auto operation = operations_.find(found->second.operation);
  if (operation != operations_.end()) --operation->second.reads_below;
  if (over_) {
    fragments_.erase(found);
    return;
  }
  std::vector<std::byte> message;
  encode(FragmentReleased{cookie, true}, message);
  way.post(std::move(message));
  end_fragment(cookie, status, way);
}

void FragmentedRma::end_fragment(uint64_t cookie, ports::OperationResult ending, Way& way) {
  const auto found = fragments_.find(cookie);
  withdraw(found->second, way);
  const uint64_t number = found->second.operation;
  fragments_.erase(found);
  Operation& operation = operations_.at(number);
  --operation.in_flight;
  // All fragments of a put go to one epoch; who answers a duplicate may not know it any more.
  if (operation.ending.good() && (!ending.good() || !operation.ending.epoch())) operation.ending = ending;
  if (!operation.admitted && operation.ending.good()) {
    operation.admitted = true;
    issuing_.push_back(number);
  }
  way.has_work();
  try_end(number, way);
}

// Ends an operation whose last fragment has ended. The completion message leaves only now, and never
// after a failure.
void FragmentedRma::try_end(uint64_t number, Way& way) {
  const auto found = operations_.find(number);
  if (found == operations_.end()) return;
  Operation& operation = found->second;
  const bool all_begun = operation.next_offset_bytes == operation.length_bytes || !operation.ending.good();
  if (operation.in_flight > 0 || !all_begun || !operation.lent.empty()) return;
  const bool has_message = operation.request.has_completion_message && operation.ending.good();
  const Ended ended{operation.token, operation.ending, has_message, std::move(operation.completion_message)};
  const ports::Handle local = operation.local;
  operations_.erase(found);
  static_cast<void>(memory_.deregister_region(local));
  way.ended(ended);
}

void FragmentedRma::withdraw_all(Way& way) {
  over_ = true;
  for (auto at = fragments_.begin(); at != fragments_.end();) {
    if (at->second.exposed.kind != ports::HandleKind::none) unexpose(at->second, way);
    at = at->second.reading ? std::next(at) : fragments_.erase(at);
  }
  for (const FragmentMessage& reply : ready_reads_) {  // never begun below
    const auto found = fragments_.find(reply.cookie);
    --operations_.at(found->second.operation).reads_below;
    fragments_.erase(found);
  }
  ready_reads_.clear();
}

void FragmentedRma::end_unused(Way& way) {
  std::vector<uint64_t> tokens;
  for (auto at = operations_.begin(); at != operations_.end();) {
    if (at->second.reads_below > 0 || !at->second.lent.empty()) {
      ++at;
      continue;
    }
    static_cast<void>(memory_.deregister_region(at->second.local));
    tokens.push_back(at->second.token);
    at = operations_.erase(at);
  }
  for (const uint64_t token : tokens) way.ended({token, Status::disconnected, false, {}});
}

}  // namespace ccixfer::routing
