// A Link is the lanes of one session over one endpoint. It knows connections, puts and the control
// channel, and nothing of files. Source and destination use it alike, whichever of them dialled.
//
// It delivers session messages to the peer once and in order as long as the session lives, over any
// change of lanes. Lanes come up and go down. A put that was not acknowledged when its lane died is
// reported as not placed. A Link without a live lane lives for the time of `grace`, in which the
// dialler dials again, and then ends with Status::timed_out.
// Single-threaded. The callbacks of LinkHandler are made from turn() only.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/session/lane_admission.h"
#include "app/session/messages.h"
#include "core/cci/endpoint.h"
#include "core/trust/handshake.h"

namespace ccixfer::session {

using LaneIndex = uint16_t;

class LinkHandler {
 public:
  virtual ~LinkHandler() = default;
  virtual void on_lane_up(LaneIndex lane) = 0;                               // a destination opens mailboxes now and sends LaneOpen
  virtual void on_lane_down(LaneIndex lane) = 0;                             // after each of its puts was reported
  virtual void on_lane_message(LaneIndex lane, const Message& message) = 0;  // LaneOpen, Credit, Ask
  virtual void on_message(const Message& message) = 0;                       // a session message; each once and in order
  // A put of ours ended; success: it was placed. `context` is what put() was given.
  virtual void on_put(LaneIndex lane, uint64_t context, Status status) = 0;
  virtual void on_link_lost(const Error& error) = 0;  // the last call: the session is over at this end
};

class Link;
class SessionKeys;
struct SealSetup;

// Hears which connection belongs to which Link, so that events find their Link. The Hub implements
// it.
class LaneRegistry {
 public:
  virtual ~LaneRegistry() = default;
  virtual void connection_added(Link& link, cci::Connection connection) = 0;
  virtual void connection_removed(cci::Connection connection) = 0;
  virtual void link_destroyed(Link& link) = 0;
};

class Link {
 public:
  Link(cci::Endpoint& endpoint, const Hello& hello, LinkHandler& handler);
  ~Link();  // disconnects all lanes
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Of a sealed session, before its first lane: who we are in its handshake, which begins with that lane. Until is_secured() only
  // the handshake travels, so post nothing but an Abort.
  void secure(SealSetup setup);
  [[nodiscard]] bool is_secured() const;                  // always, without a seal
  [[nodiscard]] const SessionKeys* keys() const;          // nullptr: none yet, or --insecure. As long as the Link lives
  [[nodiscard]] const trust::ProvedPeer* proved() const;  // the same
  // For a Hello that asks for a further connection. The dialler adds the proof with prove(). The acceptor asks admits() whether it
  // is proved and not an old one.
  void prove(Hello& hello);
  [[nodiscard]] LaneAdmission admits(const Hello& hello);
  // For a Hello that asks for a new session. The dialler adds its first messages with add_early(), as far as there is room. The
  // acceptor takes them with take_early(), as if they had come over that lane.
  void add_early(Hello& hello);
  void take_early(cci::Connection connection, const std::vector<std::vector<std::byte>>& early);

  void set_session(uint64_t session);  // dialler: from Opened; acceptor: its own choice
  [[nodiscard]] uint64_t session() const;
  [[nodiscard]] const Hello& hello() const;
  // What names the transfer to this end. Of a sealed session it holds the peer's identity as well, so that no other peer can
  // name it.
  [[nodiscard]] TransferId transfer_key() const;
  [[nodiscard]] TransferId transfer_key(const TransferId& of) const;  // the same for another transfer id that the peer chose

  // From the Hub, before anything else in its turn: the instant that counts for what happens in this
  // turn. The instant of the last turn is as old as the wait since then.
  void set_now(Instant now);
  // From the Hub: a connection of this session is up, or gone, or an event of it.
  // `moves`: see must_move, as the peer says. `dial`: Hello::dial of the connection.
  void add_lane(LaneIndex lane, cci::Connection connection, bool moves = false, uint64_t dial = 0);
  void handle(cci::Event&& event);
  // From the Hub: a connection that was accepted, and is a lane, ended before its dialler had confirmed it.
  void lane_failed(cci::Connection connection);

  // Posts a session message. At most control_messages_queued_max wait, so ask control_queue_room()
  // before a long list. A post beyond that and beyond a small reserve for Abort and End ends the
  // session with ErrorKind::bug.
  void post(const Message& message);
  [[nodiscard]] size_t control_queue_room() const;
  void post_on_lane(LaneIndex lane, const Message& message);  // a lane message; it is dropped when the lane is down
  // Puts a range of a registered region into an epoch of a mailbox. no_buffers: too many puts are in
  // flight; try again after on_put.
  [[nodiscard]] Status put(LaneIndex lane, const ports::Handle& local, uint64_t local_offset_bytes, uint64_t length_bytes,
                           uint64_t mailbox, uint64_t key, uint64_t epoch, uint64_t context, bool source_is_file = false);
  [[nodiscard]] std::vector<LaneIndex> live_lanes() const;
  [[nodiscard]] bool messages_delivered() const;  // every session message was delivered
  [[nodiscard]] bool messages_sent() const;       // every one is with the endpoint at least, and leaves in its next turn
  // No lane is left, and the last one went because the peer's endpoint was destroyed, or that of a router on its way: the process
  // there has ended, by its own will.
  [[nodiscard]] bool peer_departed() const;
  [[nodiscard]] uint64_t messages_posted() const;
  [[nodiscard]] bool was_delivered(uint64_t message) const;  // session messages are counted from 1: that one, and all before it
  [[nodiscard]] std::vector<ports::HopInfo> hops(LaneIndex lane) const;
  [[nodiscard]] ports::PeerIdentity peer() const;  // of a lane that lives; nothing is known without one
  // The bytes that the network brought and took over all present lanes, including those of puts that
  // have not ended. The number falls when a lane goes.
  [[nodiscard]] uint64_t moved_bytes() const;
  // Of all present lanes together: their counts are added, and so are their round trips. nullopt: none of them knows.
  [[nodiscard]] std::optional<ports::PathFigures> path_figures() const;
  [[nodiscard]] bool has_lane(LaneIndex lane) const;  // it is live or about to be
  // The path of the lane is going (EventType::draining) and nothing replaces it yet: dial it again.
  // add_lane then lets its puts end, takes no new ones (put answers no_buffers), and puts the new
  // connection in its place. Nothing is lost if that takes no longer than settle_limit.
  [[nodiscard]] bool must_move(LaneIndex lane) const;
  // Disconnects; on_lane_down follows when its puts have been reported.
  void close_lane(LaneIndex lane);
  // Ends the session at this end: lanes are closed, then on_link_lost(error).
  void fail(const Error& error);
  // From the Hub: `registry` hears of connections, `counters` count. Both may be nullptr.
  void attach(LaneRegistry* registry, Counters* counters);
  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;
  void set_grace(Duration grace);
  void set_dialled();  // from the Dialler: this end dials the lanes

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::session
