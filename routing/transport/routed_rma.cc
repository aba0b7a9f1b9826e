// RMA: of a direct connection by the lower endpoint, of a routed one by its FragmentedRma.
#include <algorithm>
#include <utility>

#include "routing/transport/routed_impl.h"

namespace ccixfer::routing {

class RoutedTransport::RmaWay final : public FragmentedRma::Way {
 public:
  RmaWay(RoutedTransport& transport, RoutedConnection& slot) : transport_(transport), slot_(slot) {}
  void post(std::vector<std::byte> message) override { transport_.post(slot_, std::move(message)); }
  Status read(const FragmentedRma::Read& read) override {
    if (!slot_.hop.is_live()) return Status::no_buffers;
    cci::RmaOptions options;
    options.write = false;
    options.local = read.local;
    options.local_offset_bytes = read.local_offset_bytes;
    options.remote.handle = read.exposed;
    options.length_bytes = read.length_bytes;
    options.context = read.cookie;
    return transport_.lower_->rma(slot_.hop.connection(), options);
  }
  void source_is_free(uint64_t token) override { transport_.sink_->on_local_completion(slot_.id, token); }
  void lends() override { transport_.lending_.push_back(slot_.id.packed()); }
  void has_work() override { transport_.activate(slot_); }
  void ended(const FragmentedRma::Ended& ended) override {
    if (ended.has_completion_message) {
      const Bytes part(ended.completion_message);
      slot_.announcing.emplace(ended.token, ended.ending);
      transport_.post_message(slot_, {&part, 1}, {true, ended.token});
    } else {
      transport_.complete(slot_, ended.token, ended.ending);
    }
    transport_.release_waiting(slot_);
  }

 private:
  RoutedTransport& transport_;
  RoutedConnection& slot_;
};

Status RoutedTransport::rma(ports::ConnectionId connection, const ports::RmaRequest& request, uint64_t token) {
  RoutedConnection* slot = find(connection);
  if (slot == nullptr || slot->phase == Phase::leaving) return Status::not_found;
  if (slot->phase != Phase::open) return Status::again;
  work_ = true;
  if (slot->mode == Mode::direct) return rma_direct(*slot, request, token);
  if (slot->left || slot->messages.peer_leaving()) return Status::disconnected;
  if (slot->rma != nullptr && slot->rma->size() >= routed_operations_max) return Status::no_buffers;
  if (request.has_completion_message && request.completion_message.size() > slot->limits.max_send_bytes)
    return Status::message_size;

  if (slot->rma == nullptr) slot->rma = std::make_unique<FragmentedRma>(*memory_);
  const bool must_wait = !slot->fenced.empty() || (request.fence && slot->begun() > 0);
  const uint64_t number = slot->rma->add(request, token, slot->fragment_bytes);
  if (number == 0) return Status::no_buffers;
  if (must_wait) {
    slot->fenced.push_operation(number, request.fence);
  } else {
    slot->rma->start(number);
    activate(*slot);
  }
  return Status::success;
}

Status RoutedTransport::rma_direct(RoutedConnection& slot, const ports::RmaRequest& request, uint64_t token) {
  cci::RmaOptions options;
  options.write = request.write;
  const size_t length_bytes = request.write ? request.source.size() : request.destination.size();
  options.local = memory_->register_part(request.local.region, request.local.offset_bytes, length_bytes, 0);
  if (options.local.kind == ports::HandleKind::none) return Status::no_buffers;
  options.remote = request.remote;
  options.length_bytes = length_bytes;
  options.fence = request.fence;
  if (request.has_completion_message) options.completion_message = request.completion_message;
  options.local_completion = request.local_completion;
  options.buffer_is_posted = request.buffer_is_posted;
  options.source_is_file = request.source_is_file;
  options.context = token;
  const Status status = lower_->rma(slot.hop.connection(), options);
  if (status != Status::success) {
    static_cast<void>(memory_->deregister_region(options.local));
    return status;
  }
  slot.direct_sources[token] = options.local;
  ++slot.direct_in_flight;
  return Status::success;
}

void RoutedTransport::push_rma(RoutedConnection& slot) {
  if (slot.rma == nullptr) return;
  RmaWay way(*this, slot);
  slot.rma->begin_reads(way);
  slot.rma->issue(options_.fragments_in_flight_max, way);
}

void RoutedTransport::release_lent() {
  for (const uint64_t packed : std::exchange(lending_, {})) {
    RoutedConnection* slot = find(packed);
    if (slot == nullptr) continue;
    RmaWay way(*this, *slot);
    const bool released = slot->rma->release_lent(way);
    if (slot->rma->has_lent() && std::ranges::find(lending_, packed) == lending_.end()) lending_.push_back(packed);
    if (released && slot->phase == Phase::leaving) activate(*slot);
  }
}

void RoutedTransport::on_taken(RoutedConnection& slot, Bytes message) {
  const auto taken = decode_fragment_released(message);
  if (!taken) return reject_peer(slot, "malformed fragment_released");
  RmaWay way(*this, slot);
  const bool known = slot.rma != nullptr && !taken->of_read && slot.rma->taken(taken->cookie, way) == FragmentedRma::Verdict::fine;
  if (!known) counters_.add(Counter::routed_rejected);
}

void RoutedTransport::on_fragment_ack(RoutedConnection& slot, Bytes message) {
  const auto ack = decode_fragment_ack(message);
  if (!ack) return reject_peer(slot, "malformed fragment ack");
  RmaWay way(*this, slot);
  const bool known = slot.rma != nullptr && slot.rma->acknowledged(*ack, way) == FragmentedRma::Verdict::fine;
  if (!known) counters_.add(Counter::routed_rejected);
}

void RoutedTransport::on_read_reply(RoutedConnection& slot, Bytes message) {
  const auto reply = decode_fragment(message);
  if (!reply) return reject_peer(slot, "malformed read reply");
  RmaWay way(*this, slot);
  const auto verdict = slot.rma == nullptr ? FragmentedRma::Verdict::unknown : slot.rma->replied(*reply, way);
  if (verdict == FragmentedRma::Verdict::unknown) counters_.add(Counter::routed_rejected);
  if (verdict == FragmentedRma::Verdict::violation) reject_peer(slot, "a read reply of another length");
}

void RoutedTransport::on_lower_read_end(RoutedConnection& slot, uint64_t cookie, Status status) {
  if (slot.rma == nullptr) return;
  RmaWay way(*this, slot);
  slot.rma->read_ended(cookie, status, way);
  if (slot.phase == Phase::leaving) try_finish(slot);
}

// No byte of the application's memory leaves after this, but those that the network below has already.
void RoutedTransport::withdraw_rma(RoutedConnection& slot) {
  if (slot.rma == nullptr) return;
  RmaWay way(*this, slot);
  slot.rma->withdraw_all(way);
}

void RoutedTransport::end_unused_rma(RoutedConnection& slot) {
  if (slot.rma == nullptr) return;
  RmaWay way(*this, slot);
  slot.rma->end_unused(way);
}

}  // namespace ccixfer::routing
