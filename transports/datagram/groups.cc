#include "transports/datagram/groups.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::datagram {

using ports::Attribute;
using ports::ConnectionId;

namespace {

size_t length_of(std::span<const Bytes> parts) {
  size_t size = 0;
  for (const Bytes part : parts) size += part.size();
  return size;
}

}  // namespace

// ---- What the core asks: noted for the next turn.

Result<ConnectionId> Groups::dial(const ports::DialRequest& request) {
  if (!net_.has_groups()) return fail(ErrorKind::usage, "multicast is not implemented on this transport");
  if (has_keys_) return fail(ErrorKind::usage, "multicast has no keys: run it with --insecure");
  if (!request.data.empty()) return fail(ErrorKind::usage, "a group takes no connect data: nobody is asked");
  if (members_.size() >= groups_max) return fail(ErrorKind::network, "too many connections of groups");
  const SlotName name = members_.add();
  Member& member = *members_.find(name);
  member.id = {name.index | group_index_bit, name.generation};
  member.attribute = request.attribute;
  const Result<Group> group = member.receives() ? net_.join_group(request.uri, name.index) : net_.group(request.uri);
  if (!group) {
    members_.remove(name.index);
    return tl::unexpected<Error>(group.error());
  }
  member.uri = std::string(request.uri);
  member.group = group->address;
  constexpr auto overhead = static_cast<uint32_t>(packet_overhead_bytes);
  const uint32_t carried = std::max(group->datagram_bytes, overhead) - overhead;
  member.max_send_bytes = std::min(engine_.our_offer().max_send_bytes, carried);
  while (member.key == 0) member.key = entropy_.next_u64();
  wake();
  return member.id;
}

Groups::Member* Groups::find(ConnectionId id) const {
  Member* member = members_.find(id.index & ~group_index_bit, id.generation);
  return member == nullptr || member->left ? nullptr : member;
}

// Outside of a turn the OS handle has to tell that there is something to do.
void Groups::wake() {
  if (!engine_.in_turn()) net_.set_deadline(engine_.now());
}

Status Groups::send(ConnectionId id, std::span<const Bytes> parts, uint64_t token) {
  Member* member = find(id);
  if (member == nullptr || !member->told) return Status::not_found;
  if (member->receives()) return Status::invalid;
  const size_t size = length_of(parts);
  if (size > member->max_send_bytes) return Status::message_size;
  if (member->queue.size() >= engine_.options().sends_in_flight_max) return Status::no_buffers;
  Waiting waiting{token, {}};
  waiting.bytes.reserve(size);
  for (const Bytes part : parts) waiting.bytes.insert(waiting.bytes.end(), part.begin(), part.end());
  member->queue.push_back(std::move(waiting));
  wake();
  return Status::success;
}

Status Groups::rma(ConnectionId id) const { return find(id) == nullptr ? Status::not_found : Status::invalid; }

void Groups::disconnect(ConnectionId id) {
  Member* member = find(id);
  if (member == nullptr) return;
  member->left = true;
  wake();
}

std::vector<ports::HopInfo> Groups::hops(ConnectionId id) const {
  const Member* member = find(id);
  if (member == nullptr) return {};
  ports::HopInfo hop;
  hop.transport = std::string(net_.scheme());
  hop.node = member->uri;
  return {hop};
}

ports::PeerIdentity Groups::peer(ConnectionId id) const {
  const Member* member = find(id);
  return member == nullptr ? ports::PeerIdentity{} : ports::PeerIdentity{{}, net_.host_of(member->group)};
}

// ---- The turn.

// Before anything is received, so that no message comes over a connection of which the core was not told.
void Groups::begin_turn() {
  members_.for_each([this](Member& member) {
    if (member.left || std::exchange(member.told, true)) return;
    engine_.sink().on_connected(member.id, Status::success, {member.max_send_bytes}, {});
  });
}

void Groups::end_turn() {
  members_.for_each([this](Member& member) {
    transmit(member);
    if (!member.left || !member.queue.empty()) return;
    const uint32_t index = member.id.index & ~group_index_bit;
    if (member.receives()) net_.leave_group(index);
    members_.remove(index);
  });
}

bool Groups::is_due() const {
  bool due = false;
  members_.for_each([&](const Member& member) {
    const bool sends = !member.queue.empty() && !outbox_.blocked();
    due = due || sends || (member.left ? member.queue.empty() : !member.told);
  });
  return due;
}

void Groups::transmit(Member& member) {
  for (uint32_t budget = send_budget_datagrams; budget > 0 && !member.queue.empty() && outbox_.has_room(); --budget) {
    send_first(member);
  }
}

void Groups::send_first(Member& member) {
  const Waiting& first = member.queue.front();
  const uint32_t source = member.id.index & ~group_index_bit;
  wire::Writer out = outbox_.begin({PacketKind::group, packet_version, 0, source, member.key, member.number++});
  out.bytes(first.bytes);
  end_packet(out);
  outbox_.put(member.group, out);
  engine_.sink().on_completion(member.id, first.token, Status::success);
  member.queue.drop_front();
}

// ---- What comes, from anybody.

void Groups::received(uint32_t index, std::span<const Datagram> batch) {
  Member* member = members_.at(index);
  if (member == nullptr || member->left || !member->told || !member->receives()) return;
  for (const Datagram& datagram : batch) received_one(*member, datagram);
}

void Groups::received_one(Member& member, const Datagram& datagram) {
  Counters& counters = engine_.counters();
  counters.add(Counter::bytes_in, datagram.bytes.size());
  const std::optional<Packet> packet = open_packet(datagram.bytes);
  const bool is_message = packet && packet->header.kind == PacketKind::group && packet->header.version == packet_version &&
                          packet->header.destination == 0 && packet->body.size() <= engine_.our_offer().max_send_bytes;
  if (!is_message) return counters.add(Counter::datagrams_rejected);
  if (!member.senders.is_fresh(datagram.peer, packet->header.key, packet->header.number)) {
    return counters.add(Counter::datagrams_duplicate);
  }
  const MutableBytes place = engine_.sink().on_message_begin(member.id, static_cast<uint32_t>(packet->body.size()));
  if (place.data() == nullptr) return;  // lost, as the core has counted
  CHECK(place.size() >= packet->body.size());
  if (!packet->body.empty()) std::memcpy(place.data(), packet->body.data(), packet->body.size());
  engine_.sink().on_message_end(member.id, true);
}

}  // namespace ccixfer::datagram
