// Datagrams through the simulated world: SimDatagramNet is the DatagramNet of one process on one network, DatagramFabric the
// network itself. Names are `sim-datagram://NODE:PORT`.
//
// What happens to a datagram, each drawn from the world's seed: it is lost, doubled, damaged (a bit flipped, bytes cut off or
// added), delayed, overtaken by later ones; it waits for its sender's way out, and is dropped when that queue, or the receiver's
// socket buffer, is full. A send may find the host's own buffers full (again, and later writable). A batch may be taken in part,
// one of it may be refused for good, and what came is told in batches of any length. Cuts: an address, or one direction between two
// (a half-open link). A crashed node's datagrams go nowhere. Nobody is told of any of it, as with UDP without ICMP. The nets of one
// address share its way out. A datagram to a group (multicast: `sim-datagram://group.NAME:PORT`) leaves its sender once, and
// what happens on the way happens to each member's copy by itself, so some members miss it. Ownership: the DatagramFabric outlives
// its nets; the World outlives the fabric.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "transports/datagram/datagram_net.h"
#include "transports/sim/world.h"

namespace ccixfer::sim {

struct DatagramLinkOptions {
  Duration delay_min = std::chrono::microseconds(50);  // one way
  Duration delay_max = std::chrono::microseconds(100);
  double loss_chance = 0;
  double duplicate_chance = 0;
  double corrupt_chance = 0;
  double reorder_chance = 0;  // that it takes up to reorder_delay_max longer
  Duration reorder_delay_max = std::chrono::milliseconds(1);
  uint64_t rate_bytes_per_s = 1'000'000'000;  // of each address's way out
  uint32_t queue_bytes = 1u << 20;            // that wait for the way out; more are dropped
  uint32_t receive_bytes = 1u << 20;          // that wait to be taken; more are dropped
  uint32_t datagram_bytes = 8192;
  uint32_t path_bytes = 0;  // a path that carries that much, which the nets do not know; longer ones are dropped. 0: all is carried
  double partial_chance = 0;  // that a call takes or tells only the first of its batch
  double fail_chance = 0;     // that a call refuses one of its batch
  double again_chance = 0;    // that a send finds the host's buffers full, for up to again_max
  Duration again_max = std::chrono::milliseconds(1);
};

struct DatagramTotals {
  uint64_t sent = 0, delivered = 0, lost = 0, dropped = 0, duplicated = 0, corrupted = 0, reordered = 0, cut = 0, refused = 0;
  uint64_t send_calls = 0, receive_calls = 0;  // each of one batch
};

class SimDatagramNet;

class DatagramFabric {
 public:
  explicit DatagramFabric(World& world, const DatagramLinkOptions& link = {}) : world_(world), link_(link) {}
  DatagramFabric(const DatagramFabric&) = delete;
  DatagramFabric& operator=(const DatagramFabric&) = delete;

  [[nodiscard]] World& world() { return world_; }
  void set_link(const DatagramLinkOptions& link) { link_ = link; }  // for datagrams from now on
  // Somebody stands between all nets: `change` is shown each datagram that leaves, by the address that sends it, and may change it;
  // false: it goes nowhere. nullptr: nobody.
  void stand_between(std::function<bool(const std::string& from, std::vector<std::byte>& bytes)> change) {
    change_ = std::move(change);
  }
  void cut(const std::string& address) { cuts_.insert(address); }
  void join(const std::string& address) { cuts_.erase(address); }
  void cut_way(const std::string& from, const std::string& to) { ways_cut_.insert({from, to}); }
  void join_way(const std::string& from, const std::string& to) { ways_cut_.erase({from, to}); }
  // Somebody sends in another's name.
  void forge(const datagram::Address& from, const datagram::Address& to, Bytes bytes) {
    fly(from, {to}, {bytes.begin(), bytes.end()}, world_.now());
  }
  [[nodiscard]] const DatagramTotals& totals() const { return totals_; }

 private:
  friend class SimDatagramNet;
  struct Place {
    std::string address;
    NodeId node = 0;
    Instant way_out_free_at{};
  };
  void send(const datagram::Address& from, const datagram::Address& to, Bytes bytes);
  // Where a datagram goes: a net, or one member of a group there.
  struct Target {
    datagram::Address net;
    datagram::Address group{};  // none: the net itself
    uint32_t member = 0;
  };
  struct Member {
    SimDatagramNet* net = nullptr;
    uint32_t number = 0;
  };
  void fly(const datagram::Address& from, const Target& to, std::vector<std::byte> bytes, Instant leaves);
  void travel(const datagram::Address& from, const Target& to, Bytes bytes, Instant leaves);
  void arrive(const datagram::Address& from, const Target& to, std::vector<std::byte> bytes);
  [[nodiscard]] SimDatagramNet* who_receives(const Target& to) const;
  [[nodiscard]] datagram::Address group_of(const std::string& name, uint16_t port);
  void damage(std::vector<std::byte>& bytes);
  [[nodiscard]] bool is_cut(uint64_t from, uint64_t to) const;
  [[nodiscard]] uint64_t place_of(const std::string& address, NodeId node);

  World& world_;
  DatagramLinkOptions link_;
  std::vector<Place> places_;                                 // Address::low is an index of it, plus one
  std::map<datagram::Address, SimDatagramNet*> nets_;         // who listens where
  std::vector<std::string> group_names_;                      // Address::low is an index of it, plus one; Address::high is 1
  std::map<datagram::Address, std::vector<Member>> members_;  // of each group, in the order in which they joined
  std::function<bool(const std::string&, std::vector<std::byte>&)> change_;
  std::set<std::string> cuts_;
  std::set<std::pair<std::string, std::string>> ways_cut_;
  std::map<std::pair<uint64_t, uint64_t>, Instant> last_arrival_;  // of those that keep their order, by way
  DatagramTotals totals_;
};

class SimDatagramNet final : public datagram::DatagramNet, public NodePart, public Actor {
 public:
  SimDatagramNet(DatagramFabric& fabric, NodeId node, std::string address, uint16_t port);
  ~SimDatagramNet() override;
  SimDatagramNet(const SimDatagramNet&) = delete;
  SimDatagramNet& operator=(const SimDatagramNet&) = delete;

  [[nodiscard]] std::string_view scheme() const override { return "sim-datagram"; }
  [[nodiscard]] std::string uri() const override;
  [[nodiscard]] uint32_t datagram_bytes_max() const override { return fabric_.link_.datagram_bytes; }
  [[nodiscard]] bool knows_path(const datagram::Address& /*peer*/) const override { return fabric_.link_.path_bytes == 0; }
  [[nodiscard]] Result<uint64_t> resolve(std::string_view uri) override;
  [[nodiscard]] std::string host_of(const datagram::Address& address) const override;
  [[nodiscard]] datagram::Sent send(std::span<const datagram::Datagram> batch) override;
  void send_last(std::span<const datagram::Datagram> batch) override;
  [[nodiscard]] bool has_groups() const override { return true; }
  [[nodiscard]] Result<datagram::Group> group(std::string_view uri) override;
  [[nodiscard]] Result<datagram::Group> join_group(std::string_view uri, uint32_t member) override;
  void leave_group(uint32_t member) override;
  void poll(Instant now, datagram::DatagramEvents& events) override;
  void set_deadline(Instant at) override { deadline_ = at; }
  [[nodiscard]] int os_handle() const override { return -1; }

  // A NAT forgot this process, or it is in another network: what leaves comes from there from now on, and what is on its way to
  // where it was is lost. Nobody tells it, and uri() is what it was.
  void appear_as(const std::string& address, uint16_t port);
  [[nodiscard]] const datagram::Address& address() const { return address_; }

  // Of the world: the node crashed; a deadline that the transport set from outside a turn has passed.
  void on_crash() override;
  void turn(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override { return deadline_; }

 private:
  friend class DatagramFabric;
  struct Kept {  // one that came, or waits to leave
    datagram::Address peer;
    std::vector<std::byte> bytes;
    std::optional<uint32_t> member = std::nullopt;  // of the group to which it came
  };
  struct Answer {
    uint64_t query = 0;
    datagram::Address address;
    bool found = false;
  };
  void fill_up();
  void tell_arrived(datagram::DatagramEvents& events, size_t count);

  DatagramFabric& fabric_;
  const NodeId node_;
  const std::string name_;
  datagram::Address address_;
  std::deque<Kept> inbox_;
  size_t inbox_bytes_ = 0;
  std::deque<Answer> answers_;
  uint64_t queries_ = 0;
  bool full_ = false;      // the host's buffers: sends say again
  bool writable_ = false;  // that changed, and is not told yet
  bool dead_ = false;
  Instant deadline_ = never;
  Instant room_at_{};  // when that ends
};

}  // namespace ccixfer::sim
