// The routing transport's inside. Split in files: routed_transport.cc (interface, turn, events from below), routed_connect.cc,
// routed_messages.cc, routed_rma.cc, routed_end.cc.
#pragma once
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/deadline_heap.h"
#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"
#include "routing/transport/routed_connection.h"
#include "routing/transport/routed_transport.h"

namespace ccixfer::routing {

class RoutedTransport final : public ports::Transport, private cci::MessageTaker {
 public:
  RoutedTransport(const RoutedOptions& options, std::unique_ptr<cci::Endpoint> lower, std::shared_ptr<cci::MemoryTable> memory,
                  ports::Entropy& entropy, Counters& counters);
  ~RoutedTransport() override;

  void bind(ports::TransportSink& sink, ports::RmaTarget& target) override;
  [[nodiscard]] std::string uri() const override;
  [[nodiscard]] uint32_t max_send_bytes() const override;
  [[nodiscard]] Result<ports::ConnectionId> dial(const ports::DialRequest& request) override;
  [[nodiscard]] Status accept(ports::ConnectionId request) override;
  [[nodiscard]] Status reject(ports::ConnectionId request, std::string_view reason) override;
  void disconnect(ports::ConnectionId connection) override;
  [[nodiscard]] Status send(ports::ConnectionId connection, std::span<const Bytes> parts, uint64_t token) override;
  [[nodiscard]] Status rma(ports::ConnectionId connection, const ports::RmaRequest& request, uint64_t token) override;
  void set_send_timeout(ports::ConnectionId connection, Duration timeout) override;
  void set_keepalive(ports::ConnectionId connection, Duration timeout) override;
  [[nodiscard]] std::vector<ports::HopInfo> hops(ports::ConnectionId connection) const override;
  // Of a direct connection. Over routers nothing is known yet of the far end: a router is what is next to us.
  [[nodiscard]] ports::PeerIdentity peer(ports::ConnectionId connection) const override;
  // Of the first hop.
  [[nodiscard]] std::optional<uint64_t> delivered_bytes(ports::ConnectionId connection) const override;
  [[nodiscard]] std::optional<uint64_t> received_bytes(ports::ConnectionId connection) const override;
  void turn(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override;
  [[nodiscard]] int os_handle() const override;
  void arm(Instant when) override;

 private:
  // Slots, timers, the list of those with something to push (routed_transport.cc).
  RoutedConnection* find(uint64_t packed) const;
  RoutedConnection* find(ports::ConnectionId id) const { return find(id.packed()); }
  RoutedConnection* make_slot(Mode mode, Phase phase);  // nullptr: routed_connections_max
  void free_slot(RoutedConnection& slot);
  void set_timer(const RoutedConnection& slot, Instant when) { timers_.set(slot.id.index, when); }
  void run_timers();
  void activate(RoutedConnection& slot);
  void push_active();
  bool take_events();
  void on_event(cci::Event event);
  void attach(RoutedConnection& slot, cci::Connection lower);
  void detach(RoutedConnection& slot);  // the lower connection is no longer ours

  // Connections (routed_connect.cc).
  Result<ports::ConnectionId> dial_direct(const ports::DialRequest& request, const std::string& native);
  void start(RoutedConnection& slot);
  void dial_next(RoutedConnection& slot);
  void fail_dial(RoutedConnection& slot, Status status, std::string_view reason);
  void on_lower_connected(RoutedConnection& slot, const cci::Event& event);
  void on_lower_request(cci::Event event);
  void take_backlog();
  void on_lower_accepted(RoutedConnection& slot, const cci::Event& event);
  void on_connect_request(RoutedConnection& slot, Bytes message);
  void on_connect_reply(RoutedConnection& slot, Bytes message);
  void on_connect_ack(RoutedConnection& slot);
  void on_timer(RoutedConnection& slot);
  void opened(RoutedConnection& slot);
  void direct_opened(RoutedConnection& slot);
  void keep_alive(RoutedConnection& slot);
  void watch_hops(RoutedConnection& slot);
  [[nodiscard]] std::string scheme() const;

  // Messages (routed_messages.cc).
  std::optional<MutableBytes> message_begins(cci::Connection lower, uint32_t length_bytes) override;
  void message_ends(cci::Connection lower, bool complete) override;
  void on_receive(RoutedConnection& slot, const cci::Event& event);
  bool deliver(RoutedConnection& slot, Bytes payload);  // false: no buffer above
  void on_routing_message(RoutedConnection& slot, MessageKind kind, Bytes message);
  void on_message(RoutedConnection& slot, Bytes message);
  void on_message_ack(RoutedConnection& slot, Bytes message);
  void acknowledge(RoutedConnection& slot);
  void post(RoutedConnection& slot, std::vector<std::byte> message);  // in order, kept if there is no room below
  void post_plain(RoutedConnection& slot, MessageKind kind);
  void post_message(RoutedConnection& slot, std::span<const Bytes> parts, reliability::MessageOwner owner);
  void message_ended(RoutedConnection& slot, const reliability::MessageOwner& owner, Status status);
  void flush(RoutedConnection& slot);
  void push_messages(RoutedConnection& slot);
  void release_waiting(RoutedConnection& slot);

  // RMA (routed_rma.cc).
  Status rma_direct(RoutedConnection& slot, const ports::RmaRequest& request, uint64_t token);
  class RmaWay;  // what the operations of one connection need of it
  void release_lent();
  void on_taken(RoutedConnection& slot, Bytes message);
  void on_fragment_ack(RoutedConnection& slot, Bytes message);
  void on_read_reply(RoutedConnection& slot, Bytes message);
  void push_rma(RoutedConnection& slot);
  void on_lower_read_end(RoutedConnection& slot, uint64_t cookie, Status status);
  void withdraw_rma(RoutedConnection& slot);
  void end_unused_rma(RoutedConnection& slot);
  void complete(RoutedConnection& slot, uint64_t token, ports::OperationResult ending);

  // The end (routed_end.cc).
  void reject_peer(RoutedConnection& slot, std::string_view why);  // the peer's fault: count, tell it, close
  void close_slot(RoutedConnection& slot, Status status, std::string_view reason, bool tell_peer);
  void finish_leaving(RoutedConnection& slot);
  void try_finish(RoutedConnection& slot);

  RoutedOptions options_;
  std::unique_ptr<cci::Endpoint> lower_;
  std::shared_ptr<cci::MemoryTable> memory_;
  ports::Entropy& entropy_;
  Counters& counters_;
  ports::TransportSink* sink_ = nullptr;
  Instant now_{};
  bool work_ = false;                  // something was asked for since the last turn, or it left something to do
  std::optional<size_t> next_router_;  // that a connection begins with
  uint32_t pending_ = 0;               // hops without a decided request
  RingBuffer<cci::Event> backlog_;     // hops that wait for one of those to be decided; bounded by the lower endpoint's requests
  SlotTable<RoutedConnection> slots_;
  std::unordered_map<uint64_t, uint64_t> by_lower_;  // lower connection -> slot
  DeadlineHeap timers_;                              // by slot
  std::vector<uint64_t> active_;
  std::vector<uint64_t> closing_;  // to finish in the next turn
  std::vector<uint64_t> lending_;  // slots with operations whose source the network below still refers to
};

}  // namespace ccixfer::routing
