// The life of connections, once for every transport: dial, accept, reject, the time limit of each step, keepalive, the order of
// messages and fenced operations, disconnect, and the end with all that was in flight. What differs between networks is a driver:
// how frames leave and come back, and which machines keep the books on messages and RMA. (RAMCloud: one transport over many
// drivers.)
//
// A driver D has, and its connections C (derived from Connection) have, what this engine calls:
//
//   C::Message                                the copy of a message's bytes
//   C::messages   in_queue, window, peer_leaving, push, issued, ended, stamp, deadline, timer, fail_all, empty
//   C::rma        full, issued, fence_before, push, announced, fail_all, empty
//   C::fenced     FencedMessages<C::Message>
//                 these three may stand apart, and only while something is in flight: work.h
//
//   Result<uint64_t> D::dial(uri)             asks the network for a way to `uri`; the answer names it
//   void D::dialling(C&, uint64_t name)       the connection of that dial
//   Message D::copy_message(parts)
//   void D::message_pushed(C&)                from send(), perhaps outside of a turn
//   void D::say_accept(C&)                    our application accepted
//   bool D::say_end(C&, Parting)             false: nothing can be said to the peer any more
//   void D::poll(now)                         what came: the driver calls what is below
//   void D::serve(C&)                         one connection's part of a turn: receive and send, in bounded time
//   void D::stop_receiving(C&)                our application left: what comes is answered `disconnected`
//   void D::operations_end(C&)                its operations are about to end: nothing of the core's memory is touched any more
//   Instant D::deadline(const C&)             of the driver's own timers, if anything is in flight
//   void D::on_timer(C&)                      one of those, or the time of a message, has come
//   Outflow D::outflow(const C&)              where it can tell (keepalive.h)
//   std::string D::why_silent(const C&)       where it can tell: why this end cannot reach the peer; "": it seems to
//   void D::probe(C&)                         the peer's silence asks for a frame that it must answer
//   void D::released(C&)                      it is gone: the network may forget it
//   void D::pause_accepting(bool)             there are as many as may be, or undecided ones
//   void D::end_turn()
//   Instant D::own_deadline()                 of the whole transport; `now` when there is something to do
//   bool D::can_serve()                       false: the network takes nothing at all now
//   void D::set_deadline(Instant)             the OS handle must tell by then
//   std::string_view D::scheme()
//   std::string D::node(const C&)             the URI that was dialled, or what the driver knows of who dialled; for people
//   Duration D::round_trip(const C&)
//   PeerIdentity D::peer(const C&)
//   std::string_view D::protection(const C&)  how what it carries is protected; "": not at all
//
// Guarantees: those of ports/transport.h. An operation ends exactly once. Idle connections cost nothing in a turn. A report to the
// sink comes only from within turn(). Single-threaded. Source: CCI §III, §IV.
//
// The definitions are in engine_impl.h, which each driver instantiates in one file.
#pragma once
#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/counters.h"
#include "core/base/deadline_heap.h"
#include "core/base/slot_table.h"
#include "core/ports/transport.h"
#include "core/reliability/message_window.h"
#include "core/wire/connection_frames.h"
#include "transports/connection/connection.h"
#include "transports/connection/limits.h"
#include "transports/connection/ready_list.h"

namespace ccixfer::connection {

// How we part from a peer, and what we tell it of that.
struct Parting {
  enum class Kind : uint8_t {
    reject,     // our application does not want it
    finished,   // all is delivered, or had its time
    gave_up,    // cancelled, or the peer took too long
    violation,  // the peer broke the protocol
  };
  Kind kind = Kind::finished;
  Status status = Status::disconnected;
  std::string_view reason;
};

// Of the smaller offer of both ends.
struct Agreed {
  uint32_t sends_in_flight_max = 0;
  uint32_t rmas_in_flight_max = 0;
};

[[nodiscard]] bool offer_is_usable(const wire::Offer& offer);

// It is one class because all its methods move the same state of a connection: what the application asks, what a driver reports of
// the peer's frames, and the timers each may end what another has begun.
template <typename D, typename C>
class Engine {
 public:
  // `driver` and `counters` outlive it.
  Engine(const ports::TransportOptions& options, uint32_t max_send_bytes, D& driver, Counters& counters);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // What ports::Transport asks.
  void bind(ports::TransportSink& sink, ports::RmaTarget& target);
  [[nodiscard]] Result<ports::ConnectionId> dial(const ports::DialRequest& request);
  // Where the driver looks at Connection::asks_later.
  [[nodiscard]] Status ask(ports::ConnectionId id, Bytes data);
  [[nodiscard]] Status accept(ports::ConnectionId id);
  [[nodiscard]] Status reject(ports::ConnectionId id, std::string_view reason);
  void disconnect(ports::ConnectionId id);
  void abort(ports::ConnectionId id);
  [[nodiscard]] Status send(ports::ConnectionId id, std::span<const Bytes> parts, uint64_t token);
  [[nodiscard]] Status rma(ports::ConnectionId id, const ports::RmaRequest& request, uint64_t token);
  void set_send_timeout(ports::ConnectionId id, Duration timeout);
  void set_keepalive(ports::ConnectionId id, Duration timeout);
  [[nodiscard]] std::vector<ports::HopInfo> hops(ports::ConnectionId id) const;
  [[nodiscard]] ports::PeerIdentity peer(ports::ConnectionId id) const;
  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;

  // What a driver looks up.
  [[nodiscard]] C* find(ports::ConnectionId id) const;       // nullptr: stale, or never was
  [[nodiscard]] C* find_open(ports::ConnectionId id) const;  // and our application has not left it
  [[nodiscard]] C* at(uint32_t index) const { return connections_.at(index); }
  template <typename Each>
  void for_each(const Each& each) const {  // of those that are not gone
    connections_.for_each([&each](C& c) {
      if (c.state != State::gone) each(c);
    });
  }
  [[nodiscard]] bool has_room() const { return connections_.size() - released_.size() < options_.connections_max; }
  [[nodiscard]] bool is_crowded() const { return pending_ >= options_.pending_requests_max; }
  [[nodiscard]] bool takes_no_more() const { return is_crowded() || !has_room(); }  // accepting pauses
  [[nodiscard]] const ports::TransportOptions& options() const { return options_; }
  [[nodiscard]] wire::Offer our_offer() const;
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] bool in_turn() const { return in_turn_; }
  [[nodiscard]] bool is_bound() const { return sink_ != nullptr; }
  [[nodiscard]] ports::TransportSink& sink() const { return *sink_; }
  [[nodiscard]] ports::RmaTarget& target() const { return *target_; }
  [[nodiscard]] Counters& counters() const { return counters_; }
  [[nodiscard]] Instant timers() const { return deadlines_.earliest(); }
  [[nodiscard]] const ReadyList& ready() const { return ready_; }
  [[nodiscard]] uint64_t visits() const { return visits_; }  // of connections that turns looked at, so far

  // What a driver tells.
  [[nodiscard]] C* admit(State state);                              // a new connection; nullptr: connections_max
  void touch(C& c, bool patient = false);                           // it has something to do in the next turn
  void touch_from_above(C& c);                                      // and the OS handle must tell so
  void take_back(C& c) { ready_.take_back(c.id.index, c.queued); }  // a patient touch
  void hello_is_out(C& c);                                          // dialler
  [[nodiscard]] Agreed agree(C& c, const wire::Offer& theirs);      // both ends know each other's offers
  void answered(C& c);                                              // dialler: the hello was taken
  void requested(C& c, Bytes data);                                 // acceptor: our application decides
  void accepted_by_peer(C& c);                                      // dialler: the connection is open
  void opened_by_dialler(C& c);                                     // acceptor: the dialler knows that we accepted
  void heard(C& c) { c.keepalive.heard(now_); }
  void release_fenced(C& c);
  void message_ended(C& c, const reliability::MessageOwner& owner, Status status);
  void operation_ended(C& c, uint64_t token, ports::OperationResult ending) { sink_->on_completion(c.id, token, ending); }
  void lose(C& c, Status status, std::string_view reason);                      // at once
  void part(C& c, Parting::Kind kind, Status status, std::string_view reason);  // telling the peer, if it can be told
  void violation(C& c, std::string_view reason);                                // the peer broke the protocol
  // Why this end cannot reach the peer; `of_peer` where the driver knows of nothing.
  [[nodiscard]] std::string words_of_silence(const C& c, const char* of_peer) const;
  void begin_lingering(C& c);  // its last frame is on its way out
  void release(C& c);

 private:
  void set_state(C& c, State next);
  void update_accepting();
  void serve(C& c);
  void leave(C& c);
  void report_end(C& c, Status status, std::string_view reason);
  void fail_operations(C& c, Status status);
  [[nodiscard]] static Status why_not(const C* c);  // no operation is taken
  void remove_released();

  void run_timers();
  void on_timer(C& c);
  void on_step_timeout(C& c);
  void on_keepalive_timer(C& c);
  [[nodiscard]] static Instant keepalive_deadline(const C& c);
  [[nodiscard]] Instant deadline_of(const C& c) const;
  void schedule(C& c);

  const ports::TransportOptions options_;
  const uint32_t max_send_bytes_;
  D& driver_;
  Counters& counters_;
  ports::TransportSink* sink_ = nullptr;
  ports::RmaTarget* target_ = nullptr;

  SlotTable<C> connections_;
  std::vector<uint32_t> released_;  // to be removed at the end of the turn
  uint32_t pending_ = 0;            // nobody has decided on them
  bool accepting_paused_ = false;
  ReadyList ready_;
  DeadlineHeap deadlines_;
  Instant now_{};
  uint64_t visits_ = 0;
  bool in_turn_ = false;
  bool woken_ = false;  // the OS handle tells already that a turn has something to do
};

}  // namespace ccixfer::connection
