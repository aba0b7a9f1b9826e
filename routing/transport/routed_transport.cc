#include "routing/transport/routed_transport.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"
#include "routing/transport/routed_impl.h"

namespace ccixfer::routing {
namespace {

constexpr int rounds_per_turn_max = 16;

uint64_t packed_of(cci::Connection connection) { return connection.packed(); }

}  // namespace

std::unique_ptr<ports::Transport> make_routed_transport(const RoutedOptions& options, std::unique_ptr<cci::Endpoint> lower,
                                                        std::shared_ptr<cci::MemoryTable> memory, ports::Entropy& entropy,
                                                        Counters& counters) {
  return std::make_unique<RoutedTransport>(options, std::move(lower), std::move(memory), entropy, counters);
}

RoutedTransport::RoutedTransport(const RoutedOptions& options, std::unique_ptr<cci::Endpoint> lower,
                                 std::shared_ptr<cci::MemoryTable> memory, ports::Entropy& entropy, Counters& counters)
    : options_(options), lower_(std::move(lower)), memory_(std::move(memory)), entropy_(entropy), counters_(counters) {
  CHECK(lower_ != nullptr && memory_ != nullptr);
  lower_->set_message_taker(this);
  options_.fragment_bytes_max = std::max(options_.fragment_bytes_max, fragment_bytes_floor);
  options_.fragments_in_flight_max = std::clamp<uint32_t>(options_.fragments_in_flight_max, 1, fragments_per_side_max / 4);
  options_.pending_requests_max = std::max(options_.pending_requests_max, 1u);
}

RoutedTransport::~RoutedTransport() {
  backlog_.clear();  // rejected
  lower_.reset();    // first: nothing may read or write what is deregistered next
  slots_.for_each([this](RoutedConnection& slot) {
    slot.rma.reset();
    for (const auto& [token, handle] : slot.direct_sources) static_cast<void>(memory_->deregister_region(handle));
  });
}

void RoutedTransport::bind(ports::TransportSink& sink, ports::RmaTarget& target) {
  CHECK(memory_->is_target_of_this(target));  // the last router's write must reach what the application registered
  sink_ = &sink;
}

std::string RoutedTransport::uri() const {
  const auto address = address_of(options_.subnet, lower_->uri());
  return address ? format_address(*address) : std::string{};
}
uint32_t RoutedTransport::max_send_bytes() const { return lower_->max_send_bytes(); }
int RoutedTransport::os_handle() const { return lower_->os_handle(); }
void RoutedTransport::arm(Instant when) { static_cast<void>(lower_->arm_os_handle(std::min(when, next_deadline()))); }

std::optional<uint64_t> RoutedTransport::delivered_bytes(ports::ConnectionId connection) const {
  const RoutedConnection* slot = find(connection);
  return slot == nullptr ? std::nullopt : lower_->delivered_bytes(slot->hop.connection());
}

std::optional<uint64_t> RoutedTransport::received_bytes(ports::ConnectionId connection) const {
  const RoutedConnection* slot = find(connection);
  return slot == nullptr ? std::nullopt : lower_->received_bytes(slot->hop.connection());
}

ports::PeerIdentity RoutedTransport::peer(ports::ConnectionId connection) const {
  const RoutedConnection* slot = find(connection);
  if (slot == nullptr || slot->mode != Mode::direct) return {};
  return slot->phase == Phase::offered ? slot->request.peer() : lower_->peer(slot->hop.connection());
}

std::vector<ports::HopInfo> RoutedTransport::hops(ports::ConnectionId connection) const {
  const RoutedConnection* slot = find(connection);
  if (slot == nullptr) return {};
  if (slot->mode == Mode::routed) {
    std::vector<ports::HopInfo> path = slot->hops;
    for (ports::HopInfo& hop : path) hop.fragment_bytes = slot->fragment_bytes;
    return path;
  }
  auto hops = lower_->hops(slot->hop.connection());
  for (ports::HopInfo& hop : hops) {
    hop.as = options_.subnet.as;
    hop.subnet = options_.subnet.subnet;
  }
  return hops;
}

void RoutedTransport::set_send_timeout(ports::ConnectionId connection, Duration timeout) {
  RoutedConnection* slot = find(connection);
  if (slot == nullptr) return;
  if (slot->mode == Mode::direct) return static_cast<void>(lower_->set_send_timeout(slot->hop.connection(), timeout));
  slot->send_timeout = timeout;
}

void RoutedTransport::set_keepalive(ports::ConnectionId connection, Duration timeout) {
  RoutedConnection* slot = find(connection);
  if (slot == nullptr) return;
  if (slot->mode == Mode::direct) return static_cast<void>(lower_->set_keepalive(slot->hop.connection(), timeout));
  slot->far_end.ask(timeout);
  if (slot->phase == Phase::open) watch_hops(*slot);
}

// --- Slots ---

RoutedConnection* RoutedTransport::find(uint64_t packed) const {
  return slots_.find(static_cast<uint32_t>(packed), static_cast<uint32_t>(packed >> 32));
}

RoutedConnection* RoutedTransport::make_slot(Mode mode, Phase phase) {
  if (slots_.size() >= routed_connections_max) return nullptr;
  const auto name = slots_.add();
  RoutedConnection& slot = *slots_.find(name);
  slot.id = {name.index, name.generation};
  slot.mode = mode;
  slot.phase = phase;
  return &slot;
}

// Of which no fragment and no direct RMA is left: try_finish() waits for those.
void RoutedTransport::free_slot(RoutedConnection& slot) {
  set_timer(slot, never);
  detach(slot);
  if (slot.message_open) sink_->on_message_end(slot.id, false);
  slots_.remove(slot.id.index);
}

void RoutedTransport::attach(RoutedConnection& slot, cci::Connection lower) {
  detach(slot);
  slot.hop.attach(lower);
  by_lower_[packed_of(lower)] = slot.id.packed();
}

void RoutedTransport::detach(RoutedConnection& slot) {
  if (slot.hop.connection()) by_lower_.erase(packed_of(slot.hop.connection()));
  slot.hop.detach();
}

void RoutedTransport::run_timers() {
  while (timers_.earliest() <= now_) {
    RoutedConnection& slot = *slots_.at(timers_.earliest_slot());
    set_timer(slot, never);
    on_timer(slot);
  }
}

void RoutedTransport::activate(RoutedConnection& slot) {
  work_ = true;
  if (slot.active) return;
  slot.active = true;
  active_.push_back(slot.id.packed());
}

// --- The turn ---

void RoutedTransport::push_active() {
  for (const uint64_t packed : std::exchange(active_, {})) {
    RoutedConnection* slot = find(packed);
    if (slot == nullptr) continue;
    slot->active = false;
    if (slot->phase == Phase::starting) {
      start(*slot);
      continue;
    }
    flush(*slot);
    if (std::exchange(slot->accept_unstamped, false) && slot->phase == Phase::accepting) {
      slot->deadline = after(now_, accept_timeout);
      set_timer(*slot, slot->deadline);
    }
    if (slot->far_end.awaits_look() && slot->phase == Phase::open) keep_alive(*slot);
    if (slot->phase == Phase::leaving) {
      try_finish(*slot);
      continue;
    }
    push_rma(*slot);
    if (slot->phase == Phase::open && slot->mode == Mode::routed) push_messages(*slot);
    if (!slot->hop.empty() || (slot->rma != nullptr && slot->rma->has_ready_reads()))
      activate(*slot);  // no room below: again when events came
    if (slot->left) finish_leaving(*slot);
  }
}

bool RoutedTransport::take_events() {
  bool any = false;
  while (auto event = lower_->get_event()) {
    any = true;
    on_event(std::move(*event));
  }
  return any;
}

void RoutedTransport::turn(Instant now) {
  CHECK(sink_ != nullptr);
  now_ = now;
  run_timers();
  bool blocked = false;
  for (int round = 0; round < rounds_per_turn_max; ++round) {
    take_backlog();
    push_active();
    lower_->turn(now);
    const bool any = take_events();
    release_lent();
    for (const uint64_t packed : std::exchange(closing_, {})) {
      if (RoutedConnection* slot = find(packed)) {
        slot->closing_queued = false;
        try_finish(*slot);
      }
    }
    blocked = !any;
    if (!any && closing_.empty()) break;
  }
  // Room below may have come without an event: our messages there are silent. What finds none now waits for the network, not for
  // time.
  if (blocked && !active_.empty()) push_active();
  work_ = !blocked || !closing_.empty();
}

Instant RoutedTransport::next_deadline() const {
  if (work_) return now_;
  Instant when = lower_->next_deadline();
  when = std::min(when, timers_.earliest());
  return when;
}

void RoutedTransport::on_event(cci::Event event) {
  switch (event.type) {
    case cci::EventType::connect_request:
      on_lower_request(std::move(event));
      return;
    case cci::EventType::send: {
      const auto found = by_lower_.find(packed_of(event.connection));
      RoutedConnection* slot = found == by_lower_.end() ? nullptr : find(found->second);
      if (slot == nullptr) return;
      if (slot->mode == Mode::direct) {
        complete(*slot, event.context, event.ending());
      } else if (event.context != 0) {
        on_lower_read_end(*slot, event.context, event.status);
      }
      return;
    }
    case cci::EventType::local_completion: {
      const auto found = by_lower_.find(packed_of(event.connection));
      const RoutedConnection* slot = found == by_lower_.end() ? nullptr : find(found->second);
      if (slot != nullptr) sink_->on_local_completion(slot->id, event.context);
      return;
    }
    case cci::EventType::device_failed:
      return sink_->on_device_failed(event.reason);
    default:
      break;
  }
  RoutedConnection* slot = find(event.context);
  if (slot == nullptr) return;
  switch (event.type) {
    case cci::EventType::connect:
      on_lower_connected(*slot, event);
      break;
    case cci::EventType::accept:
      on_lower_accepted(*slot, event);
      break;
    case cci::EventType::receive:
      if (slot->hop.connection() == event.connection && slot->phase != Phase::leaving) on_receive(*slot, event);
      break;
    case cci::EventType::disconnected:
      if (slot->hop.connection() != event.connection) break;
      slot->hop.lose();
      if (slot->phase == Phase::requesting) {
        slot->attempts->note_unreachable(event.reason);
        detach(*slot);
        dial_next(*slot);
      } else if (slot->phase != Phase::leaving) {
        close_slot(*slot, event.status, event.reason, false);
      }
      break;
    case cci::EventType::mailbox_ready:
      if (slot->mode == Mode::direct) sink_->on_mailbox_ready(slot->id, event.mailbox, event.ending().detail);
      break;
    case cci::EventType::keepalive_timed_out:
      if (slot->mode == Mode::direct) sink_->on_keepalive_timeout(slot->id);
      break;
    default:
      break;
  }
}

}  // namespace ccixfer::routing
