#include "routing/transport/routed_transport.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "routing/transport/direct_connections.h"
#include "routing/transport/routed_connections.h"

namespace ccixfer::routing {
namespace {

constexpr int rounds_per_turn_max = 16;
constexpr std::string_view routed_prefix = "cci://";

RoutedOptions usable(RoutedOptions options) {
  options.fragment_bytes_max = std::max(options.fragment_bytes_max, fragment_bytes_floor);
  options.fragments_in_flight_max = std::clamp<uint32_t>(options.fragments_in_flight_max, 1, fragments_per_side_max / 4);
  options.pending_requests_max = std::max(options.pending_requests_max, 1u);
  return options;
}

class RoutedTransport final : public ports::Transport, private cci::MessageTaker {
 public:
  RoutedTransport(const RoutedOptions& options, std::unique_ptr<cci::Endpoint> lower, std::shared_ptr<cci::MemoryTable> memory,
                  ports::Entropy& entropy, Counters& counters);
  ~RoutedTransport() override;

  void bind(ports::TransportSink& sink, ports::RmaTarget& target) override;
  [[nodiscard]] std::string uri() const override;
  [[nodiscard]] uint32_t max_send_bytes() const override { return lower_->max_send_bytes(); }
  [[nodiscard]] Result<ports::ConnectionId> dial(const ports::DialRequest& request) override;
  [[nodiscard]] Status accept(ports::ConnectionId request) override;
  [[nodiscard]] Status reject(ports::ConnectionId request, std::string_view reason) override;
  void disconnect(ports::ConnectionId id) override;
  [[nodiscard]] Status send(ports::ConnectionId id, std::span<const Bytes> parts, uint64_t token) override;
  [[nodiscard]] Status rma(ports::ConnectionId id, const ports::RmaRequest& request, uint64_t token) override;
  void set_send_timeout(ports::ConnectionId id, Duration timeout) override;
  void set_keepalive(ports::ConnectionId id, Duration timeout) override;
  [[nodiscard]] std::vector<ports::HopInfo> hops(ports::ConnectionId id) const override;
  // Of a direct connection. Over routers nothing is known yet of the far end: a router is what is next to us.
  [[nodiscard]] ports::PeerIdentity peer(ports::ConnectionId id) const override;
  // Of the first hop.
  [[nodiscard]] std::optional<uint64_t> delivered_bytes(ports::ConnectionId id) const override;
  [[nodiscard]] std::optional<uint64_t> received_bytes(ports::ConnectionId id) const override;
  void turn(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override;
  [[nodiscard]] int os_handle() const override { return lower_->os_handle(); }
  void arm(Instant when) override { static_cast<void>(lower_->arm_os_handle(std::min(when, next_deadline()))); }

 private:
  // What works for the connections, once it is known who hears of them.
  struct Parts;

  [[nodiscard]] std::optional<MutableBytes> message_begins(cci::Connection lower, uint32_t length_bytes) override;
  void message_ends(cci::Connection lower, bool complete) override;
  void run_timers();
  [[nodiscard]] bool round();  // true: something came
  void push();
  [[nodiscard]] bool take_events();
  void on_event(cci::Event event);

  RoutedOptions options_;
  std::unique_ptr<cci::Endpoint> lower_;
  std::shared_ptr<cci::MemoryTable> memory_;
  ports::Entropy& entropy_;
  Counters& counters_;
  RoutedConnectionTable connections_;
  std::unique_ptr<Parts> parts_;
  Instant now_{};
  bool turn_due_ = false;  // something was asked for since the last turn, or that turn left something to do
};

struct RoutedTransport::Parts final : RoutedEnder {
  Parts(RoutedTransport& all, ports::TransportSink& above)
      : sink(above),
        direct(*all.lower_, *all.memory_, all.connections_, above, all.counters_),
        post(*all.lower_, all.connections_),
        messages(all.connections_, post, *this, above),
        operations(all.options_.fragments_in_flight_max, *all.lower_, *all.memory_, all.connections_, post, messages, *this, above,
                   all.counters_),
        keepalive(all.options_.keepalive, *all.lower_, all.connections_, post, *this, above),
        dialler(all.options_, *all.lower_, all.connections_, post, all.entropy_, above, all.counters_),
        acceptor(all.options_, *all.lower_, all.connections_, post, *this, above, all.counters_),
        routed(*all.lower_, all.connections_, post, dialler, acceptor, messages, operations, keepalive, above, all.counters_) {}

  void close(RoutedConnection& connection, Status status, std::string_view reason, bool tell_peer) override {
    routed.close(connection, status, reason, tell_peer);
  }
  void reject(RoutedConnection& connection, std::string_view why) override { routed.reject(connection, why); }

  ports::TransportSink& sink;
  DirectConnections direct;
  HopPost post;
  RoutedMessages messages;
  RoutedOperations operations;
  FarEndKeepalive keepalive;
  RoutedDialler dialler;
  RoutedAcceptor acceptor;
  RoutedConnections routed;
};

RoutedTransport::RoutedTransport(const RoutedOptions& options, std::unique_ptr<cci::Endpoint> lower,
                                 std::shared_ptr<cci::MemoryTable> memory, ports::Entropy& entropy, Counters& counters)
    : options_(usable(options)), lower_(std::move(lower)), memory_(std::move(memory)), entropy_(entropy), counters_(counters) {
  CHECK(lower_ != nullptr && memory_ != nullptr);
  lower_->set_message_taker(this);
}

RoutedTransport::~RoutedTransport() {
  if (parts_ != nullptr) parts_->acceptor.drop_waiting();  // they are rejected
  lower_.reset();                                          // before what it reads and writes is deregistered
}

void RoutedTransport::bind(ports::TransportSink& sink, ports::RmaTarget& target) {
  CHECK(memory_->is_target_of_this(target));  // the last router's write must reach what the application registered
  parts_ = std::make_unique<Parts>(*this, sink);
}

std::string RoutedTransport::uri() const {
  const auto address = address_of(options_.subnet, lower_->uri());
  return address ? format_address(*address) : std::string{};
}

// --- Connections ---

// A peer on our own subnet is reached with every router down (routing §V.A).
Result<ports::ConnectionId> RoutedTransport::dial(const ports::DialRequest& request) {
  if (request.attribute == ports::Attribute::multicast_send || request.attribute == ports::Attribute::multicast_receive) {
    return fail(ErrorKind::usage, "multicast is not implemented on this transport");
  }
  turn_due_ = true;
  if (!request.uri.starts_with(routed_prefix)) return parts_->direct.dial(request, std::string(request.uri));
  const auto address = parse_address(request.uri);
  if (!address) return tl::unexpected<Error>(address.error());
  if (address->subnet != options_.subnet) return parts_->dialler.dial(request);
  return parts_->direct.dial(request, native_uri(*address, native_scheme(options_, *lower_)));
}

Status RoutedTransport::accept(ports::ConnectionId request) {
  RoutedConnection* connection = connections_.find(request);
  if (connection == nullptr || connection->phase != Phase::offered) return Status::not_found;
  turn_due_ = true;
  return connection->is_direct() ? parts_->direct.accept(*connection) : parts_->acceptor.accept(*connection);
}

Status RoutedTransport::reject(ports::ConnectionId request, std::string_view reason) {
  RoutedConnection* connection = connections_.find(request);
  if (connection == nullptr || connection->phase != Phase::offered) return Status::not_found;
  turn_due_ = true;
  return connection->is_direct() ? parts_->direct.reject(*connection, reason) : parts_->acceptor.reject(*connection, reason);
}

void RoutedTransport::disconnect(ports::ConnectionId id) {
  RoutedConnection* connection = connections_.find(id);
  if (connection == nullptr) return;
  turn_due_ = true;
  connection->is_direct() ? parts_->direct.disconnect(*connection) : parts_->routed.disconnect(*connection);
}

Status RoutedTransport::send(ports::ConnectionId id, std::span<const Bytes> parts, uint64_t token) {
  RoutedConnection* connection = connections_.find(id);
  if (connection == nullptr || connection->phase == Phase::leaving) return Status::not_found;
  if (connection->phase != Phase::open) return Status::again;
  turn_due_ = true;
  if (connection->is_direct()) return parts_->direct.send(*connection, parts, token);
  return parts_->operations.send(*connection, parts, token);
}

Status RoutedTransport::rma(ports::ConnectionId id, const ports::RmaRequest& request, uint64_t token) {
  RoutedConnection* connection = connections_.find(id);
  if (connection == nullptr || connection->phase == Phase::leaving) return Status::not_found;
  if (connection->phase != Phase::open) return Status::again;
  turn_due_ = true;
  if (connection->is_direct()) return parts_->direct.rma(*connection, request, token);
  return parts_->operations.rma(*connection, request, token);
}

void RoutedTransport::set_send_timeout(ports::ConnectionId id, Duration timeout) {
  RoutedConnection* connection = connections_.find(id);
  if (connection == nullptr) return;
  if (connection->is_direct()) return static_cast<void>(lower_->set_send_timeout(connection->hop.connection(), timeout));
  connection->messages.send_timeout = timeout;
}

void RoutedTransport::set_keepalive(ports::ConnectionId id, Duration timeout) {
  RoutedConnection* connection = connections_.find(id);
  if (connection == nullptr) return;
  if (connection->is_direct()) return static_cast<void>(lower_->set_keepalive(connection->hop.connection(), timeout));
  turn_due_ = turn_due_ || connection->phase == Phase::open;
  parts_->keepalive.ask(*connection, timeout);
}

std::vector<ports::HopInfo> RoutedTransport::hops(ports::ConnectionId id) const {
  const RoutedConnection* connection = connections_.find(id);
  if (connection == nullptr) return {};
  std::vector<ports::HopInfo> hops = connection->path.hops;
  for (ports::HopInfo& hop : hops) hop.fragment_bytes = connection->path.fragment_bytes;
  if (!connection->is_direct()) return hops;
  hops = lower_->hops(connection->hop.connection());
  for (ports::HopInfo& hop : hops) {
    hop.as = options_.subnet.as;
    hop.subnet = options_.subnet.subnet;
  }
  return hops;
}

ports::PeerIdentity RoutedTransport::peer(ports::ConnectionId id) const {
  const RoutedConnection* connection = connections_.find(id);
  return connection == nullptr || !connection->is_direct() ? ports::PeerIdentity{} : parts_->direct.peer(*connection);
}

std::optional<uint64_t> RoutedTransport::delivered_bytes(ports::ConnectionId id) const {
  const RoutedConnection* connection = connections_.find(id);
  return connection == nullptr ? std::nullopt : lower_->delivered_bytes(connection->hop.connection());
}

std::optional<uint64_t> RoutedTransport::received_bytes(ports::ConnectionId id) const {
  const RoutedConnection* connection = connections_.find(id);
  return connection == nullptr ? std::nullopt : lower_->received_bytes(connection->hop.connection());
}

// --- The turn ---

void RoutedTransport::turn(Instant now) {
  CHECK(parts_ != nullptr);
  now_ = now;
  run_timers();
  bool more = true;
  for (int i = 0; i < rounds_per_turn_max && more; ++i) more = round() || connections_.any_to_finish();
  // Room below may have come without an event: our messages there are silent. What finds none now
  // waits for the network, not for time.
  if (!more && connections_.any_active()) push();
  turn_due_ = more || connections_.any_to_finish();
}

void RoutedTransport::run_timers() {
  while (RoutedConnection* connection = connections_.take_due(now_)) parts_->routed.on_timer(*connection, now_);
}

bool RoutedTransport::round() {
  parts_->acceptor.take_waiting();
  push();
  lower_->turn(now_);
  const bool any = take_events();
  parts_->operations.release_lent();
  connections_.serve_finishing([this](RoutedConnection& connection) {
    connection.is_direct() ? parts_->direct.finish(connection) : parts_->routed.finish(connection);
  });
  return any;
}

void RoutedTransport::push() {
  connections_.serve_active([this](RoutedConnection& connection) { parts_->routed.push(connection, now_); });
}

bool RoutedTransport::take_events() {
  bool any = false;
  while (auto event = lower_->get_event()) {
    any = true;
    on_event(std::move(*event));
  }
  return any;
}

void RoutedTransport::on_event(cci::Event event) {
  if (event.type == cci::EventType::device_failed) return parts_->sink.on_device_failed(event.reason);
  if (event.type == cci::EventType::connect_request) {
    const bool is_hop = event.role == ports::Role::hop;
    return is_hop ? parts_->acceptor.on_hop(std::move(event)) : parts_->direct.on_request(std::move(event));
  }
  // The context of an operation is its own.
  const bool of_operation = event.type == cci::EventType::send || event.type == cci::EventType::local_completion;
  RoutedConnection* connection =
      of_operation ? connections_.find_by_lower(event.connection) : connections_.find(ports::ConnectionId::of(event.context));
  if (connection == nullptr) return;
  if (connection->is_direct()) {
    parts_->direct.on_event(*connection, event);
  } else {
    parts_->routed.on_event(*connection, event, now_);
  }
}

Instant RoutedTransport::next_deadline() const {
  return turn_due_ ? now_ : std::min(lower_->next_deadline(), connections_.next_deadline());
}

std::optional<MutableBytes> RoutedTransport::message_begins(cci::Connection lower, uint32_t length_bytes) {
  RoutedConnection* connection = connections_.find_by_lower(lower);
  if (connection == nullptr || !connection->is_direct()) return std::nullopt;
  return parts_->direct.message_begins(*connection, length_bytes);
}

void RoutedTransport::message_ends(cci::Connection lower, bool complete) {
  RoutedConnection* connection = connections_.find_by_lower(lower);
  if (connection != nullptr && connection->is_direct()) parts_->direct.message_ends(*connection, complete);
}

}  // namespace

std::unique_ptr<ports::Transport> make_routed_transport(const RoutedOptions& options, std::unique_ptr<cci::Endpoint> lower,
                                                        std::shared_ptr<cci::MemoryTable> memory, ports::Entropy& entropy,
                                                        Counters& counters) {
  return std::make_unique<RoutedTransport>(options, std::move(lower), std::move(memory), entropy, counters);
}

}  // namespace ccixfer::routing
