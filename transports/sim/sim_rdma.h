// RDMA cards in the simulated world: SimRdmaNet is the RdmaNet of one process with one card, RdmaFabric the network between cards.
// Names are `sim-rdma://NODE:PORT`.
//
// What the manuals allow happens, drawn from the world's seed: completions come late, and polls tell them in batches of any length;
// a card moves a piece of memory in steps, so that a pair that breaks leaves half of it written, and memory is looked at when it is
// moved and not when the work is posted; what a receive queue has no slot for waits; a card serves its peers while its process
// stands still; waiting for a piece of work may fail. A pair breaks at both ends when a card refuses a key, a range or a right, and
// everything in flight is flushed. A crashed node's peers notice when their cards get no answer for retry_max, and not before.
// Work of this end that names a local key which there is not, or that goes beyond its memory, is a violation of the world, and so
// is deregistering memory that work in flight names.
// Cuts: an address. fail_device(): the card at an address is gone. Ownership: the RdmaFabric outlives its nets; the World outlives
// the fabric. Single-threaded.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "transports/rdma/rdma_net.h"
#include "transports/sim/world.h"

namespace ccixfer::sim {

struct RdmaLinkOptions {
  Duration delay_min = std::chrono::microseconds(10);  // one way
  Duration delay_max = std::chrono::microseconds(30);
  uint64_t rate_bytes_per_s = 4'000'000'000;  // of each end of a pair
  uint32_t step_bytes = 128u << 10;           // that a card moves at once
  uint32_t send_bytes = 8400;
  uint32_t receives = 256;
  uint32_t work_bytes = 1u << 20;
  uint32_t reads = 4;
  uint32_t queue_length = 32;  // of work of one pair
  Duration receiver_wait = std::chrono::microseconds(200);
  Duration completion_delay_max = std::chrono::microseconds(20);
  double partial_chance = 0.25;  // that a poll tells only the first of what there is
  double await_fails_chance = 0.25;
  Duration retry_max = std::chrono::milliseconds(500);
  uint32_t regions_max = 1u << 20;
};

struct RdmaTotals {
  uint64_t sends = 0, sent_bytes = 0, written_bytes = 0, read_bytes = 0, waits_for_receiver = 0, refused = 0, broken = 0;
};

class SimRdmaNet;

class RdmaFabric {
 public:
  explicit RdmaFabric(World& world, const RdmaLinkOptions& link = {}) : world_(world), link_(link) {}
  RdmaFabric(const RdmaFabric&) = delete;
  RdmaFabric& operator=(const RdmaFabric&) = delete;

  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] const RdmaLinkOptions& link() const { return link_; }
  void set_link(const RdmaLinkOptions& link) { link_ = link; }  // for what begins from now on
  void cut(const std::string& address) { cuts_.insert(address); }
  void join(const std::string& address) { cuts_.erase(address); }
  void fail_device(const std::string& address);
  [[nodiscard]] const RdmaTotals& totals() const { return totals_; }

 private:
  friend class SimRdmaNet;
  [[nodiscard]] SimRdmaNet* net(uint64_t number) const;
  [[nodiscard]] bool joined(const SimRdmaNet& a, const SimRdmaNet& b) const;

  World& world_;
  RdmaLinkOptions link_;
  std::map<uint64_t, SimRdmaNet*> nets_;  // by number
  std::set<std::string> addresses_;       // that there ever were
  std::set<std::string> cuts_;
  uint64_t next_number_ = 1;
  rdma::PairId next_pair_ = 1;
  RdmaTotals totals_;
};

class SimRdmaNet final : public rdma::RdmaNet, public NodePart, public Actor {
 public:
  SimRdmaNet(RdmaFabric& fabric, NodeId node, std::string address, uint16_t port);
  ~SimRdmaNet() override;
  SimRdmaNet(const SimRdmaNet&) = delete;
  SimRdmaNet& operator=(const SimRdmaNet&) = delete;

  [[nodiscard]] std::string_view scheme() const override { return "sim-rdma"; }
  [[nodiscard]] std::string uri() const override;
  [[nodiscard]] uint32_t send_bytes_max() const override { return link_.send_bytes; }
  [[nodiscard]] uint32_t receives_max() const override { return link_.receives; }
  [[nodiscard]] uint32_t work_bytes_max() const override { return link_.work_bytes; }
  [[nodiscard]] uint32_t reads_max(rdma::PairId) const override { return link_.reads; }
  [[nodiscard]] Result<rdma::PairId> dial(std::string_view uri) override;
  void accept(rdma::PairId requested) override;
  void close(rdma::PairId pair) override;
  [[nodiscard]] bool post_send(rdma::PairId pair, std::span<const Bytes> parts) override;
  [[nodiscard]] bool post_read(rdma::PairId pair, const rdma::Work& work) override;
  [[nodiscard]] bool post_write(rdma::PairId pair, const rdma::Work& work) override;
  [[nodiscard]] uint32_t unsent(rdma::PairId pair) const override;
  [[nodiscard]] bool await(rdma::PairId pair, uint64_t tag, Duration limit) override;
  [[nodiscard]] bool flush(rdma::PairId pair, Duration limit) override;
  [[nodiscard]] Status register_memory(MutableBytes memory, rdma::Access access, rdma::Registration& registration) override;
  void deregister(uint64_t id) override;
  void poll(Instant now, rdma::RdmaEvents& events) override;
  void set_deadline(Instant at) override { deadline_ = at; }
  [[nodiscard]] int os_handle() const override { return -1; }

  // Of the world: the node crashed; a deadline that the transport set from outside a turn has passed.
  void on_crash() override;
  void turn(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override { return deadline_; }

 private:
  friend class RdmaFabric;
  enum class Kind : uint8_t { send, write, read };
  struct Request {  // a work request
    Kind kind = Kind::send;
    std::vector<std::byte> bytes;  // send
    rdma::Work work;               // write, read
    size_t moved_bytes = 0;
    Instant arrives{};
    bool started = false;
    bool done = false;
    rdma::WorkStatus status = rdma::WorkStatus::flushed;
  };
  enum class State : uint8_t { dialling, requested, open, broken };
  struct End {  // of a pair
    State state = State::dialling;
    uint64_t peer_net = 0;  // 0: not found yet
    rdma::PairId peer = 0;
    std::deque<std::shared_ptr<Request>> queue;  // until it is told
    std::deque<std::shared_ptr<Request>> wire;   // sends and writes under way, in order
    std::deque<std::shared_ptr<Request>> reads;  // under way, in order
    Instant way_free_at{};
    Instant silent_since = never;  // the peer's card does not answer
    uint32_t unsent = 0;
    bool full = false;  // it was said
  };
  struct Region {
    MutableBytes memory;
    rdma::Access access;
    uint32_t key = 0;
  };
  enum class Told : uint8_t { requested, connected, closed, received, completed, sendable, device_failed };
  struct Event {
    Told what = Told::sendable;
    rdma::PairId pair = 0;
    std::vector<std::byte> bytes{};
    uint64_t tag = 0;
    rdma::WorkStatus work = rdma::WorkStatus::success;
    Status status = Status::success;
    std::string text{};
  };
  [[nodiscard]] End* open_end(rdma::PairId pair);
  // The other end, if its card can be reached and knows the pair.
  [[nodiscard]] SimRdmaNet* other(const End& end, End*& peer);
  void later(Duration least, Duration most, rdma::PairId pair, void (SimRdmaNet::*what)(rdma::PairId));
  void at(Instant when, rdma::PairId pair, void (SimRdmaNet::*what)(rdma::PairId));
  void tell(Event event);
  void tell_now(Event event);
  void tell_one(rdma::RdmaEvents& events);
  void arrive(rdma::PairId dialled);
  void get_through(rdma::PairId dialled);
  void notify_peer(const End& end);
  [[nodiscard]] bool post(rdma::PairId pair, std::shared_ptr<Request> request);
  void start(rdma::PairId pair);
  void run_wire(rdma::PairId pair);
  void run_reads(rdma::PairId pair);
  // One step of the first of them. False: it has to wait, or the pair is broken.
  [[nodiscard]] bool step_wire(rdma::PairId pair, End& end);
  [[nodiscard]] bool step_read(rdma::PairId pair, End& end);
  [[nodiscard]] bool move(rdma::PairId pair, Request& request, SimRdmaNet& peer, size_t most);
  [[nodiscard]] bool answers(rdma::PairId pair, End& end, SimRdmaNet*& net, End*& peer);
  void finished(rdma::PairId pair);
  void retire(rdma::PairId pair);
  void end_in_error(rdma::PairId pair, Request& request, rdma::WorkStatus status, std::string reason);
  void disconnected(rdma::PairId pair);
  void break_pair(rdma::PairId pair, Status status, std::string reason);
  [[nodiscard]] Region* by_local_key(uint32_t key);
  [[nodiscard]] Region* by_remote_key(uint32_t key);
  void lose_device();

  RdmaFabric& fabric_;
  const RdmaLinkOptions link_;
  const NodeId node_;
  const std::string address_;
  const uint16_t port_;
  const uint64_t number_;
  std::map<rdma::PairId, End> ends_;
  std::map<uint64_t, Region> regions_;  // by id
  uint64_t next_region_ = 1;
  std::deque<Event> told_;  // what poll has to tell
  Instant last_told_at_{};
  uint32_t slots_used_ = 0;  // of the receive queue
  bool dead_ = false;
  Instant deadline_ = never;
};

}  // namespace ccixfer::sim
