// The endpoint's bookkeeping, between the application's calls (endpoint.cc) and the transport's reports (endpoint_sink.cc).
// Internal to core/cci.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"
#include "core/cci/endpoint.h"
#include "core/cci/event_store.h"

namespace ccixfer::cci {

inline constexpr uint32_t hints_queued_max = 256;  // of a connection, that were not taken; more are lost

enum class State : uint8_t { connecting, accepting, established };

struct ConnectionRecord {
  State state = State::connecting;
  Attribute attribute = Attribute::reliable_ordered;
  bool keepalive_queued = false;
  uint32_t hints_queued = 0;
  uint32_t in_flight = 0;  // operations that the transport has not ended; counted where there is a send_share
  Duration send_timeout = forever;
  Duration keepalive{0};
  uint32_t max_send_bytes = 0;
  uint64_t context = 0;
  bool hop = false;                      // of a routed connection: what a target withholds is passed on to the end, which waits
  std::optional<uint32_t> open_message;  // receive buffer of the message that is arriving
  uint32_t open_message_bytes = 0;
  uint64_t waiter = 0;         // of its connect
  bool taken_outside = false;  // the message that is arriving is the taker's
};

// A send or an RMA from its issue until the transport says how it ended.
struct OperationRecord {
  uint64_t waiter = 0;
  bool silent = false;
  bool wants_local = false;  // its local completion was asked for, and not told yet
  uint64_t context = 0;
};

// An operation that the target does not answer (Status::withheld): for the application it ends with the send timeout of the
// connection, or with the connection. The transport has ended it, because its slots are bounded and negotiated.
struct Unanswered {
  ports::ConnectionId connection;
  uint64_t token = 0;
};

struct Endpoint::Impl final : ports::TransportSink {
  EndpointOptions options;
  std::shared_ptr<MemoryTable> memory;
  Counters& counters;
  std::shared_ptr<EventStore> store;
  std::unordered_map<uint64_t, ConnectionRecord> connections;
  std::unordered_map<uint64_t, uint32_t> orphans;  // receive buffers that a transport still fills for a connection we left
  NamedSlots<OperationRecord> operations;          // tokens are packed names
  uint32_t in_use = 0;                             // operations, local completions and connects whose event was not taken yet
  RingBuffer<Event> events;
  std::multimap<Instant, Unanswered> unanswered;  // by when they time out
  Instant now{};
  std::vector<ports::ConnectionId> fresh;            // established in this turn: the endpoint's options are to be set
  std::vector<ports::ConnectionId> refused_in_turn;  // requests past requests_max: rejected when the turn is over
  ports::RmaTarget* target = nullptr;  // of our transport: what it places goes there, hints for its peers come from there
  std::unique_ptr<ports::Transport> transport;
  MessageTaker* taker = nullptr;

  Impl(const EndpointOptions& o, std::unique_ptr<ports::Transport> t, std::shared_ptr<MemoryTable> m, Counters& c);
  ~Impl() override;

  ConnectionRecord* find(ports::ConnectionId connection);
  Status established(ports::ConnectionId connection, ConnectionRecord*& record);
  Status takes_operations(ports::ConnectionId connection, ConnectionRecord*& record);  // and from its acceptance on
  Event& queue(EventType type, Status status, ports::ConnectionId connection, uint64_t context);
  uint64_t begin_operation(ConnectionRecord& record, uint64_t context, bool silent, uint64_t waiter, bool wants_local = false);
  [[nodiscard]] bool has_room(const ConnectionRecord& record) const;  // for another operation
  void uncount(ports::ConnectionId connection);                       // one that was in flight
  OperationRecord* operation_of(uint64_t token);
  void drop_operation(ports::ConnectionId connection, uint64_t token);  // it never began
  std::optional<OperationRecord> end_operation(uint64_t token);
  void leave(ports::ConnectionId connection, ConnectionRecord& record);
  void complete(ports::ConnectionId connection, uint64_t token, ports::OperationResult ending);
  void time_out_unanswered();
  void fail_unanswered(ports::ConnectionId connection);
  Status rma(ports::ConnectionId connection, const RmaOptions& options);
  void set_up_fresh();
  Status check_rma(const ConnectionRecord& record, const RmaOptions& rma, MutableBytes& memory, ports::LocalRegion& local);

  void on_connect_request(ports::ConnectionId request, ports::Role role, Attribute attribute, Bytes data) override;
  void on_connected(ports::ConnectionId connection, Status status, ports::ConnectionLimits limits,
                    std::string_view reason) override;
  void on_accepted(ports::ConnectionId connection, Status status, ports::ConnectionLimits limits) override;
  MutableBytes on_message_begin(ports::ConnectionId connection, uint32_t length_bytes) override;
  void on_message_end(ports::ConnectionId connection, bool complete) override;
  void on_completion(ports::ConnectionId connection, uint64_t token, ports::OperationResult ending) override;
  void on_local_completion(ports::ConnectionId connection, uint64_t token) override;
  void on_mailbox_ready(ports::ConnectionId connection, uint64_t mailbox, uint64_t epoch) override;
  void on_disconnected(ports::ConnectionId connection, Status status, std::string_view reason) override;
  void on_keepalive_timeout(ports::ConnectionId connection) override;
  void on_draining(ports::ConnectionId connection) override;
  void on_device_failed(std::string_view reason) override;
};

}  // namespace ccixfer::cci
