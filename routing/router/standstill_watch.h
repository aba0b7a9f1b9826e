// Watches for peers that stand still. A buffer is held by a fragment that waits for one of its two
// sides: to send it, or to take it. Such a side may be stopped, or never mean to go on, and live
// all the while; so the watch measures the bytes that move, and neither signs of life nor the time
// that a slow network needs. It asks nothing of sides that move.
// In: a look every look_interval while buffers are out. Out: connections that are ended, and ends
// that are remembered. Single-threaded. Source: routing/router/README.md 'A peer that stands
// still'.
#pragma once
#include <string>
#include <vector>

#include "routing/router/buffer_grants.h"
#include "routing/router/connection_ender.h"
#include "routing/router/fragment.h"
#include "routing/router/message_relay.h"

namespace ccixfer::routing {

// An end that stands still for so long is cut off if others wait for the buffers that it holds.
inline constexpr Duration cut_when_pressed = std::chrono::seconds(2);
// The same for a connection over which no fragment has gone yet.
inline constexpr Duration cut_new_when_pressed = std::chrono::seconds(1);
// How often a router beyond, which stands still, is told that others wait.
inline constexpr Duration press_interval = std::chrono::seconds(1);
// An end that stands still for so long is cut off although nobody waits.
inline constexpr Duration cut_anyway = std::chrono::seconds(30);
// The keepalive of the connection to a router that stands still, where the ends watched one another.
inline constexpr Duration hop_watch = std::chrono::seconds(5);

// While a fragment arrives, the way out sends nothing more of it before so many more bytes have come:
// the smallest chunk of a stream (transports/stream/limits.h).
inline constexpr uint64_t arriving_chunk_bytes = 260u << 10;

class StandstillWatch {
 public:
  StandstillWatch(bool enabled, const Devices& devices, const FragmentPool& pool, ConnectionTable& connections,
                  StoodStill& stood_still, MessageRelay& relay, ConnectionEnder& ender);
  void begin(Instant now);  // a buffer is out: looks are due from now on
  // True: a look was due. `pressed`: who had to wait since the last one.
  bool look(Instant now, const SlotTable<Fragment>& fragments, BufferGrants& grants);
  [[nodiscard]] Instant next_deadline() const { return next_look_; }
  // A router before or behind us says that others wait for what we hold of this connection.
  void on_others_wait(RelayedConnection& connection, Instant now);
  // That leg said goodbye, and the connection closes.
  void on_left(RelayedConnection& connection, uint8_t which, Instant now);

 private:
  void note_waiting(const SlotTable<Fragment>& fragments);
  void note_waiting(RelayedConnection& connection, Fragment& fragment);
  void begin_look(RelayedConnection& connection);
  void note_networks(Duration passed);
  void judge(RelayedConnection& connection, Duration passed);
  void note_moved(RelayedConnection& connection, uint8_t which);
  [[nodiscard]] Duration stands_for(Leg& leg, Direction direction, Duration passed);
  [[nodiscard]] uint64_t bytes_of(const Leg& leg, Direction direction) const;
  void decide(RelayedConnection& connection, const Pressed& pressed, Instant now);
  void press(RelayedConnection& connection, Leg& leg, bool others_wait, Instant now);
  void stop_waiting(RelayedConnection& connection, Instant now);
  void cut_off(RelayedConnection& connection, uint8_t which, const std::string& what);
  void abort(Leg& leg);

  bool enabled_;
  const Devices& devices_;
  const FragmentPool& pool_;
  ConnectionTable& connections_;
  StoodStill& stood_still_;
  MessageRelay& relay_;
  ConnectionEnder& ender_;
  NetworkFlows networks_;
  Instant next_look_ = never, last_look_{};
  uint64_t look_ = 0;
  std::vector<uint64_t> looked_at_;  // connections that held a buffer at the last look
};

}  // namespace ccixfer::routing
