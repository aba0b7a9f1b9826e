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
#include "routing/session/routed_slot.h"
#include "routing/session/routed_transport.h"

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
  // Of the first hop.
  [[nodiscard]] std::optional<uint64_t> delivered_bytes(ports::ConnectionId connection) const override;
  [[nodiscard]] std::optional<uint64_t> received_bytes(ports::ConnectionId connection) const override;
  void turn(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override;
  [[nodiscard]] int os_handle() const override;
  bool adopt(int descriptor) override;
  bool wait(Instant now, Instant until) override;
  void arm(Instant when) override;

 private:
  // Slots, timers, the list of those with something to push (routed_transport.cc).
  Slot* find(uint64_t packed) const;
  Slot* find(ports::ConnectionId id) const { return find(id.packed()); }
  Slot* make_slot(Mode mode, Phase phase);  // nullptr: routed_connections_max
  void free_slot(Slot& slot);
  void set_timer(const Slot& slot, Instant when) { timers_.set(slot.id.index, when); }
  void run_timers();
  void activate(Slot& slot);
  void push_active();
  bool take_events();
  void on_event(cci::Event event);
  void attach(Slot& slot, cci::Connection lower);
  void detach(Slot& slot);  // the lower connection is no longer ours

  // Connections (routed_connect.cc).
  Result<ports::ConnectionId> dial_direct(const ports::DialRequest& request, const std::string& native);
  void start(Slot& slot);
  void dial_next(Slot& slot);
  void fail_dial(Slot& slot, Status status, std::string_view reason);
  void on_lower_connected(Slot& slot, const cci::Event& event);
  void on_lower_request(cci::Event event);
  void take_backlog();
  void on_lower_accepted(Slot& slot, const cci::Event& event);
  void on_connect_request(Slot& slot, Bytes message);
  void on_connect_reply(Slot& slot, Bytes message);
  void on_connect_ack(Slot& slot);
  void on_timer(Slot& slot);
  void opened(Slot& slot);
  void direct_opened(Slot& slot);
  void keep_alive(Slot& slot);
  void watch_hops(Slot& slot);
  [[nodiscard]] std::string scheme() const;

  // Messages (routed_messages.cc).
  std::optional<MutableBytes> message_begins(cci::Connection lower, uint32_t length_bytes) override;
  void message_ends(cci::Connection lower, bool complete) override;
  void on_receive(Slot& slot, const cci::Event& event);
  bool deliver(Slot& slot, Bytes payload);  // false: no buffer above
  void on_routing_message(Slot& slot, MessageKind kind, Bytes message);
  void on_message(Slot& slot, Bytes message);
  void on_message_ack(Slot& slot, Bytes message);
  void acknowledge(Slot& slot);
  void post(Slot& slot, std::vector<std::byte> message);  // in order, kept if there is no room below
  void post_plain(Slot& slot, MessageKind kind);
  void post_message(Slot& slot, std::span<const Bytes> parts, reliability::MessageOwner owner);
  void message_ended(Slot& slot, const reliability::MessageOwner& owner, Status status);
  void flush(Slot& slot);
  void push_messages(Slot& slot);
  void release_waiting(Slot& slot);

  // RMA (routed_rma.cc).
  Status rma_direct(Slot& slot, const ports::RmaRequest& request, uint64_t token);
  class RmaWay;  // what the operations of one connection need of it
  void release_lent();
  void on_taken(Slot& slot, Bytes message);
  void on_fragment_ack(Slot& slot, Bytes message);
  void on_read_reply(Slot& slot, Bytes message);
  void push_rma(Slot& slot);
  void on_lower_read_end(Slot& slot, uint64_t cookie, Status status);
  void withdraw_rma(Slot& slot);
  void end_unused_rma(Slot& slot);
  void complete(Slot& slot, uint64_t token, ports::Ending ending);

  // The end (routed_end.cc).
  void reject_peer(Slot& slot, std::string_view why);  // the peer's fault: count, tell it, close
  void close_slot(Slot& slot, Status status, std::string_view reason, bool tell_peer);
  void finish_leaving(Slot& slot);
  void try_finish(Slot& slot);

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
  SlotTable<Slot> slots_;
  std::unordered_map<uint64_t, uint64_t> by_lower_;  // lower connection -> slot
  DeadlineHeap timers_;                              // by slot
  std::vector<uint64_t> active_;
  std::vector<uint64_t> closing_;  // to finish in the next turn
  std::vector<uint64_t> lending_;  // slots with operations whose source the network below still refers to
};

}  // namespace ccixfer::routing
