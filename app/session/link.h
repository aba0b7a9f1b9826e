// A Link is one session's lanes over one endpoint: it knows connections, puts and the control channel, not files. Source and
// destination machines use it alike, whoever dialled.
//
// Control channel: session messages are delivered to the peer's machine once and in order as long as the session lives, over any
// change of lanes. Lanes: come up and go down; a put that was not acknowledged when its lane died is reported not placed. A Link
// without a live lane lives on for `grace` (the dialler dials again meanwhile) and then ends with Status::timed_out.
// Single-threaded; the user's callbacks are made from turn() only.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/session/messages.h"
#include "core/cci/endpoint.h"

namespace ccixfer::session {

using LaneIndex = uint16_t;

class LinkHandler {
 public:
  virtual ~LinkHandler() = default;
  virtual void on_lane_up(LaneIndex lane) = 0;                               // destination: opens mailboxes now and sends LaneOpen
  virtual void on_lane_down(LaneIndex lane) = 0;                             // after every put of it was reported
  virtual void on_lane_message(LaneIndex lane, const Message& message) = 0;  // LaneOpen, Credit, Ask
  virtual void on_message(const Message& message) = 0;                       // in order, once
  // A put of ours ended: placed (success), or not. `context` as given.
  virtual void on_put(LaneIndex lane, uint64_t context, Status status) = 0;
  virtual void on_link_lost(const Error& error) = 0;  // the session is over at this end (grace ran out, protocol error): last call
};

class Link;

// Told which connections are whose, so that their events find their Link. The Hub implements it.
class LaneRegistry {
 public:
  virtual ~LaneRegistry() = default;
  virtual void connection_added(Link& link, cci::Connection connection) = 0;
  virtual void connection_removed(cci::Connection connection) = 0;
  virtual void link_destroyed(Link& link) = 0;
};

class Link {
 public:
  Link(cci::Endpoint& endpoint, const Hello& hello, LinkHandler& user);
  ~Link();  // disconnects all lanes
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void set_session(uint64_t session);  // dialler: from Opened; acceptor: its own choice
  [[nodiscard]] uint64_t session() const;
  [[nodiscard]] const Hello& hello() const;

  // From the Hub, before anything else of its turn: from when what happens in this turn is reckoned. Before this, the instant of
  // the last turn is as old as the wait was long.
  void set_now(Instant now);
  // From the Hub: a connection of this session is up, or gone, or an event of it.
  void add_lane(LaneIndex lane, cci::Connection connection, bool moves = false);  // `moves`: see must_move, as the peer says
  void handle(cci::Event&& event);

  // Session message. At most control_messages_queued_max wait: ask control_queue_room() before a long list; a post beyond it (and a
  // small reserve for Abort and End) ends the session with ErrorKind::bug.
  void post(const Message& message);
  [[nodiscard]] size_t control_queue_room() const;
  void post_on_lane(LaneIndex lane, const Message& message);  // lane message; dropped when the lane is down
  // Puts buffer [0, length) of a registered region into mailbox/epoch; no_buffers: too many in flight, try after on_put.
  [[nodiscard]] Status put(LaneIndex lane, const ports::Handle& local, uint64_t local_offset_bytes, uint64_t length_bytes,
                           uint64_t mailbox, uint64_t key, uint64_t epoch, uint64_t context, bool source_is_file = false);
  [[nodiscard]] std::vector<LaneIndex> live_lanes() const;
  [[nodiscard]] bool control_drained() const;  // every session message was delivered
  [[nodiscard]] std::vector<ports::HopInfo> hops(LaneIndex lane) const;
  [[nodiscard]] ports::PeerIdentity peer() const;  // of a lane that lives; nothing is known without one
  // What the network brought and took over all lanes that there are now, of puts that have not ended too: less once a lane goes.
  [[nodiscard]] uint64_t moved_bytes() const;
  [[nodiscard]] bool has_lane(LaneIndex lane) const;  // live, or about to be
  // Its path is going (EventType::draining) and nothing replaces it yet: dial it again. add_lane then lets its puts end, takes no
  // new ones (put: no_buffers), and puts the new connection in its place; without loss, if that takes no longer than settle_limit.
  [[nodiscard]] bool must_move(LaneIndex lane) const;
  // Disconnects; on_lane_down follows when its puts have been reported.
  void close_lane(LaneIndex lane);
  // Ends the session at this end: lanes are closed, then on_link_lost(error).
  void fail(const Error& error);
  // From the Hub: who is told of connections, and who counts. nullptr, nullptr: nobody.
  void attach(LaneRegistry* registry, Counters* counters);
  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;
  void set_grace(Duration grace);
  void set_dialled();  // from the Dialler: this end dials the lanes

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The dialler's side: keeps `lanes` lanes of a Link dialled, again after failures with growing pauses, spread as the endpoint
// chooses. Patience runs from the first turn, and again from each moment at which the last live lane goes; when it has run out,
// failure() is the error of the last attempt: no_route for no_route; no_answer for unreachable, timed_out and a refusal by nobody
// in particular; the acceptor's own kind and words where it gave some (`kind: words`, as the Hub does). Of the latter network,
// timeout, no_answer and no_route are worth another attempt; every other kind, Status::version and a malformed URI are final at
// once while no lane lives, and so is a name that no host has, unless the peer was reached before. A lane whose path is going is
// dialled again while it lives. session_lost(): the acceptor refused with `unknown session`, or the only lane went before Opened
// came: start a new session. The Link's grace is switched off by the constructor: patience takes its place.
class Dialler {
 public:
  Dialler(cci::Endpoint& endpoint, Link& link, std::string uri, uint64_t seed);
  ~Dialler();
  void set_lanes(uint16_t lanes);  // lane 0 first; the others after `opened`
  void set_patience(Duration patience);
  void set_reached();         // an earlier session of the same transfer had a lane
  void set_now(Instant now);  // from the Hub, as Link's
  void turn(Instant now);
  [[nodiscard]] bool handle_connect(cci::Event& event);  // true: it was ours (the Hub asks before others)
  void set_id(uint32_t id);  // from the Hub, before the first turn: tells the connect events of diallers apart
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] const Error* failure() const;  // given up
  [[nodiscard]] bool hopeless() const;         // at once, as no other attempt can end differently
  [[nodiscard]] const Error* trouble() const;  // of the last attempt, while no lane lives and it goes on trying
  [[nodiscard]] bool refused() const;          // the last attempt was refused by the acceptor itself, in its own words
  [[nodiscard]] bool session_lost() const;     // the acceptor no longer knows the session: start a new one

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The acceptor's side: turns connect requests into lanes. Asks the user for new sessions.
class AcceptHandler {
 public:
  virtual ~AcceptHandler() = default;
  // A new session: the Link to add the lane to (owned by the user), or a reason to refuse (kind usage/busy ...).
  // Called for every hello with session 0. One with the transfer of a session that lives: its dialler has lost that one; end the
  // old one. `now` is of the Hub's turn that is under way: the user's own turn has not come yet, and its last one may be long past.
  virtual Result<Link*> on_new_session(const Hello& hello, Instant now) = 0;
  virtual Link* find_session(const Hello& hello) = 0;  // session != 0. nullptr: unknown
};

// Routes endpoint events to Links by connection. One per endpoint. Hellos are validated here: a bad one is counted and refused with
// a reason; at most accepts_pending_max connections wait for the peer's confirmation. A lane that is dialled again while it lives
// replaces the old one. From any callback Links and diallers may be added, removed and destroyed, but for the Link that makes the
// callback: that one only from on_link_lost. A Link removes itself when it is destroyed; a dialler is removed by its owner.
class Hub {
 public:
  Hub(cci::Endpoint& endpoint, Counters& counters);
  ~Hub();
  void set_accept_user(AcceptHandler* user);
  void add_dialler(Dialler* dialler);
  void remove_dialler(Dialler* dialler);
  void add_link(Link* link);
  void remove_link(Link* link);
  void turn(Instant now);  // endpoint.turn, events, links, diallers
  [[nodiscard]] Instant next_deadline() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::session
