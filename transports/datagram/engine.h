// The datagram transport's inside, in six files: engine.cc (connections, the turn), engine_calls.cc (calls from above),
// engine_handshake.cc (how connections begin), engine_end.cc (and how they end), engine_rx.cc, engine_tx.cc, engine_timers.cc.
// Private to this room.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/base/counters.h"
#include "core/base/deadline_heap.h"
#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"
#include "core/ports/entropy.h"
#include "transports/datagram/connection.h"
#include "transports/datagram/cookie_jar.h"

namespace ccixfer::datagram {

class Engine final : public DatagramEvents {
 public:
  Engine(const ports::TransportOptions& options, std::unique_ptr<DatagramNet> net, ports::Entropy& entropy, Counters& counters);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void bind(ports::TransportSink& sink, ports::RmaTarget& target);
  [[nodiscard]] const DatagramNet& net() const { return *net_; }
  [[nodiscard]] uint32_t max_send_bytes() const { return message_bytes_max(datagram_bytes_); }
  [[nodiscard]] Result<ports::ConnectionId> dial(const ports::DialRequest& request);
  [[nodiscard]] Status accept(ports::ConnectionId id);
  [[nodiscard]] Status reject(ports::ConnectionId id, std::string_view reason);
  void disconnect(ports::ConnectionId id);
  [[nodiscard]] Status send(ports::ConnectionId id, std::span<const Bytes> parts, uint64_t token);
  [[nodiscard]] Status rma(ports::ConnectionId id, const ports::RmaRequest& request, uint64_t token);
  void hint(ports::ConnectionId id, uint64_t mailbox, uint64_t epoch);
  void set_send_timeout(ports::ConnectionId id, Duration timeout);
  void set_keepalive(ports::ConnectionId id, Duration timeout);
  [[nodiscard]] std::vector<ports::HopInfo> hops(ports::ConnectionId id) const;
  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;
  void arm(Instant when) { net_->set_deadline(std::min(when, next_deadline())); }
  [[nodiscard]] size_t held_bytes() const { return held_bytes_; }

 private:
  using HelloName = std::pair<Address, std::pair<uint32_t, uint64_t>>;  // a dialler's address, index and key

  // engine.cc
  [[nodiscard]] Connection* find(ports::ConnectionId id) const;  // nullptr: stale or never was
  Connection* create(State state);                               // nullptr: connections_max
  void set_state(Connection& c, State next);
  void limit_step(Connection& c, Duration timeout);
  void touch(Connection& c);
  void touch_from_above(Connection& c);
  void service(Connection& c);
  void leave(Connection& c);
  void release_fenced(Connection& c);
  void finish_closing(Connection& c);
  [[nodiscard]] static HelloName hello_name(const Connection& c);

  // engine_handshake.cc
  void resolved(uint64_t query, Status status, const Address& address, std::string_view reason) override;
  void send_hello(Connection& c);
  void on_hello(const Address& from, const Packet& packet, size_t datagram_size);
  void on_retry(const Address& from, const Packet& packet);
  void on_refuse(const Address& from, const Packet& packet);
  void refuse(const Address& from, const PacketHeader& hello, Status status, std::string_view reason);
  void on_hello_reply(Connection& c, const PacketHeader& header, const HelloReplyFrame& frame);
  void agree(Connection& c, const wire::Offer& theirs, uint32_t their_datagram_bytes);
  [[nodiscard]] wire::Offer our_offer() const;
  void opened_by_dialler(Connection& c);  // the peer knows that we accepted

  // engine_end.cc
  void on_gone(const Address& from, const Packet& packet);
  void fail_operations(Connection& c, Status status);
  void report_end(Connection& c, Status status, std::string_view reason);
  void lose(Connection& c, Status status, std::string_view reason);  // at once
  void part(Connection& c, Status status, std::string_view reason);  // telling the peer
  void violation(Connection& c, std::string_view reason);
  void say_farewell(Connection& c, bool reject, Status status, std::string_view reason);
  void release(Connection& c);
  void message_ended(Connection& c, const MessageOwner& owner, Status status);

  // engine_rx.cc
  void received(const Address& from, Bytes datagram) override;
  void on_data(const Address& from, const Packet& packet);
  [[nodiscard]] bool may_take(Connection& c, Bytes body, bool& eliciting);  // looks at all frames before any takes effect
  void on_frame(Connection& c, const Packet& packet, const Frame& frame);
  void on_ack(Connection& c, const reliability::Ack& ack);
  void on_message(Connection& c, const MessageFrame& frame);
  void learn(Connection& c, reliability::SendLedger::Outcome& outcome);
  void carried_acked(Connection& c, const reliability::Carried& carried);
  void carried_lost(Connection& c, const reliability::Carried& carried);

  // engine_tx.cc
  void writable() override;
  void transmit(Connection& c);
  [[nodiscard]] bool wants_to_send(Connection& c);
  [[nodiscard]] bool build(Connection& c, bool eliciting);
  void add_control(Connection& c, wire::Writer& out, size_t size_max, std::vector<reliability::Carried>& carried);
  void add_messages(Connection& c, wire::Writer& out, size_t size_max, std::vector<reliability::Carried>& carried);
  void add_bulk(Connection& c, wire::Writer& out, size_t size_max, std::vector<reliability::Carried>& carried);
  void put(const Address& to);  // out_ as it is
  void put_small(const Address& to, const PacketHeader& header);

  // engine_timers.cc
  void run_timers();
  void on_timer(Connection& c);
  void on_step_timeout(Connection& c);
  void on_keepalive_timer(Connection& c);
  [[nodiscard]] Instant deadline_of(const Connection& c) const;
  [[nodiscard]] static Instant keepalive_deadline(const Connection& c);
  void schedule(Connection& c);

  ports::TransportOptions options_;
  std::unique_ptr<DatagramNet> net_;
  ports::Entropy& entropy_;
  Counters& counters_;
  CookieJar cookies_;
  uint32_t datagram_bytes_;
  ports::TransportSink* sink_ = nullptr;
  ports::RmaTarget* target_ = nullptr;

  SlotTable<Connection> connections_;
  std::vector<uint32_t> released_;  // to be removed at the end of the turn
  uint32_t connections_count_ = 0;
  uint32_t pending_count_ = 0;  // requested
  std::map<HelloName, uint32_t> by_hello_;
  std::set<HelloName> ended_hellos_;  // and in the order of their end:
  RingBuffer<HelloName> ended_hellos_order_;
  std::map<uint64_t, uint32_t> by_query_;
  std::vector<uint32_t> ready_;
  std::vector<uint32_t> serving_;
  DeadlineHeap deadlines_;
  Instant now_{};
  bool in_turn_ = false;
  bool poked_ = false;
  bool blocked_ = false;  // the network took no more
  size_t held_bytes_ = 0;
  std::vector<std::byte> out_;
  reliability::SendLedger::Outcome outcome_;
};

}  // namespace ccixfer::datagram
