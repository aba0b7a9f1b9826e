// RMA of a routed connection: the initiator cuts it into fragments, once, and keeps all the state there is of the whole operation.
#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "routing/session/routed_impl.h"

namespace ccixfer::routing {
namespace {

constexpr uint64_t page_bytes = 4096;

// Equal pieces, so that there is no tiny last one: ceil(length / count) rounded up to a page, at most `most`.
uint32_t fragment_bytes_of(uint64_t length, uint32_t most) {
  const uint64_t count = (length + most - 1) / most;
  const uint64_t even = (length + count - 1) / count;
  return static_cast<uint32_t>(std::min<uint64_t>(most, (even + page_bytes - 1) / page_bytes * page_bytes));
}

}  // namespace

Status RoutedTransport::rma(ports::ConnectionId connection, const ports::RmaRequest& request, uint64_t token) {
  Slot* slot = find(connection);
  if (slot == nullptr || slot->phase == Phase::leaving) return Status::not_found;
  if (slot->phase != Phase::open) return Status::again;
  work_ = true;
  if (slot->mode == Mode::direct) return rma_direct(*slot, request, token);
  if (slot->left || slot->messages.peer_leaving()) return Status::disconnected;
  if (slot->operations.size() >= routed_operations_max) return Status::no_buffers;
  if (request.has_completion_message && request.completion_message.size() > slot->limits.max_send_bytes)
    return Status::message_size;

  RoutedOperation operation;
  operation.token = token;
  operation.request = request;
  operation.completion_message.assign(request.completion_message.begin(), request.completion_message.end());
  operation.request.completion_message = {};
  operation.length_bytes = request.write ? request.source.size() : request.destination.size();
  operation.fragment_bytes = fragment_bytes_of(operation.length_bytes, slot->fragment_bytes);
  if (!request.write) {
    operation.local = memory_->register_region(request.destination, 0);  // for our own lower reads: no peer may touch it
    if (operation.local.kind == ports::HandleKind::none) return Status::no_buffers;
  }
  // The fragments of a put count as one operation at the mailbox. The first goes alone: fragments that are refused while others of
  // the same put are not would leave a put that never ends in the buffer, and bytes of a put that was refused.
  ports::RemoteRef& remote = operation.request.remote;
  if (remote.handle.kind == ports::HandleKind::mailbox && remote.put.total_bytes == 0) {
    remote.put.base_offset_bytes = remote.offset_bytes;
    remote.put.total_bytes = operation.length_bytes;
  }
  const bool may_be_refused = request.write && remote.handle.kind == ports::HandleKind::mailbox && !request.buffer_is_posted;
  operation.admitted = !may_be_refused || operation.length_bytes <= operation.fragment_bytes;
  const uint64_t number = slot->next_operation++;
  const bool must_wait = !slot->waiting.empty() || (request.fence && slot->begun() > 0);
  slot->operations.emplace(number, std::move(operation));
  if (must_wait) {
    Waiting behind;
    behind.is_rma = true;
    behind.fence = request.fence;
    behind.operation = number;
    slot->waiting.push_back(std::move(behind));
    ++slot->waiting_rmas;
  } else {
    slot->issuing.push_back(number);
    activate(*slot);
  }
  return Status::success;
}

Status RoutedTransport::rma_direct(Slot& slot, const ports::RmaRequest& request, uint64_t token) {
  cci::RmaOptions options;
  options.write = request.write;
  options.local = request.write ? memory_->register_region(request.source) : memory_->register_region(request.destination, 0);
  if (options.local.kind == ports::HandleKind::none) return Status::no_buffers;
  options.remote = request.remote;
  options.length_bytes = request.write ? request.source.size() : request.destination.size();
  options.fence = request.fence;
  if (request.has_completion_message) options.completion_message = request.completion_message;
  options.local_completion = request.local_completion;
  options.buffer_is_posted = request.buffer_is_posted;
  options.source_is_file = request.source_is_file;
  options.context = token;
  const Status status = lower_->rma(slot.lower, options);
  if (status != Status::success) {
    static_cast<void>(memory_->deregister_region(options.local));
    return status;
  }
  slot.direct_sources[token] = options.local;
  ++slot.direct_in_flight;
  return Status::success;
}

// The fragmenter: fragments of the operations in turns, as many as may be in flight.
void RoutedTransport::issue_fragments(Slot& slot) {
  while (!slot.issuing.empty() && slot.fragments.size() < options_.fragments_in_flight_max && slot.phase == Phase::open) {
    const uint64_t number = slot.issuing.front();
    slot.issuing.drop_front();
    const auto found = slot.operations.find(number);
    if (found == slot.operations.end()) continue;
    RoutedOperation& operation = found->second;
    if (operation.ending.good() && !begin_fragment(slot, number, operation)) {
      operation.ending = Status::no_memory;  // the table of regions is full
      try_end_operation(slot, number);
      continue;
    }
    const bool more = operation.admitted && operation.next_offset_bytes < operation.length_bytes;
    if (operation.ending.good() && more) slot.issuing.push_back(number);
  }
}

bool RoutedTransport::begin_fragment(Slot& slot, uint64_t number, RoutedOperation& operation) {
  trace_hop("[hop 5] fragmenter");
  FragmentMessage request;
  request.kind = operation.request.write ? MessageKind::write_request : MessageKind::read_request;
  request.cookie = slot.next_cookie;
  request.remote = operation.request.remote;
  request.remote.offset_bytes += operation.next_offset_bytes;
  request.length_bytes =
      static_cast<uint32_t>(std::min<uint64_t>(operation.fragment_bytes, operation.length_bytes - operation.next_offset_bytes));
  if (operation.request.write) {
    request.exposed = memory_->register_region(operation.request.source.subspan(operation.next_offset_bytes, request.length_bytes));
    if (request.exposed.kind == ports::HandleKind::none) return false;
    ++operation.exposed;
  }
  ++slot.next_cookie;
  slot.fragments.emplace(request.cookie,
                         RoutedFragment{number, operation.next_offset_bytes, request.length_bytes, request.exposed, false});
  operation.next_offset_bytes += request.length_bytes;
  ++operation.in_flight;
  std::vector<std::byte> message;
  encode(request, message);
  post(slot, std::move(message));
  return true;
}

// Of a write: no peer reads it any more. With its last one the source is the application's again.
void RoutedTransport::withdraw(Slot& slot, RoutedFragment& fragment) {
  if (fragment.exposed.kind == ports::HandleKind::none) return;
  unexpose(slot, fragment);
  RoutedOperation& operation = slot.operations.at(fragment.operation);
  --operation.exposed;
  tell_local_completion(slot, operation);
}

void RoutedTransport::tell_local_completion(const Slot& slot, const RoutedOperation& operation) {
  const bool over = operation.exposed == 0 && operation.lent.empty() && operation.next_offset_bytes == operation.length_bytes;
  if (over && operation.request.local_completion) sink_->on_local_completion(slot.id, operation.token);
}

// Of a write. What the network below still refers to keeps its operation from ending: its end gives the memory back.
void RoutedTransport::unexpose(Slot& slot, RoutedFragment& fragment) {
  const ports::Handle handle = std::exchange(fragment.exposed, {});
  if (memory_->deregister_region(handle) != Status::busy) return;
  slot.operations.at(fragment.operation).lent.push_back(handle);
  lending_.push_back(slot.id.packed());
}

void RoutedTransport::release_lent() {
  for (const uint64_t packed : std::exchange(lending_, {})) {
    Slot* slot = find(packed);
    if (slot == nullptr) continue;
    std::vector<uint64_t> released;
    bool any_left = false;
    for (auto& [number, operation] : slot->operations) {
      if (operation.lent.empty()) continue;
      std::erase_if(operation.lent, [this](const ports::Handle& handle) { return !memory_->in_use(handle); });
      if (operation.lent.empty()) released.push_back(number);
      any_left = any_left || !operation.lent.empty();
    }
    if (any_left && std::ranges::find(lending_, packed) == lending_.end()) lending_.push_back(packed);
    if (released.empty()) continue;
    for (const uint64_t number : released) {
      tell_local_completion(*slot, slot->operations.at(number));
      if (slot->phase != Phase::leaving) try_end_operation(*slot, number);
    }
    if (slot->phase == Phase::leaving) activate(*slot);
  }
}

void RoutedTransport::on_taken(Slot& slot, Bytes message) {
  const auto taken = decode_taken(message);
  if (!taken) return reject_peer(slot, "malformed taken");
  const auto found = slot.fragments.find(taken->cookie);
  if (found == slot.fragments.end() || taken->of_read) return counters_.add(Counter::routed_rejected);
  withdraw(slot, found->second);
}

void RoutedTransport::on_fragment_ack(Slot& slot, Bytes message) {
  const auto ack = decode_fragment_ack(message);
  if (!ack) return reject_peer(slot, "malformed fragment ack");
  const auto found = slot.fragments.find(ack->cookie);
  const auto operation = found == slot.fragments.end() ? slot.operations.end() : slot.operations.find(found->second.operation);
  if (operation == slot.operations.end() || !operation->second.request.write) return counters_.add(Counter::routed_rejected);
  end_fragment(slot, ack->cookie, ack->ending);
}

void RoutedTransport::on_read_reply(Slot& slot, Bytes message) {
  const auto reply = decode_fragment(message);
  if (!reply) return reject_peer(slot, "malformed read reply");
  const auto found = slot.fragments.find(reply->cookie);
  const auto operation = found == slot.fragments.end() ? slot.operations.end() : slot.operations.find(found->second.operation);
  if (operation == slot.operations.end() || operation->second.request.write || found->second.reading) {
    return counters_.add(Counter::routed_rejected);
  }
  if (!reply->ending.good()) return end_fragment(slot, reply->cookie, reply->ending);
  if (reply->length_bytes != found->second.length_bytes) return reject_peer(slot, "a read reply of another length");
  found->second.reading = true;
  ++operation->second.reads_below;
  slot.ready_reads.push_back(*reply);
  begin_reads(slot);
}

void RoutedTransport::begin_reads(Slot& slot) {
  while (!slot.ready_reads.empty() && slot.lower_live) {
    const FragmentMessage& reply = slot.ready_reads.front();
    const RoutedFragment& fragment = slot.fragments.at(reply.cookie);
    cci::RmaOptions read;
    read.write = false;
    read.local = slot.operations.at(fragment.operation).local;
    read.local_offset_bytes = fragment.offset_bytes;
    read.remote.handle = reply.exposed;
    read.length_bytes = fragment.length_bytes;
    read.context = reply.cookie;
    const Status status = lower_->rma(slot.lower, read);
    if (status == Status::no_buffers) return activate(slot);
    const uint64_t cookie = reply.cookie;
    slot.ready_reads.drop_front();
    if (status != Status::success) {
      on_lower_read_end(slot, cookie, status);
      return activate(slot);  // the slot's state changed under the loop
    }
  }
}

void RoutedTransport::on_lower_read_end(Slot& slot, uint64_t cookie, Status status) {
  const auto found = slot.fragments.find(cookie);
  if (found == slot.fragments.end() || !found->second.reading) return;
  const auto operation = slot.operations.find(found->second.operation);
  if (operation != slot.operations.end()) --operation->second.reads_below;
  if (slot.phase == Phase::leaving) {
    slot.fragments.erase(found);
    return try_finish(slot);
  }
  std::vector<std::byte> message;
  encode(Taken{cookie, true}, message);
  post(slot, std::move(message));
  end_fragment(slot, cookie, status);
}

void RoutedTransport::end_fragment(Slot& slot, uint64_t cookie, ports::Ending ending) {
  const auto found = slot.fragments.find(cookie);
  withdraw(slot, found->second);
  const uint64_t number = found->second.operation;
  slot.fragments.erase(found);
  RoutedOperation& operation = slot.operations.at(number);
  --operation.in_flight;
  // All fragments of a put go to one epoch; who answers a duplicate may not know it any more.
  if (operation.ending.good() && (!ending.good() || !operation.ending.epoch())) operation.ending = ending;
  if (!operation.admitted && operation.ending.good()) {
    operation.admitted = true;
    slot.issuing.push_back(number);
  }
  activate(slot);
  try_end_operation(slot, number);
}

// Ends an operation whose last fragment has ended. The completion message leaves only now, and never after a failure.
void RoutedTransport::try_end_operation(Slot& slot, uint64_t number) {
  const auto found = slot.operations.find(number);
  if (found == slot.operations.end()) return;
  RoutedOperation& operation = found->second;
  const bool all_begun = operation.next_offset_bytes == operation.length_bytes || !operation.ending.good();
  if (operation.in_flight > 0 || !all_begun || !operation.lent.empty()) return;
  const bool has_message = operation.request.has_completion_message && operation.ending.good();
  const RoutedOperation ended = std::move(operation);
  slot.operations.erase(found);
  static_cast<void>(memory_->deregister_region(ended.local));
  if (has_message) {
    const Bytes part(ended.completion_message);
    slot.announcing.emplace(ended.token, ended.ending);
    post_message(slot, {&part, 1}, {true, ended.token});
  } else {
    complete(slot, ended.token, ended.ending);
  }
  release_waiting(slot);
}

}  // namespace ccixfer::routing
