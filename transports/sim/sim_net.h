// Byte streams through the simulated world: SimNet is the StreamNet of one process on one or several networks, Fabric the
// networks themselves. Names are `sim://NODE:PORT`; NODE means something within one network only, so two networks may both
// have a 10.0.0.2. Nodes reach each other only over a network that both are attached to.
//
// What the streams do to their users: bytes come in order, in pieces cut anywhere; in-flight bytes are bounded; `again` comes
// without need now and then (an event always follows); streams are reset at random; a crashed node's streams are reset at the
// peer after a delay or stay silently half-open; bytes that reach a closed stream are answered by a reset, which may destroy
// what the other side has not read yet, as TCP does. Lent memory goes by reference to other nodes, as over tcp to other machines:
// what the peer gets is what the memory holds when the packet arrives there.
// Ownership: the Fabric outlives its SimNets; the World outlives the Fabric.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transports/sim/sim_card.h"
#include "transports/sim/world.h"
#include "transports/stream/stream_net.h"

namespace ccixfer::sim {

struct LinkOptions {
  Duration delay_min = std::chrono::microseconds(50);  // one way
  Duration delay_max = std::chrono::microseconds(500);
  uint64_t rate_bytes_per_s = 1'000'000'000;  // of each SimNet's way out; of a card that several have: Fabric::set_card
  uint32_t splice_pipe_bytes = 320u << 10;    // room of a splice pipe; 0: there are none
  // In flight and unread, per direction of a stream. When more than half of it is unread the rest stays in the sender's kernel.
  uint32_t window_bytes = 256u << 10;
  double split_chance = 0.2;      // that a send or recv takes only a random part
  double again_chance = 0.01;     // that a send or recv says `again` for no reason
  Duration reset_mean = forever;  // mean life of a stream before a reset; set to forever: none any more
  double dial_failure_chance = 0;
  double half_open_chance = 0;  // that a crash leaves a stream silently half-open
  // Processes of make_transport() have a card that checks keys on this network. Of a network, it is set before they are made.
  std::optional<CardLimits> card = {};
  double corrupt_chance = 0;  // of a packet of bulk data: that one bit of it is flipped (see bulk_bytes_min)
};

inline constexpr uint32_t sim_backlog_max = 128;         // connections not yet accepted, per listener
inline constexpr uint32_t sim_packet_bytes = 64u << 10;  // one send takes at most this

// Corruption is only of what no check of the stream protocol covers: payload handed to send() in a piece of at least so much, which
// no message and no header is.
inline constexpr size_t bulk_bytes_min = 16u << 10;

class Fabric {
 public:
  explicit Fabric(World& world, const LinkOptions& defaults = {});
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  [[nodiscard]] World& world();
  [[nodiscard]] const LinkOptions& link(const std::string& network) const;
  void set_link(const std::string& network, const LinkOptions& options);  // for packets and streams from now on
  // A cut address: packets from and to it wait until it is joined again; dials to it end unreachable.
  void cut(const std::string& network, const std::string& address);
  void join(const std::string& network, const std::string& address);
  void set_card(const std::string& card, uint64_t rate_bytes_per_s);
  void reset_all(NodeId node);                     // resets every stream of a node
  void reset_network(const std::string& network);  // and every stream of a network
  [[nodiscard]] uint64_t bytes_delivered() const;
  [[nodiscard]] uint64_t resets() const;
  [[nodiscard]] uint64_t corruptions() const;

  struct Impl;

 private:
  friend class SimNet;
  std::unique_ptr<Impl> impl_;
};

struct Attachment {
  std::string network;
  std::string address;
};

struct SimNetOptions {
  std::vector<Attachment> networks;  // at least one; a dial looks the name up in this order
  bool listen = true;
  uint16_t port = 0;  // 0: any free one
  // What this process proves to all its peers, as a handshake with keys would (ports::PeerIdentity::proved). "": nothing.
  std::string identity = {};
  std::string card = {};  // whose way out it shares with others that name it; "": it has one of its own
};

class SimNet final : public stream::StreamNet {
 public:
  SimNet(Fabric& fabric, NodeId node, const SimNetOptions& options);
  ~SimNet() override;  // on a live node: closes what is open, as the end of a process does
  SimNet(const SimNet&) = delete;
  SimNet& operator=(const SimNet&) = delete;

  [[nodiscard]] std::string_view scheme() const override { return "sim"; }
  [[nodiscard]] std::string uri() const override;
  [[nodiscard]] Result<stream::StreamId> dial(std::string_view uri) override;
  void close(stream::StreamId id) override;
  void pause_accept(bool paused) override;
  int64_t recv(stream::StreamId id, std::span<const stream::IoSpan> into) override;
  int64_t send(stream::StreamId id, std::span<const stream::ConstIoSpan> from) override;
  int64_t recv_to(stream::StreamId id, ports::SplicePipe& splice_pipe, size_t size) override;
  [[nodiscard]] uint64_t waiting_bytes(stream::StreamId id) const override;
  [[nodiscard]] std::unique_ptr<ports::SplicePipe> make_splice_pipe() override;
  [[nodiscard]] bool takes(const ports::SplicePipe& splice_pipe) const override;
  [[nodiscard]] std::string proved_peer(stream::StreamId id) const override;
  [[nodiscard]] wire::HostIdentity machine() const override;
  void peer_is_elsewhere(stream::StreamId id) override;
  [[nodiscard]] bool lends(stream::StreamId id) const override;
  // To a SimNet of another node too: the thread of a process, which has a processor of its own, is a node here.
  [[nodiscard]] std::unique_ptr<stream::LooseStream> release(stream::StreamId id) override;
  [[nodiscard]] stream::StreamId adopt(std::unique_ptr<stream::LooseStream> stream) override;
  [[nodiscard]] uint64_t unacknowledged_bytes(stream::StreamId id) const override;
  void poll(Instant now, const std::function<void(const stream::StreamEvent&)>& event) override;
  void set_deadline(Instant at) override;
  [[nodiscard]] int os_handle() const override { return -1; }

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::sim
