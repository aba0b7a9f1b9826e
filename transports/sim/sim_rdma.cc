#include "transports/sim/sim_rdma.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::sim {
namespace {

using rdma::PairId;
using rdma::Work;
using rdma::WorkStatus;

constexpr size_t events_in_poll_max = 128;

struct Target {
  std::string address;
  uint16_t port = 0;
};

std::optional<Target> parse(std::string_view uri) {
  constexpr std::string_view scheme = "sim-rdma://";
  if (!uri.starts_with(scheme)) return std::nullopt;
  uri.remove_prefix(scheme.size());
  const size_t colon = uri.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const std::string_view digits = uri.substr(colon + 1);
  Target target{std::string(uri.substr(0, colon)), 0};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), target.port);
  if (error != std::errc{} || end != digits.data() + digits.size() || target.port == 0) return std::nullopt;
  return target;
}

bool inside(Bytes part, Bytes whole) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

}  // namespace

// ---- The network.

SimRdmaNet* RdmaFabric::net(uint64_t number) const {
  const auto found = nets_.find(number);
  return found == nets_.end() ? nullptr : found->second;
}

bool RdmaFabric::joined(const SimRdmaNet& a, const SimRdmaNet& b) const {
  return !cuts_.contains(a.address_) && !cuts_.contains(b.address_);
}

void RdmaFabric::fail_device(const std::string& address) {
  for (const auto& [number, net] : nets_) {
    if (net->address_ == address) net->lose_device();
  }
}

// ---- One process's card.

SimRdmaNet::SimRdmaNet(RdmaFabric& fabric, NodeId node, std::string address, uint16_t port)
    : fabric_(fabric), link_(fabric.link_), node_(node), address_(std::move(address)), port_(port), number_(fabric.next_number_++) {
  fabric.nets_.emplace(number_, this);
  fabric.addresses_.insert(address_);
  fabric.world_.add_part(node, this);
  fabric.world_.add_actor(node, this);
}

SimRdmaNet::~SimRdmaNet() {
  if (!dead_) {
    for (const auto& [pair, end] : ends_) notify_peer(end);
    fabric_.world_.remove_actor(node_, this);
    on_crash();
  }
  fabric_.world_.remove_part(node_, this);
}

void SimRdmaNet::on_crash() {
  dead_ = true;
  fabric_.nets_.erase(number_);
  ends_.clear();
  regions_.clear();
  told_.clear();
}

void SimRdmaNet::turn(Instant now) {
  if (deadline_ <= now) deadline_ = never;
}

std::string SimRdmaNet::uri() const { return fmt::format("sim-rdma://{}:{}", address_, port_); }

SimRdmaNet::End* SimRdmaNet::open_end(PairId pair) {
  const auto found = ends_.find(pair);
  return found == ends_.end() || found->second.state != State::open ? nullptr : &found->second;
}

SimRdmaNet* SimRdmaNet::other(const End& end, End*& peer) {
  SimRdmaNet* net = fabric_.net(end.peer_net);
  if (net == nullptr || !fabric_.joined(*this, *net)) return nullptr;
  const auto found = net->ends_.find(end.peer);
  if (found == net->ends_.end()) return nullptr;
  peer = &found->second;
  return net;
}

void SimRdmaNet::at(Instant when, PairId pair, void (SimRdmaNet::*what)(PairId)) {
  fabric_.world_.at(when, [&fabric = fabric_, number = number_, pair, what] {
    if (SimRdmaNet* net = fabric.net(number)) (net->*what)(pair);
  });
}

void SimRdmaNet::later(Duration least, Duration most, PairId pair, void (SimRdmaNet::*what)(PairId)) {
  at(after(fabric_.world_.now(), fabric_.world_.random().between(least, most)), pair, what);
}

// What is told comes late, and in the order in which it happened.
void SimRdmaNet::tell(Event event) {
  World& world = fabric_.world_;
  last_told_at_ = std::max(last_told_at_, after(world.now(), world.random().between(Duration(0), link_.completion_delay_max)));
  world.at(last_told_at_, [&fabric = fabric_, number = number_, event = std::move(event)]() mutable {
    if (SimRdmaNet* net = fabric.net(number)) net->tell_now(std::move(event));
  });
}

void SimRdmaNet::tell_now(Event event) {
  told_.push_back(std::move(event));
  fabric_.world_.wake(node_);
}

// ---- How a pair begins.

Result<PairId> SimRdmaNet::dial(std::string_view uri) {
  const std::optional<Target> target = parse(uri);
  if (!target) return fail(ErrorKind::usage, fmt::format("not a sim-rdma://NODE:PORT address: {}", uri));
  const PairId pair = fabric_.next_pair_++;
  End& end = ends_[pair];
  if (!fabric_.addresses_.contains(target->address)) {
    end.state = State::broken;
    tell({.what = Told::closed, .pair = pair, .status = Status::not_found, .text = "no such name"});
    return pair;
  }
  for (const auto& [number, net] : fabric_.nets_) {
    if (net->address_ == target->address && net->port_ == target->port) end.peer_net = number;
  }
  later(link_.delay_min, link_.delay_max, pair, &SimRdmaNet::arrive);
  return pair;
}

void SimRdmaNet::arrive(PairId dialled) {
  const auto found = ends_.find(dialled);
  if (found == ends_.end()) return;
  End& end = found->second;
  SimRdmaNet* net = fabric_.net(end.peer_net);
  if (net == nullptr) {
    end.state = State::broken;
    return tell({.what = Told::closed, .pair = dialled, .status = Status::refused, .text = "nobody listens there"});
  }
  if (!fabric_.joined(*this, *net)) {
    end.state = State::broken;
    return tell({.what = Told::closed, .pair = dialled, .status = Status::unreachable, .text = "no answer"});
  }
  end.peer = fabric_.next_pair_++;
  End& theirs = net->ends_[end.peer];
  theirs.state = State::requested;
  theirs.peer_net = number_;
  theirs.peer = dialled;
  net->tell({.what = Told::requested, .pair = end.peer, .text = uri()});
}

void SimRdmaNet::accept(PairId requested) {
  const auto found = ends_.find(requested);
  if (found == ends_.end() || found->second.state != State::requested) return;
  End* dialler = nullptr;
  SimRdmaNet* net = other(found->second, dialler);
  if (net == nullptr) return break_pair(requested, Status::disconnected, "the dialler is gone");
  net->later(link_.delay_min, link_.delay_max, found->second.peer, &SimRdmaNet::get_through);
}

// Both ends are ready before either is told.
void SimRdmaNet::get_through(PairId dialled) {
  const auto found = ends_.find(dialled);
  if (found == ends_.end() || found->second.state != State::dialling) return;
  End* theirs = nullptr;
  SimRdmaNet* net = other(found->second, theirs);
  if (net == nullptr || theirs->state != State::requested) return;
  found->second.state = theirs->state = State::open;
  tell({.what = Told::connected, .pair = dialled});
  net->tell({.what = Told::connected, .pair = found->second.peer});
}

// ---- How it ends.

void SimRdmaNet::notify_peer(const End& end) {
  SimRdmaNet* net = fabric_.net(end.peer_net);
  if (net == nullptr || end.peer == 0 || !fabric_.joined(*this, *net)) return;
  net->later(link_.delay_min, link_.delay_max, end.peer, &SimRdmaNet::disconnected);
}

void SimRdmaNet::disconnected(PairId pair) {
  const auto found = ends_.find(pair);
  if (found == ends_.end() || found->second.state == State::broken) return;
  if (found->second.state != State::dialling) return break_pair(pair, Status::disconnected, "the peer has closed the connection");
  break_pair(pair, Status::refused, "the peer does not want it");
}

void SimRdmaNet::close(PairId pair) {
  const auto found = ends_.find(pair);
  if (found == ends_.end()) return;
  if (found->second.state != State::broken) notify_peer(found->second);
  ends_.erase(found);
}

void SimRdmaNet::break_pair(PairId pair, Status status, std::string reason) {
  End& end = ends_.at(pair);
  end.state = State::broken;
  ++fabric_.totals_.broken;
  for (const auto& request : end.queue) {
    if (request->kind == Kind::send) continue;
    tell({.what = Told::completed,
          .pair = pair,
          .tag = request->work.tag,
          .work = request->done ? WorkStatus::success : request->status});
  }
  end.queue.clear();
  end.wire.clear();
  end.reads.clear();
  tell({.what = Told::closed, .pair = pair, .status = status, .text = std::move(reason)});
}

void SimRdmaNet::end_in_error(PairId pair, Request& request, WorkStatus status, std::string reason) {
  request.status = status;
  const End end = ends_.at(pair);
  break_pair(pair, Status::disconnected, std::move(reason));
  notify_peer(end);
}

void SimRdmaNet::lose_device() {
  for (auto& [pair, end] : ends_) {
    if (end.state != State::broken) break_pair(pair, Status::disconnected, "the device is gone");
  }
  tell({.what = Told::device_failed, .text = "the card is gone"});
}

// ---- Work.

bool SimRdmaNet::post_send(PairId pair, std::span<const Bytes> parts) {
  auto request = std::make_shared<Request>();
  for (const Bytes part : parts) request->bytes.insert(request->bytes.end(), part.begin(), part.end());
  CHECK(!request->bytes.empty() && request->bytes.size() <= link_.send_bytes);
  return post(pair, std::move(request));
}

bool SimRdmaNet::post_read(PairId pair, const Work& work) {
  auto request = std::make_shared<Request>();
  request->kind = Kind::read;
  request->work = work;
  return post(pair, std::move(request));
}

bool SimRdmaNet::post_write(PairId pair, const Work& work) {
  auto request = std::make_shared<Request>();
  request->kind = Kind::write;
  request->work = work;
  return post(pair, std::move(request));
}

bool SimRdmaNet::post(PairId pair, std::shared_ptr<Request> request) {
  if (request->kind != Kind::send) CHECK(!request->work.local.empty() && request->work.local.size() <= link_.work_bytes);
  End* end = open_end(pair);
  if (end == nullptr) return false;
  if (end->queue.size() >= link_.queue_length) {
    end->full = true;
    return false;
  }
  if (request->kind == Kind::send) ++end->unsent;
  end->queue.push_back(std::move(request));
  start(pair);
  return true;
}

void SimRdmaNet::start(PairId pair) {
  End& end = ends_.at(pair);
  World& world = fabric_.world_;
  for (const auto& request : end.queue) {
    if (request->started) continue;
    if (request->kind == Kind::read && end.reads.size() >= link_.reads) return;
    request->started = true;
    const Duration delay = world.random().between(link_.delay_min, link_.delay_max);
    if (request->kind == Kind::read) {
      request->arrives = after(world.now(), delay * 2);
      end.reads.push_back(request);
      if (end.reads.size() == 1) at(request->arrives, pair, &SimRdmaNet::run_reads);
      continue;
    }
    const size_t size = request->kind == Kind::send ? request->bytes.size() : request->work.local.size();
    const auto takes = Duration(static_cast<int64_t>(size * 1'000'000'000 / link_.rate_bytes_per_s));
    end.way_free_at = after(std::max(end.way_free_at, world.now()), takes);
    request->arrives = after(end.way_free_at, delay);
    end.wire.push_back(request);
    if (end.wire.size() == 1) at(request->arrives, pair, &SimRdmaNet::run_wire);
  }
}

void SimRdmaNet::run_wire(PairId pair) {
  End* end = open_end(pair);
  if (end == nullptr || end->wire.empty()) return;
  if (end->wire.front()->arrives > fabric_.world_.now()) return at(end->wire.front()->arrives, pair, &SimRdmaNet::run_wire);
  if (!step_wire(pair, *end)) {
    if (open_end(pair) != nullptr) later(link_.receiver_wait, link_.receiver_wait * 2, pair, &SimRdmaNet::run_wire);
    return;
  }
  if (!end->wire.empty()) {
    at(std::max(end->wire.front()->arrives, after(fabric_.world_.now(), Duration(1000))), pair, &SimRdmaNet::run_wire);
  }
}

void SimRdmaNet::run_reads(PairId pair) {
  End* end = open_end(pair);
  if (end == nullptr || end->reads.empty()) return;
  if (end->reads.front()->arrives > fabric_.world_.now()) return at(end->reads.front()->arrives, pair, &SimRdmaNet::run_reads);
  if (!step_read(pair, *end)) {
    if (open_end(pair) != nullptr) later(link_.receiver_wait, link_.receiver_wait * 2, pair, &SimRdmaNet::run_reads);
    return;
  }
  if (!end->reads.empty()) {
    const auto takes = Duration(static_cast<int64_t>(uint64_t{link_.step_bytes} * 1'000'000'000 / link_.rate_bytes_per_s));
    at(std::max(end->reads.front()->arrives, after(fabric_.world_.now(), takes)), pair, &SimRdmaNet::run_reads);
  }
}

// Whether the peer's card answers at all. One that does not for retry_max breaks the pair.
bool SimRdmaNet::answers(PairId pair, End& end, SimRdmaNet*& net, End*& peer) {
  net = other(end, peer);
  if (net != nullptr && peer->state == State::open) {
    end.silent_since = never;
    return true;
  }
  const Instant now = fabric_.world_.now();
  end.silent_since = std::min(end.silent_since, now);
  if (after(end.silent_since, link_.retry_max) <= now) break_pair(pair, Status::timed_out, "the peer's card does not answer");
  return false;
}

bool SimRdmaNet::step_wire(PairId pair, End& end) {
  SimRdmaNet* net = nullptr;
  End* peer = nullptr;
  if (!answers(pair, end, net, peer)) return false;
  const std::shared_ptr<Request> request = end.wire.front();
  if (request->kind == Kind::send) {
    if (net->slots_used_ >= net->link_.receives) {
      ++fabric_.totals_.waits_for_receiver;
      return false;
    }
    if (request->bytes.size() > net->link_.send_bytes) {
      end_in_error(pair, *request, WorkStatus::flushed, "a send is longer than the peer's slots");
      return false;
    }
    ++net->slots_used_;
    ++fabric_.totals_.sends;
    fabric_.totals_.sent_bytes += request->bytes.size();
    net->tell({.what = Told::received, .pair = end.peer, .bytes = std::move(request->bytes)});
  } else {
    if (!move(pair, *request, *net, link_.step_bytes)) return false;
    if (request->moved_bytes < request->work.local.size()) return true;
  }
  request->done = true;
  end.wire.pop_front();
  finished(pair);
  return true;
}

bool SimRdmaNet::step_read(PairId pair, End& end) {
  SimRdmaNet* net = nullptr;
  End* peer = nullptr;
  if (!answers(pair, end, net, peer)) return false;
  const std::shared_ptr<Request> request = end.reads.front();
  if (!move(pair, *request, *net, link_.step_bytes)) return false;
  if (request->moved_bytes < request->work.local.size()) return true;
  request->done = true;
  end.reads.pop_front();
  start(pair);
  finished(pair);
  return true;
}

// Some of the bytes, as both cards know the memory at this moment. False: the pair is broken.
bool SimRdmaNet::move(PairId pair, Request& request, SimRdmaNet& peer, size_t most) {
  const Work& work = request.work;
  const bool read = request.kind == Kind::read;
  const Region* local = by_local_key(work.local_key);
  if (local == nullptr || !inside(work.local, local->memory) || (read && !local->access.local_write)) {
    fabric_.world_.violated(fmt::format("card of {}: work names memory that its local key is not for", address_));
    end_in_error(pair, request, WorkStatus::local_access, "this end's card refused its own work");
    return false;
  }
  const Region* remote = peer.by_remote_key(work.remote_key);
  const auto base = remote == nullptr ? 0 : reinterpret_cast<uintptr_t>(remote->memory.data());
  const bool lets = remote != nullptr && (read ? remote->access.remote_read : remote->access.remote_write) &&
                    work.remote_address >= base && work.local.size() <= remote->memory.size() &&
                    work.remote_address - base <= remote->memory.size() - work.local.size();
  if (!lets) {
    ++fabric_.totals_.refused;
    end_in_error(pair, request, WorkStatus::remote_access, "the peer's card refused the access");
    return false;
  }
  const size_t size = std::min(most, work.local.size() - request.moved_bytes);
  std::byte* here = work.local.data() + request.moved_bytes;
  std::byte* there = remote->memory.data() + (work.remote_address - base) + request.moved_bytes;
  std::memcpy(read ? here : there, read ? there : here, size);
  request.moved_bytes += size;
  (read ? fabric_.totals_.read_bytes : fabric_.totals_.written_bytes) += size;
  return true;
}

// The card learns of it a way later, and tells it when all that was posted before is done too.
void SimRdmaNet::finished(PairId pair) { later(link_.delay_min, link_.delay_max, pair, &SimRdmaNet::retire); }

void SimRdmaNet::retire(PairId pair) {
  End* end = open_end(pair);
  if (end == nullptr) return;
  const bool had_unsent = end->unsent > 0;
  while (!end->queue.empty() && end->queue.front()->done) {
    const std::shared_ptr<Request> request = end->queue.front();
    end->queue.pop_front();
    if (request->kind == Kind::send) {
      --end->unsent;
    } else {
      tell({.what = Told::completed, .pair = pair, .tag = request->work.tag});
    }
  }
  const bool has_room = end->full && end->queue.size() < link_.queue_length;
  if (!has_room && !(had_unsent && end->unsent == 0)) return;
  end->full = false;
  tell({.what = Told::sendable, .pair = pair});
}

uint32_t SimRdmaNet::unsent(PairId pair) const {
  const auto found = ends_.find(pair);
  return found == ends_.end() ? 0 : found->second.unsent;
}

bool SimRdmaNet::await(PairId pair, uint64_t tag, Duration /*limit*/) {
  End* end = open_end(pair);
  if (end == nullptr) return true;  // it is broken: the card does nothing for it
  if (fabric_.world_.random().chance(link_.await_fails_chance)) return false;
  const auto found = std::find_if(end->queue.begin(), end->queue.end(),
                                  [tag](const auto& request) { return request->kind != Kind::send && request->work.tag == tag; });
  if (found == end->queue.end()) return true;
  const std::shared_ptr<Request> wanted = *found;
  while (open_end(pair) != nullptr && !wanted->done) {
    const bool goes_on =
        wanted->kind == Kind::read && !end->reads.empty() ? step_read(pair, *end) : !end->wire.empty() && step_wire(pair, *end);
    if (!goes_on) break;
  }
  return wanted->done || open_end(pair) == nullptr;
}

bool SimRdmaNet::flush(PairId pair, Duration /*limit*/) {
  for (End* end = open_end(pair); end != nullptr; end = open_end(pair)) {
    const bool all_left = std::none_of(end->queue.begin(), end->queue.end(),
                                       [](const auto& request) { return request->kind == Kind::send && !request->done; });
    if (all_left) return true;
    if (end->wire.empty() || !step_wire(pair, *end)) return false;
  }
  return false;
}

// ---- Memory.

Status SimRdmaNet::register_memory(MutableBytes memory, rdma::Access access, rdma::Registration& registration) {
  if (memory.empty() || regions_.size() >= link_.regions_max || dead_) return Status::no_memory;
  registration.id = next_region_++;
  registration.local_key = static_cast<uint32_t>(registration.id * 2);
  registration.remote_key = static_cast<uint32_t>(registration.id * 2 + 1);
  regions_.emplace(registration.id, Region{memory, access, registration.local_key});
  return Status::success;
}

void SimRdmaNet::deregister(uint64_t id) {
  const auto found = regions_.find(id);
  if (found == regions_.end()) {
    if (!dead_) fabric_.world_.violated(fmt::format("card of {}: memory is deregistered that was not registered", address_));
    return;
  }
  for (const auto& [pair, end] : ends_) {
    for (const auto& request : end.queue) {
      if (request->kind == Kind::send || request->done || request->work.local_key != found->second.key) continue;
      fabric_.world_.violated(fmt::format("card of {}: memory is deregistered that work in flight names", address_));
    }
  }
  regions_.erase(found);
}

SimRdmaNet::Region* SimRdmaNet::by_local_key(uint32_t key) {
  const auto found = key % 2 == 0 ? regions_.find(key / 2) : regions_.end();
  return found == regions_.end() ? nullptr : &found->second;
}

SimRdmaNet::Region* SimRdmaNet::by_remote_key(uint32_t key) {
  const auto found = key % 2 == 1 ? regions_.find(key / 2) : regions_.end();
  return found == regions_.end() ? nullptr : &found->second;
}

// ---- What is told.

void SimRdmaNet::poll(Instant /*now*/, rdma::RdmaEvents& events) {
  size_t most = std::min(told_.size(), events_in_poll_max);
  if (most > 1 && fabric_.world_.random().chance(link_.partial_chance)) {
    most = 1 + static_cast<size_t>(fabric_.world_.random().below(most));
  }
  for (; most > 0 && !told_.empty(); --most) tell_one(events);
  if (!told_.empty()) fabric_.world_.wake(node_);
}

void SimRdmaNet::tell_one(rdma::RdmaEvents& events) {
  const Event event = std::move(told_.front());
  told_.pop_front();
  const bool known = event.what == Told::device_failed || ends_.contains(event.pair);
  if (event.what == Told::received) --slots_used_;
  if (!known) return;
  switch (event.what) {
    case Told::requested:
      return events.requested(event.pair, event.text);
    case Told::connected:
      return events.connected(event.pair);
    case Told::closed:
      ends_.erase(event.pair);
      return events.closed(event.pair, event.status, event.text);
    case Told::received:
      return events.received(event.pair, event.bytes);
    case Told::completed:
      return events.completed(event.pair, event.tag, event.work);
    case Told::sendable:
      return events.sendable(event.pair);
    case Told::device_failed:
      return events.device_failed(event.text);
  }
}

}  // namespace ccixfer::sim
