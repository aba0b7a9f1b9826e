// Routes the events of one endpoint to Links, by connection. It checks each Hello: a bad one is
// counted and refused with a reason. At most accepts_pending_max connections wait for the peer's
// confirmation. A lane that is dialled again while it lives replaces the old one. Connections of
// `ccixfer ping` are taken too (pings.h).
// Links and diallers may be added, removed and destroyed from any callback. The Link that makes the
// callback is the exception: it may be destroyed from on_link_lost only. A Link removes itself when
// it is destroyed; the owner of a dialler removes it.
// Single-threaded.
#pragma once
#include <memory>

#include "app/session/messages.h"
#include "core/base/counters.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "core/cci/endpoint.h"

namespace ccixfer::session {

class Dialler;
class Link;

// The acceptor's side: the Hub turns connect requests into lanes and asks here for sessions.
class AcceptHandler {
 public:
  virtual ~AcceptHandler() = default;
  // Each Hello with session 0 asks for a new session. Gives the Link that takes the lane, which the
  // handler owns, or the reason to refuse it. If the transfer has a session that lives, its dialler
  // has lost that one, and the handler should end it. `now` is the instant of the Hub's turn; the
  // handler's own last turn may be long past.
  virtual Result<Link*> on_new_session(const Hello& hello, Instant now) = 0;
  virtual Link* find_session(const Hello& hello) = 0;  // session != 0. nullptr: unknown
  // Whoever asked to begin a session was sent away before there was one. `hello` is nullptr where it
  // made no sense. A lane of a session that is not there is none of these.
  virtual void on_refused(const Hello* /*hello*/, const ports::PeerIdentity& /*who*/, const Error& /*why*/) {}
};

class Hub {
 public:
  Hub(cci::Endpoint& endpoint, Counters& counters);
  ~Hub();
  void set_accept_handler(AcceptHandler* handler);
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
