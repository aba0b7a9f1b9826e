// The dialler's side. It keeps `lanes` lanes of a Link dialled. After a failure it dials again, with
// growing pauses. A lane whose path is going is dialled again while it lives.
//
// Patience runs from the first turn, and again from each moment at which the last live lane goes.
// When it has run out, failure() is the error of the last attempt:
// - no_route where there is no route; no_answer where the peer cannot be reached, does not answer in
//   time, or refuses without words;
// - the acceptor's own kind and words where it gave some (`kind: words`, as the Hub does).
// Some failures are final at once while no lane lives: the acceptor's own words of a kind other than
// network, timeout, no_answer and no_route; Status::version; a malformed URI; a name that no host
// has, unless the peer was reached before.
//
// session_lost() says that a new session is needed: the acceptor refused with `unknown session`, or
// the only lane went before Opened came. The constructor switches off the Link's grace, because
// patience takes its place.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/cci/endpoint.h"

namespace ccixfer::session {

class Link;

class Dialler {
 public:
  Dialler(cci::Endpoint& endpoint, Link& link, std::string uri, uint64_t seed);
  ~Dialler();
  void set_lanes(uint16_t lanes);  // lane 0 comes first, the others after Opened
  // So many lanes will most likely be wanted. Where the first one shows that the path is long (spares_after), connections for the
  // others are dialled ahead meanwhile, where the transport can. Those that are not used in time are closed.
  void expect_lanes(uint16_t lanes);
  void set_patience(Duration patience);
  void begin_patience_anew();  // in the next turn: the time until then was not the acceptor's
  void set_reached();          // an earlier session of the same transfer had a lane
  void set_now(Instant now);   // from the Hub, as Link's
  void turn(Instant now);
  [[nodiscard]] bool handle_connect(cci::Event& event);  // true: the event was ours
  void set_id(uint32_t id);                              // from the Hub, before the first turn: tells diallers' events apart
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] const Error* failure() const;  // it has given up
  [[nodiscard]] bool hopeless() const;         // it gave up at once, because no other attempt can end differently
  [[nodiscard]] const Error* trouble() const;  // of the last attempt, while no lane lives and it tries again
  [[nodiscard]] bool refused() const;          // the last attempt was refused by the acceptor itself, in its own words
  [[nodiscard]] bool session_lost() const;     // the acceptor no longer knows the session: start a new one

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::session
