#include "transports/sim/sim_datagram.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::sim {
namespace {

using datagram::Address;
using datagram::batch_datagrams_max;
using datagram::Datagram;
using datagram::Sent;
constexpr size_t datagrams_in_poll_max = 512;
constexpr size_t datagram_bytes_hard_max = 65507;
constexpr std::string_view group_prefix = "group.";

struct Name {
  std::string address;
  uint16_t port = 0;
};

std::optional<Name> parse(std::string_view uri) {
  constexpr std::string_view scheme = "sim-datagram://";
  if (!uri.starts_with(scheme)) return std::nullopt;
  uri.remove_prefix(scheme.size());
  const size_t colon = uri.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const std::string_view digits = uri.substr(colon + 1);
  Name target{std::string(uri.substr(0, colon)), 0};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), target.port);
  if (error != std::errc{} || end != digits.data() + digits.size() || target.port == 0) return std::nullopt;
  return target;
}

}  // namespace

// --- The network ---

bool DatagramFabric::is_cut(uint64_t from, uint64_t to) const {
  if (cuts_.empty() && ways_cut_.empty()) return false;
  const std::string& a = places_[from - 1].address;
  const std::string& b = places_[to - 1].address;
  return cuts_.contains(a) || cuts_.contains(b) || ways_cut_.contains({a, b});
}

uint64_t DatagramFabric::place_of(const std::string& address, NodeId node) {
  const auto place = std::find_if(places_.begin(), places_.end(), [&](const Place& p) { return p.address == address; });
  CHECK(place == places_.end() || place->node == node);  // one address, one node
  const auto index = static_cast<uint64_t>(place - places_.begin()) + 1;
  if (place == places_.end()) places_.push_back({address, node, {}});
  return index;
}

void DatagramFabric::damage(std::vector<std::byte>& bytes) {
  Random& random = world_.random();
  if (bytes.empty() || random.chance(0.1)) {
    bytes.push_back(static_cast<std::byte>(random.next()));
  } else if (random.chance(0.2)) {
    bytes.resize(static_cast<size_t>(random.below(bytes.size())));
  } else {
    bytes[static_cast<size_t>(random.below(bytes.size()))] ^= static_cast<std::byte>(1u << random.below(8));
  }
}

void DatagramFabric::send(const Address& from, const Address& to, Bytes bytes) {
  CHECK(bytes.size() <= datagram_bytes_hard_max);
  ++totals_.sent;
  const Instant now = world_.now();
  Instant& free_at = places_[from.low - 1].way_out_free_at;
  const auto waiting_ns = static_cast<uint64_t>(std::max<int64_t>((free_at - now).count(), 0));
  const uint64_t rate = std::max<uint64_t>(link_.rate_bytes_per_s, 1000);
  if (waiting_ns / 1000 * rate / 1'000'000 + bytes.size() > link_.queue_bytes || bytes.size() > link_.datagram_bytes ||
      (link_.path_bytes != 0 && bytes.size() > link_.path_bytes)) {
    ++totals_.dropped;
    return;
  }
  free_at = std::max(free_at, now) + Duration(static_cast<int64_t>(bytes.size() * 1'000'000'000 / rate));
  const auto members = members_.find(to);
  if (members == members_.end()) return travel(from, {to}, bytes, free_at);
  for (const Member& member : members->second) travel(from, {member.net->address_, to, member.number}, bytes, free_at);
}

// What happens to a datagram, or to one member's copy of it, on its way.
void DatagramFabric::travel(const Address& from, const Target& to, Bytes bytes, Instant leaves) {
  Random& random = world_.random();
  if (random.chance(link_.loss_chance)) {
    ++totals_.lost;
    return;
  }
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  if (change_ && !change_(places_[from.low - 1].address, copy)) {
    ++totals_.cut;
    return;
  }
  if (random.chance(link_.duplicate_chance)) {
    ++totals_.duplicated;
    fly(from, to, copy, leaves);
  }
  if (random.chance(link_.corrupt_chance)) {
    ++totals_.corrupted;
    damage(copy);
  }
  fly(from, to, std::move(copy), leaves);
}

void DatagramFabric::fly(const Address& from, const Target& to, std::vector<std::byte> bytes, Instant leaves) {
  Random& random = world_.random();
  Instant arrives = after(leaves, random.between(link_.delay_min, link_.delay_max));
  Instant& last = last_arrival_[{from.low, to.net.low}];
  last = arrives = std::max(arrives, last);
  if (random.chance(link_.reorder_chance)) {
    ++totals_.reordered;
    arrives = after(arrives, random.between(Duration(0), link_.reorder_delay_max));
  }
  world_.at(arrives, [this, from, to, bytes = std::move(bytes)]() mutable { arrive(from, to, std::move(bytes)); });
}

// nullptr: nobody is there any more; nobody says so.
SimDatagramNet* DatagramFabric::who_receives(const Target& to) const {
  if (to.group == Address{}) {
    const auto found = nets_.find(to.net);
    return found == nets_.end() ? nullptr : found->second;
  }
  const auto members = members_.find(to.group);
  if (members == members_.end()) return nullptr;
  const auto is_it = [&](const Member& member) { return member.net->address_ == to.net && member.number == to.member; };
  const auto found = std::ranges::find_if(members->second, is_it);
  return found == members->second.end() ? nullptr : found->net;
}

void DatagramFabric::arrive(const Address& from, const Target& to, std::vector<std::byte> bytes) {
  if (is_cut(from.low, to.net.low)) {
    ++totals_.cut;
    return;
  }
  SimDatagramNet* net = who_receives(to);
  if (net == nullptr) return;
  if (net->inbox_bytes_ + bytes.size() > link_.receive_bytes) {
    ++totals_.dropped;
    return;
  }
  ++totals_.delivered;
  world_.trace("datagram", to.net.low, bytes.size());
  net->inbox_bytes_ += bytes.size();
  net->inbox_.push_back({from, std::move(bytes), to.group == Address{} ? std::nullopt : std::optional(to.member)});
  world_.wake(net->node_);
}

Address DatagramFabric::group_of(const std::string& name, uint16_t port) {
  const auto found = std::ranges::find(group_names_, name);
  const auto index = static_cast<uint64_t>(found - group_names_.begin()) + 1;
  if (found == group_names_.end()) group_names_.push_back(name);
  Address group;
  group.high = 1;
  group.low = index;
  group.port = port;
  members_.try_emplace(group);
  return group;
}

// --- One process's place in it ---

SimDatagramNet::SimDatagramNet(DatagramFabric& fabric, NodeId node, std::string address, uint16_t port)
    : fabric_(fabric), node_(node), name_(std::move(address)) {
  address_.low = fabric.place_of(name_, node);
  address_.port = port;
  CHECK(port != 0 && fabric.nets_.emplace(address_, this).second);
  fabric.world_.add_part(node, this);
  fabric.world_.add_actor(node, this);
}

SimDatagramNet::~SimDatagramNet() {
  if (!dead_) {
    fabric_.world_.remove_actor(node_, this);
    on_crash();
  }
  fabric_.world_.remove_part(node_, this);
}

void SimDatagramNet::on_crash() {
  dead_ = true;
  std::erase_if(fabric_.nets_, [this](const auto& entry) { return entry.second == this; });
  for (auto& [group, members] : fabric_.members_) {
    std::erase_if(members, [this](const DatagramFabric::Member& member) { return member.net == this; });
  }
  inbox_.clear();
  inbox_bytes_ = 0;
}

void SimDatagramNet::appear_as(const std::string& address, uint16_t port) {
  if (dead_) return;
  CHECK(fabric_.nets_.erase(address_) == 1);
  address_.low = fabric_.place_of(address, node_);
  address_.port = port;
  CHECK(port != 0 && fabric_.nets_.emplace(address_, this).second);
  if (!std::exchange(full_, false)) return;
  writable_ = true;  // whoever would have told is told of the old address
  fabric_.world_.wake(node_);
}

void SimDatagramNet::turn(Instant now) {
  if (deadline_ <= now) deadline_ = never;
}

std::string SimDatagramNet::uri() const { return fmt::format("sim-datagram://{}:{}", name_, address_.port); }

Result<uint64_t> SimDatagramNet::resolve(std::string_view uri) {
  const std::optional<Name> target = parse(uri);
  if (!target) return fail(ErrorKind::usage, fmt::format("not a sim-datagram://NODE:PORT address: {}", uri));
  Answer answer;
  answer.query = ++queries_;
  for (size_t i = 0; i < fabric_.places_.size(); ++i) {
    if (fabric_.places_[i].address != target->address) continue;
    answer.address.low = i + 1;
    answer.address.port = target->port;
    answer.found = true;
  }
  answers_.push_back(answer);
  fabric_.world_.wake(node_);
  return answer.query;
}

Result<datagram::Group> SimDatagramNet::group(std::string_view uri) {
  const std::optional<Name> name = parse(uri);
  if (!name || !name->address.starts_with(group_prefix))
    return fail(ErrorKind::usage, fmt::format("not a sim-datagram://group.NAME:PORT address: {}", uri));
  return datagram::Group{fabric_.group_of(name->address, name->port), fabric_.link_.datagram_bytes};
}

Result<datagram::Group> SimDatagramNet::join_group(std::string_view uri, uint32_t member) {
  Result<datagram::Group> joined = group(uri);
  if (joined && !dead_) fabric_.members_[joined->address].push_back({this, member});
  return joined;
}

void SimDatagramNet::leave_group(uint32_t member) {
  for (auto& [group, members] : fabric_.members_) {
    std::erase_if(members, [&](const DatagramFabric::Member& one) { return one.net == this && one.number == member; });
  }
  // What its socket still held is gone with it.
  std::erase_if(inbox_, [&](const Kept& kept) {
    if (kept.member != member) return false;
    inbox_bytes_ -= kept.bytes.size();
    return true;
  });
}

std::string SimDatagramNet::host_of(const Address& address) const {
  if (address.high == 1) return address.low <= fabric_.group_names_.size() ? fabric_.group_names_[address.low - 1] : std::string();
  const uint64_t place = address.low - 1;
  return place < fabric_.places_.size() ? fabric_.places_[static_cast<size_t>(place)].address : std::string();
}

Sent SimDatagramNet::send(std::span<const Datagram> batch) {
  CHECK(!batch.empty() && batch.size() <= batch_datagrams_max);
  if (dead_) return {batch.size(), Sent::Stop::none};
  ++fabric_.totals_.send_calls;
  const DatagramLinkOptions& link = fabric_.link_;
  Random& random = fabric_.world_.random();
  Sent sent{batch.size(), Sent::Stop::none};
  if (link.partial_chance > 0 && random.chance(link.partial_chance)) {
    sent.taken = 1 + static_cast<size_t>(random.below(batch.size()));
  }
  if (link.fail_chance > 0 && random.chance(link.fail_chance)) {
    sent = {static_cast<size_t>(random.below(sent.taken)), Sent::Stop::failed};
  }
  if (!full_ && link.again_chance > 0 && random.chance(link.again_chance)) {
    sent = {static_cast<size_t>(random.below(sent.taken + 1)), Sent::Stop::again};
    fill_up();
  } else if (full_) {
    sent = {0, Sent::Stop::again};
  }
  if (sent.stop == Sent::Stop::failed) ++fabric_.totals_.refused;
  for (const Datagram& datagram : batch.first(sent.taken)) fabric_.send(address_, datagram.peer, datagram.bytes);
  return sent;
}

// It waits for room.
void SimDatagramNet::send_last(std::span<const Datagram> batch) {
  if (dead_) return;
  ++fabric_.totals_.send_calls;
  if (!full_) {
    for (const Datagram& datagram : batch) fabric_.send(address_, datagram.peer, datagram.bytes);
    return;
  }
  std::vector<Kept> waiting;
  for (const Datagram& datagram : batch) waiting.push_back({datagram.peer, {datagram.bytes.begin(), datagram.bytes.end()}});
  fabric_.world_.at_node(node_, room_at_, [&fabric = fabric_, from = address_, waiting = std::move(waiting)] {
    for (const Kept& each : waiting) fabric.send(from, each.peer, each.bytes);
  });
}

void SimDatagramNet::fill_up() {
  World& world = fabric_.world_;
  full_ = true;
  room_at_ = after(world.now(), world.random().between(Duration(0), fabric_.link_.again_max));
  world.at(room_at_, [&fabric = fabric_, address = address_] {
    const auto found = fabric.nets_.find(address);
    if (found == fabric.nets_.end()) return;  // it is over, or another process has its place
    SimDatagramNet& net = *found->second;
    net.full_ = false;
    net.writable_ = true;
    fabric.world_.wake(net.node_);
  });
}

void SimDatagramNet::tell_arrived(datagram::DatagramEvents& events, size_t count) {
  ++fabric_.totals_.receive_calls;
  std::vector<Kept> arrived;
  std::vector<Datagram> batch;
  arrived.reserve(count);
  batch.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    arrived.push_back(std::move(inbox_.front()));
    inbox_.pop_front();
    inbox_bytes_ -= arrived.back().bytes.size();
    batch.push_back({arrived.back().peer, arrived.back().bytes});
  }
  const std::optional<uint32_t> member = arrived.front().member;
  if (member) return events.received_of_group(*member, batch);
  events.received(batch);
}

void SimDatagramNet::poll(Instant /*now*/, datagram::DatagramEvents& events) {
  if (std::exchange(writable_, false)) events.writable();
  while (!answers_.empty()) {
    const Answer answer = answers_.front();
    answers_.pop_front();
    events.resolved(answer.query, answer.found ? Status::success : Status::not_found, answer.address,
                    answer.found ? "" : "no such name");
  }
  for (size_t told = 0; told < datagrams_in_poll_max && !inbox_.empty();) {
    size_t count = std::min({inbox_.size(), batch_datagrams_max, datagrams_in_poll_max - told});
    const auto other = [this](const Kept& kept) { return kept.member != inbox_.front().member; };
    const auto end = inbox_.begin() + static_cast<std::ptrdiff_t>(count);
    count = static_cast<size_t>(std::find_if(inbox_.begin(), end, other) - inbox_.begin());  // a batch is of one socket
    const double partial = fabric_.link_.partial_chance;
    if (partial > 0 && fabric_.world_.random().chance(partial)) {
      count = 1 + static_cast<size_t>(fabric_.world_.random().below(count));
    }
    tell_arrived(events, count);
    told += count;
  }
  if (!inbox_.empty()) fabric_.world_.wake(node_);
}

}  // namespace ccixfer::sim
