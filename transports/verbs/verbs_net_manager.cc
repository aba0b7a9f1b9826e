// VerbsNet: dialling and accepting, by the connection manager (librdmacm).
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "transports/inet/uri.h"
#include "transports/verbs/verbs_net.h"

namespace ccixfer::verbs {

using rdma::PairId;

namespace {

constexpr int resolve_ms = 2000;
constexpr uint8_t retries = 6;           // of the card, before it takes the peer's for gone. Soft-RoCE takes 7 for 'for ever'
constexpr uint8_t retries_for_ever = 7;  // for a slot of the peer's: its transport keeps count
// 4.096 us * 2^17 = 0.54 s: a lost packet that nothing follows costs that, and a peer that does not answer seven times that.
// The manager would take the longest way across a subnet of InfiniBand.
constexpr uint8_t ethernet_timeout = 17;
constexpr uint8_t wait_for_slot = 12;            // 0.64 ms, as a peer is asked to wait. The manager would ask for 655 ms
constexpr unsigned bits_of_ethernet = 0xe00000;  // of the mask; the kernel sets them for InfiniBand too, where they are refused
constexpr uint32_t tries_max = 3;
// Why a manager refuses (InfiniBand specification, table 'REJ reason codes').
constexpr int nobody_listens = 8;
constexpr int stale_connection = 10;
constexpr int refused_by_program = 28;

PairId id_of(const rdma_cm_id* manager) { return reinterpret_cast<uintptr_t>(manager->context); }
void set_id(rdma_cm_id* manager, PairId id) { manager->context = reinterpret_cast<void*>(static_cast<uintptr_t>(id)); }

sockaddr* of(const inet::Address& address) {  // the library only reads it
  return const_cast<sockaddr*>(reinterpret_cast<const sockaddr*>(&address.storage));
}

std::string peer_of(rdma_cm_id* manager) {
  const sockaddr* peer = rdma_get_peer_addr(manager);
  if (peer == nullptr) return {};
  inet::Address address;
  address.size = peer->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::memcpy(&address.storage, peer, address.size);
  return inet::format_uri("verbs", inet::host_of(address), inet::port_of(address));
}

std::string refusal_words(int reason) {
  if (reason == nobody_listens) return "nobody listens there";
  if (reason == refused_by_program) return "the peer refuses the connection";
  return fmt::format("the peer's connection manager refuses (reason {})", reason);
}

}  // namespace

// ---- Dialling.

Result<PairId> VerbsNet::dial(std::string_view uri) {
  const Result<inet::HostName> name = inet::parse_uri("verbs", uri);
  if (!name) return tl::unexpected<Error>(name.error());
  Pair& pair = add_pair(State::naming);
  const PairId id = pair.id;
  inet::Address address;
  if (inet::numeric_address(name->host, name->port, address)) {
    pair.addresses.push_back(address);
    dial_next(pair);
  } else {
    if (!resolver_) resolver_.emplace(watched_.wake_handle());
    if (!resolver_->resolve(id, name->host, name->port)) {
      pair.end = Status::busy;
      pair.words = inet::words_of_no_lookup;
      end_pair(pair);
    }
  }
  arm_watch();
  return id;
}

void VerbsNet::take_answers() {
  for (inet::Resolver::Answer& found : resolver_->take()) {
    Pair* pair = find(found.id);
    if (pair == nullptr || pair->state != State::naming) continue;
    pair->end = found.unknown ? Status::not_found : Status::unreachable;
    pair->words = found.reason;
    pair->addresses.assign(found.addresses.rbegin(), found.addresses.rend());
    dial_next(*pair);
  }
}

void VerbsNet::dial_next(Pair& pair) {
  static_cast<void>(release_queue(pair));
  while (!pair.addresses.empty() && !is_lost()) {
    const inet::Address to = pair.addresses.back();
    if (begin_dial(pair, to)) {
      if (pair.limit == never) dialling_.push_back(pair.id);
      pair.limit = Instant::min();  // until the next poll, which knows the time
      return;
    }
    pair.end = Status::unreachable;
    pair.words = fmt::format("{}: {}", inet::host_of(to), inet::error_words(errno));
    pair.addresses.pop_back();
  }
  if (is_lost()) pair.words = lost_;
  end_pair(pair);
}

// The one that was tried has failed.
void VerbsNet::dial_failed(Pair& pair, Status status, std::string words) {
  pair.end = status;
  pair.words = std::move(words);
  if (!pair.addresses.empty()) pair.addresses.pop_back();
  dial_next(pair);
}

bool VerbsNet::begin_dial(Pair& pair, const inet::Address& to) {
  rdma_cm_id* raw = nullptr;
  if (rdma_create_id(manager_.get(), &raw, nullptr, RDMA_PS_TCP) != 0) return false;
  pair.manager.reset(raw);
  set_id(raw, pair.id);
  pair.state = State::resolving;
  // From our device's address, so that the way leads over it; the other family has none.
  inet::Address from;
  CHECK(inet::numeric_address(inet::host_of(address_), 0, from));
  const bool is_same_family = from.storage.ss_family == to.storage.ss_family;
  return rdma_resolve_addr(raw, is_same_family ? of(from) : nullptr, of(to), resolve_ms) == 0;
}

void VerbsNet::expire_dials() {
  if (dialling_.empty()) return;
  std::vector<PairId> later;
  for (const PairId id : std::exchange(dialling_, {})) {
    Pair* pair = find(id);
    if (pair == nullptr || (pair->state != State::resolving && pair->state != State::connecting)) continue;
    if (pair->limit == Instant::min()) pair->limit = after(now_, dial_limit);
    if (now_ < pair->limit) {
      later.push_back(id);
    } else {
      pair->limit = never;
      dial_failed(*pair, Status::timed_out, "nobody answers");
    }
  }
  dialling_.insert(dialling_.end(), later.begin(), later.end());
}

void VerbsNet::ask(Pair& pair) {
  pair.state = State::connecting;
  pair.reads_out = card_->reads_out_max();
  pair.reads_in = card_->reads_in_max();
  if (!make_queue(pair) || !move_queue(pair, IBV_QPS_INIT)) {
    return dial_failed(pair, Status::unreachable, fmt::format("the RDMA device {}: {}", device_, inet::error_words(errno)));
  }
  rdma_conn_param wanted{};
  wanted.responder_resources = pair.reads_in;
  wanted.initiator_depth = pair.reads_out;
  wanted.retry_count = retries;
  wanted.rnr_retry_count = retries_for_ever;
  wanted.srq = 1;
  wanted.qp_num = pair.queue->qp_num;
  if (rdma_connect(pair.manager.get(), &wanted) != 0)
    dial_failed(pair, Status::unreachable, fmt::format("the connection manager: {}", inet::error_words(errno)));
}

void VerbsNet::take_response(Pair& pair, const rdma_conn_param& told) {
  pair.reads_out = std::min(pair.reads_out, told.initiator_depth);
  if (pair.reads_out == 0) return dial_failed(pair, Status::refused, "the peer's card lets nobody read");
  if (!move_queue(pair, IBV_QPS_RTR) || !move_queue(pair, IBV_QPS_RTS) || rdma_establish(pair.manager.get()) != 0) {
    return dial_failed(pair, Status::unreachable, fmt::format("the RDMA device {}: {}", device_, inet::error_words(errno)));
  }
  opened(pair);
}

void VerbsNet::opened(Pair& pair) {
  pair.state = State::open;
  pair.limit = never;
  pair.addresses = {};
  tell(Told::connected, pair.id);
}

// ---- The queue pair of a connection.

bool VerbsNet::make_queue(Pair& pair) {
  pair.queue = card_->make_pair();
  if (pair.queue == nullptr) return false;
  by_number_[pair.queue->qp_num] = pair.id;
  return true;
}

bool VerbsNet::move_queue(Pair& pair, ibv_qp_state to) const {
  ibv_qp_attr attributes{};
  attributes.qp_state = to;
  int mask = 0;
  if (rdma_init_qp_attr(pair.manager.get(), &attributes, &mask) != 0) return false;
  if (to == IBV_QPS_INIT) {
    attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    mask |= IBV_QP_ACCESS_FLAGS;
  } else if (to == IBV_QPS_RTR) {
    if (card_->is_infiniband()) mask = static_cast<int>(static_cast<unsigned>(mask) & ~bits_of_ethernet);
    attributes.max_dest_rd_atomic = pair.reads_in;
    attributes.min_rnr_timer = wait_for_slot;
  } else {
    attributes.max_rd_atomic = pair.reads_out;
    if (!card_->is_infiniband()) attributes.timeout = ethernet_timeout;
  }
  const int error = ibv_modify_qp(pair.queue.get(), &attributes, mask);
  if (error != 0) errno = error;
  if (error == 0 && to == IBV_QPS_RTR) pair.may_hold_slot = true;
  return error == 0;
}

// ---- Accepting.

void VerbsNet::take_request(rdma_cm_id* manager, const rdma_conn_param& told) {
  ManagerId owner(manager);
  const bool is_ours = !is_lost() && manager->verbs != nullptr && device_ == ibv_get_device_name(manager->verbs->device);
  if (!is_ours || requests_ >= requests_max || told.initiator_depth == 0 || told.responder_resources == 0) {
    static_cast<void>(rdma_reject(manager, nullptr, 0));
    return;
  }
  Pair& pair = add_pair(State::requested);
  pair.manager = std::move(owner);
  set_id(manager, pair.id);
  pair.reads_out = std::min(card_->reads_out_max(), told.initiator_depth);
  pair.reads_in = std::min(card_->reads_in_max(), told.responder_resources);
  pair.words = peer_of(manager);
  ++requests_;
  tell(Told::requested, pair.id);
}

void VerbsNet::accept(PairId requested) {
  Pair* pair = find(requested);
  if (pair == nullptr || pair->state != State::requested) return;  // it has gone meanwhile
  --requests_;
  pair->state = State::accepting;
  rdma_conn_param answer{};
  answer.responder_resources = pair->reads_in;
  answer.initiator_depth = pair->reads_out;
  answer.rnr_retry_count = retries_for_ever;
  answer.srq = 1;
  bool is_made = make_queue(*pair);
  if (is_made) answer.qp_num = pair->queue->qp_num;
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) is_made = is_made && move_queue(*pair, state);
  if (is_made && rdma_accept(pair->manager.get(), &answer) == 0) return;
  pair->end = Status::disconnected;
  pair->words = fmt::format("cannot be accepted: the RDMA device {}: {}", device_, inet::error_words(errno));
  static_cast<void>(rdma_reject(pair->manager.get(), nullptr, 0));
  end_pair(*pair);
  arm_watch();
}

// ---- What the manager tells.

void VerbsNet::take_manager_events() {
  for (int i = 0; i < manager_events_per_poll; ++i) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(manager_.get(), &event) != 0) {
      manager_ready_ = false;
      return;
    }
    const rdma_cm_event_type type = event->event;
    const int status = event->status;
    rdma_cm_id* const manager = event->id;
    const rdma_conn_param told = event->param.conn;
    rdma_ack_cm_event(event);  // before anything that destroys its id, which waits for this
    take_manager_event(type, status, manager, told);
  }
}

void VerbsNet::take_manager_event(rdma_cm_event_type type, int status, rdma_cm_id* manager, const rdma_conn_param& told) {
  if (type == RDMA_CM_EVENT_CONNECT_REQUEST) return take_request(manager, told);
  if (type == RDMA_CM_EVENT_DEVICE_REMOVAL) return fail_device(fmt::format("the RDMA device {} was removed", device_), true);
  Pair* pair = find(id_of(manager));
  if (pair == nullptr || pair->manager.get() != manager) return;  // the listener
  const bool dials = pair->state == State::resolving || pair->state == State::connecting;
  switch (type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (!dials) return;
      if (manager->verbs == nullptr || device_ != ibv_get_device_name(manager->verbs->device))
        return dial_failed(*pair, Status::unreachable, fmt::format("no way leads there over the RDMA device {}", device_));
      if (rdma_resolve_route(manager, resolve_ms) != 0)
        dial_failed(*pair, Status::unreachable, fmt::format("no route: {}", inet::error_words(errno)));
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (dials) ask(*pair);
      return;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      if (dials) take_response(*pair, told);
      return;
    case RDMA_CM_EVENT_ESTABLISHED:
      if (pair->state == State::accepting) opened(*pair);
      return;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_REJECTED:
      return take_refusal(*pair, type, status);
    case RDMA_CM_EVENT_DISCONNECTED:
      if (pair->queue != nullptr) break_pair(*pair, Status::disconnected, "the peer has closed the connection");
      return;
    default:
      return;
  }
}

void VerbsNet::take_refusal(Pair& pair, rdma_cm_event_type type, int status) {
  if (pair.state == State::accepting || pair.state == State::open)
    return break_pair(pair, Status::disconnected, fmt::format("the connection was not made ({})", rdma_event_str(type)));
  if (pair.state == State::requested) {  // the peer has given up, or has ended
    pair.end = Status::disconnected;
    pair.words = "the peer does not wait any more";
    return end_pair(pair);
  }
  if (pair.state != State::resolving && pair.state != State::connecting) return;
  if (type == RDMA_CM_EVENT_REJECTED) {
    // The peer still knows an earlier queue pair that had the number of this one: another one has another number.
    if (status == stale_connection && ++pair.tries < tries_max) return dial_next(pair);
    return dial_failed(pair, Status::refused, refusal_words(status));
  }
  if (type == RDMA_CM_EVENT_UNREACHABLE) return dial_failed(pair, Status::timed_out, "nobody answers");
  const std::string why = status < 0 ? inet::error_words(-status) : std::string(rdma_event_str(type));
  dial_failed(pair, Status::unreachable, why);
}

}  // namespace ccixfer::verbs
