#include "transports/sim/sim_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ccixfer::sim {
namespace {

uint64_t packed(ports::Ticket ticket) { return (uint64_t{ticket.generation} << 32) | ticket.index; }

}  // namespace

bool Card::violated(const std::string& what) {
  world_.violated(fmt::format("card of {}: {}", name_, what));
  return false;
}

Status Card::add(MutableBytes memory, ports::MemoryAccess access, ports::MemoryKey& key) {
  if (regions_.size() >= limits_.regions_max || memory.size() > limits_.bytes_max - bytes_) return Status::no_memory;
  bytes_ += memory.size();
  key.value = next_key_++;
  regions_.emplace(key.value, Region{memory, access});
  return Status::success;
}

void Card::remove(ports::MemoryKey key) {
  const auto found = regions_.find(key.value);
  if (found == regions_.end()) {
    violated(fmt::format("key {} is deregistered, which there is not", key.value));
    return;
  }
  if (found->second.operations > 0) violated(fmt::format("key {} is deregistered while operations of this end name it", key.value));
  bytes_ -= found->second.memory.size();
  regions_.erase(found);
}

bool Card::begin(ports::MemoryKey key, Bytes memory, bool we_write) {
  const auto found = regions_.find(key.value);
  if (found == regions_.end()) return violated(fmt::format("an operation names key {}, which there is not", key.value));
  Region& region = found->second;
  if (!region.covers(memory)) return violated(fmt::format("an operation goes beyond the memory of key {}", key.value));
  if (we_write && !region.access.we_write)
    return violated(fmt::format("an operation writes into key {}, which may not", key.value));
  ++region.operations;
  return true;
}

void Card::end(ports::MemoryKey key) {
  if (const auto found = regions_.find(key.value); found != regions_.end()) --found->second.operations;
}

bool Card::lets_peer(Bytes memory, bool write) {
  const bool lets = std::ranges::any_of(regions_, [&](const auto& each) {
    const Region& region = each.second;
    return (write ? region.access.peers_write : region.access.peers_read) && region.covers(memory);
  });
  return lets || violated(fmt::format("a peer is let {} memory without a key for it", write ? "write into" : "read"));
}

void CardTarget::note(uint64_t connection, const ports::RemoteRef& target, const ports::Admission& admission) {
  const bool is_region = target.handle.kind == ports::HandleKind::region;
  if (is_region && admission.status == Status::success) connections_[packed(admission.ticket)] = connection;
}

bool CardTarget::lets(ports::Ticket ticket, Bytes memory, bool write) {
  const auto found = connections_.find(packed(ticket));
  if (memory.empty() || found == connections_.end() || card_.lets_peer(memory, write)) return true;
  breaks_(found->second);
  return false;
}

ports::Admission CardTarget::begin_write(uint64_t connection, const ports::RemoteRef& target, uint64_t length_bytes) {
  const ports::Admission admission = target_.begin_write(connection, target, length_bytes);
  note(connection, target, admission);
  return admission;
}

MutableBytes CardTarget::write_span(ports::Ticket ticket, uint64_t at_bytes) {
  const MutableBytes span = target_.write_span(ticket, at_bytes);
  return lets(ticket, span, true) ? span : MutableBytes{};
}

ports::OperationResult CardTarget::end_write(ports::Ticket ticket, bool complete) {
  connections_.erase(packed(ticket));
  return target_.end_write(ticket, complete);
}

ports::Admission CardTarget::begin_read(uint64_t connection, const ports::RemoteRef& target, uint64_t length_bytes) {
  const ports::Admission admission = target_.begin_read(connection, target, length_bytes);
  note(connection, target, admission);
  return admission;
}

Bytes CardTarget::read_span(ports::Ticket ticket, uint64_t at_bytes) {
  const Bytes span = target_.read_span(ticket, at_bytes);
  return lets(ticket, span, false) ? span : Bytes{};
}

void CardTarget::end_read(ports::Ticket ticket) {
  connections_.erase(packed(ticket));
  target_.end_read(ticket);
}

}  // namespace ccixfer::sim
