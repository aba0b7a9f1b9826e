// Inside of sim_net: the networks, and what happens to packets between two ends. Not for other rooms.
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transports/sim/sim_stream.h"

namespace ccixfer::sim {

struct Fabric::Impl {
  using Key = std::pair<std::string, std::string>;  // network, address (or address:port)

  Impl(World& owner, const LinkOptions& link) : world(owner), defaults(link) {}

  World& world;
  const LinkOptions defaults;
  std::map<std::string, LinkOptions> links;
  std::map<Key, NodeId> addresses;         // every address ever attached
  std::map<Key, SimNet::Impl*> listeners;  // by address:port
  std::set<Key> cuts;
  std::vector<SimNet::Impl*> nets;
  struct Card {
    uint64_t rate_bytes_per_s = 0;
    Instant free_at{};
  };
  std::map<std::string, Card> cards;
  stream::StreamId next_id = 1;
  uint64_t bytes_delivered = 0;
  uint64_t resets = 0;
  uint64_t corruptions = 0;

  [[nodiscard]] const LinkOptions& link(const std::string& network) const;
  [[nodiscard]] Duration delay(const std::string& network);
  [[nodiscard]] bool is_cut(const Stream& stream) const;
  void connect(const StreamPtr& stream, uint16_t port);  // the dial's first packet arrives
  void fail_dial(const StreamPtr& stream, Duration in, Status status, const char* reason);
  void transmit(const StreamPtr& stream, unsigned from, Packet packet, Instant leaves);
  void arrive(const StreamPtr& stream, unsigned from);  // the next packet of a direction
  void go_on(const StreamPtr& stream, unsigned from);   // the peer has read something
  void send_reset(const StreamPtr& stream, unsigned to, const char* reason);
  void reset_both(const StreamPtr& stream, const char* reason);
  void live_and_die(const StreamPtr& stream);  // draws the stream's life
};

struct SimNet::Impl final : public NodePart, public Actor {
  Impl(Fabric::Impl& owner, NodeId node_id, const SimNetOptions& net_options);
  ~Impl() override;

  Fabric::Impl& fabric;
  World& world;
  const NodeId node;
  const uint64_t incarnation;
  SimNetOptions options;
  std::map<stream::StreamId, std::pair<StreamPtr, unsigned>> streams;  // which end is ours
  std::deque<stream::StreamEvent> events;
  std::deque<stream::StreamEvent> backlog;                      // accepted events, held back while paused
  std::shared_ptr<Impl*> self = std::make_shared<Impl*>(this);  // for events that may come after our end
  bool paused = false;
  bool dead = false;  // its node crashed
  Instant deadline = never;
  Instant way_out_free_at{};  // without a card

  void push(stream::StreamEvent event);
  void push_later(stream::StreamId id, stream::StreamEventType type);
  [[nodiscard]] Instant leaves(size_t bytes, const LinkOptions& link);  // what is sent now; the way out is taken until then
  void forget(stream::StreamId id);
  void close(stream::StreamId id);
  void on_crash() override;
  void turn(Instant now) override;  // only forgets a deadline that has passed
  [[nodiscard]] Instant next_deadline() const override { return deadline; }
};

}  // namespace ccixfer::sim
