// The stream transport's inside, in six files: engine.cc (connections, the turn), engine_calls.cc (calls from above),
// engine_handshake.cc (how connections begin and end), engine_rx.cc, engine_tx.cc, engine_timers.cc. Private to this room.
#pragma once
#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/counters.h"
#include "core/base/deadline_heap.h"
#include "core/base/slot_table.h"
#include "core/wire/connection_frames.h"
#include "transports/stream/connection.h"
#include "transports/stream/stream_net.h"

namespace ccixfer::stream {

class Engine final : public ports::Lender {
 public:
  Engine(const ports::TransportOptions& options, std::unique_ptr<StreamNet> net, Counters& counters);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void bind(ports::TransportSink& sink, ports::RmaTarget& target);
  [[nodiscard]] StreamNet& net() { return *net_; }
  [[nodiscard]] const StreamNet& net() const { return *net_; }
  [[nodiscard]] Result<ports::ConnectionId> dial(const ports::DialRequest& request);
  [[nodiscard]] Status accept(ports::ConnectionId id);
  [[nodiscard]] Status reject(ports::ConnectionId id, std::string_view reason);
  void disconnect(ports::ConnectionId id);
  [[nodiscard]] Status send(ports::ConnectionId id, std::span<const Bytes> parts, uint64_t token);
  [[nodiscard]] Status rma(ports::ConnectionId id, const ports::RmaRequest& request, uint64_t token);
  void resume(ports::ConnectionId id);
  void hint(ports::ConnectionId id, uint64_t mailbox, uint64_t epoch);
  void set_send_timeout(ports::ConnectionId id, Duration timeout);
  void set_keepalive(ports::ConnectionId id, Duration timeout);
  void abort(ports::ConnectionId id);
  [[nodiscard]] std::optional<uint64_t> delivered_bytes(ports::ConnectionId id) const;
  [[nodiscard]] std::optional<uint64_t> received_bytes(ports::ConnectionId id) const;
  [[nodiscard]] std::vector<ports::HopInfo> hops(ports::ConnectionId id) const;
  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;
  void settle() override;

 private:
  // engine.cc
  [[nodiscard]] Connection* find(ports::ConnectionId id) const;  // nullptr: stale or never was
  Connection* create(StreamId stream, State state);              // nullptr: connections_max
  void set_state(Connection& c, State next);
  void limit_step(Connection& c, Duration timeout);  // of the state, from the next service on
  void touch(Connection& c);                         // it has something to do in the next pass
  void touch_from_above(Connection& c);              // and the OS handle must tell so
  void net_event(const StreamEvent& event);
  void service(Connection& c);
  void leave(Connection& c);
  void release_fenced(Connection& c);
  void update_accepting();
  [[nodiscard]] Instant crowded_at() const;
  void drop_silent();
  [[nodiscard]] uint64_t acknowledged_bytes(const Connection& c) const;  // by the peer's network
  void reclaim();
  [[nodiscard]] Instant timers() const { return std::min({deadlines_.earliest(), reclaim_at_, crowded_at()}); }

  // engine_handshake.cc
  void greet(Connection& c);
  void on_hello(Connection& c, Bytes header);
  void on_hello_reply(Connection& c, Bytes header);
  void on_connect_accept(Connection& c);
  void on_connect_reject(Connection& c, Bytes header);
  void on_connect_ack(Connection& c);
  void on_bye(Connection& c, Bytes header);
  void refuse_hello(Connection& c, Status status, std::string_view reason);
  void agree(Connection& c, const wire::Offer& theirs, const wire::Machine& machine);
  [[nodiscard]] static bool offer_is_sane(const wire::Offer& offer);
  [[nodiscard]] wire::Offer our_offer() const;
  void report_end(Connection& c, Status status, std::string_view reason);
  void fail_operations(Connection& c, Status status);
  void lose(Connection& c, Status status, std::string_view reason);  // at once
  void part(Connection& c, Status status, std::string_view reason);  // telling the peer, if the stream is between frames
  void violation(Connection& c, std::string_view reason);            // the peer broke the protocol
  void drain(Connection& c);                                         // flush what is queued, then wait for the peer's end
  void release(Connection& c);
  void complete(Connection& c, uint64_t token, ports::Ending ending);
  void message_ended(Connection& c, const MessageOwner& owner, Status status);

  // engine_rx.cc
  void receive(Connection& c);
  [[nodiscard]] bool receive_through(Connection& c, size_t& budget);
  [[nodiscard]] bool received(Connection& c, int64_t n);
  [[nodiscard]] static ports::Arrival* arrival_through(Connection& c);
  void consume(Connection& c, MutableBytes bytes);
  void on_frame(Connection& c, const wire::FramePrefix& prefix, Bytes header);
  void on_message(Connection& c, uint32_t payload_bytes, Bytes header);
  void on_message_ack(Connection& c, Bytes header);
  void acknowledged(Connection& c, uint64_t next, Status status);
  void on_rma_write(Connection& c, const wire::FramePrefix& prefix, Bytes header);
  void on_rma_write_ack(Connection& c, Bytes header);
  void on_rma_read(Connection& c, Bytes header);
  void on_rma_read_data(Connection& c, const wire::FramePrefix& prefix, Bytes header);
  void on_rma_read_end(Connection& c, Bytes header);
  void on_mailbox_hint(Connection& c, Bytes header);
  [[nodiscard]] MutableBytes payload_memory(Connection& c);
  void payload_arrived(Connection& c, size_t bytes);
  void stream_ended(Connection& c);
  [[nodiscard]] static bool parsing(const Connection& c) { return c.state != State::draining && c.state != State::gone; }

  // engine_tx.cc
  void queue(Connection& c);
  void transmit(Connection& c);
  void send_at_once(Connection& c);
  [[nodiscard]] static bool hold_acknowledgement(Connection& c);
  [[nodiscard]] static bool bulk_to_send(const Connection& c);
  [[nodiscard]] bool wants_to_send(const Connection& c) const;
  void refill(Connection& c);
  [[nodiscard]] static uint64_t chunk_bytes(const Connection& c);
  [[nodiscard]] static bool wants_control(const Connection& c);
  [[nodiscard]] static bool acknowledges_alone(const Connection& c);
  void add_control(Connection& c);
  static void add_answers(Connection& c, wire::Writer& out);
  [[nodiscard]] bool add_message(Connection& c);
  [[nodiscard]] bool add_chunk(Connection& c);
  [[nodiscard]] bool add_write_chunk(Connection& c);
  void add_write_chunk(Connection& c, uint32_t slot, uint32_t size);  // 0: the end of one that is given up
  [[nodiscard]] bool add_read_chunk(Connection& c);
  [[nodiscard]] bool continues(Connection& c) const;
  [[nodiscard]] size_t gather(Connection& c, std::span<ConstIoSpan> into);
  void sent(Connection& c, size_t bytes);
  static void note_lent(Connection& c, const OutItem& item);
  void item_sent(Connection& c, const OutItem& item);
  void start_operations(Connection& c);
  void keep_batch(std::unique_ptr<OutBatch> batch);

  // engine_timers.cc
  void run_timers();
  void on_timer(Connection& c);
  void on_step_timeout(Connection& c);
  void on_keepalive_timer(Connection& c);
  [[nodiscard]] Instant deadline_of(const Connection& c) const;
  [[nodiscard]] static Instant keepalive_deadline(const Connection& c);
  void schedule(Connection& c);

  ports::TransportOptions options_;
  std::unique_ptr<StreamNet> net_;
  Counters& counters_;
  ports::TransportSink* sink_ = nullptr;
  ports::RmaTarget* target_ = nullptr;

  SlotTable<Connection> connections_;
  std::vector<uint32_t> released_;  // to be removed at the end of the turn
  uint32_t connections_count_ = 0;
  uint32_t pending_count_ = 0;  // awaiting_hello and requested
  bool accepting_paused_ = false;
  std::set<std::pair<Instant, uint32_t>> silent_;  // awaiting_hello: since when, index
  std::unordered_map<StreamId, uint32_t> by_stream_;
  std::vector<uint32_t> ready_;
  std::vector<uint32_t> serving_;
  DeadlineHeap deadlines_;
  Instant now_{};
  uint64_t wants_seen_ = 0;     // of lent memory that its owner wants back
  Instant reclaim_at_ = never;  // when to look at it again
  bool in_turn_ = false;
  bool poked_ = false;
  bool urgent_ = false;  // somebody in ready_ has more to do than send a held acknowledgement

  std::array<ConstIoSpan, 3 * batch_items_max> spans_;  // of the call that sends
  std::vector<std::byte> staging_;
  std::vector<std::byte> drain_;
  std::vector<std::byte> zeros_;
  std::vector<std::unique_ptr<OutBatch>> spare_batches_;
};

}  // namespace ccixfer::stream
