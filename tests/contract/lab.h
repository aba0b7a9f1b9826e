// The contract suite runs every case against every transport: a Lab makes endpoints that can reach one another, lets time pass and
// turns them. To add a transport: another Lab and its name in lab_names().
#pragma once
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/counters.h"
#include "core/cci/endpoint.h"
#include "core/ports/entropy.h"
#include "transports/connection/hop_trust.h"

// Catch has a CHECK of its own; these tests use REQUIRE alone.
#include <catch2/catch.hpp>

namespace ccixfer::contract {

using cci::Connection;
using cci::Endpoint;
using cci::Event;
using cci::EventType;
using ports::Attribute;
using ports::Handle;

class SeededEntropy final : public ports::Entropy {
 public:
  explicit SeededEntropy(uint64_t seed) : state_(seed) {}
  uint64_t next_u64() override;

 private:
  uint64_t state_;
};

struct NodeOptions {
  ports::TransportOptions transport;
  cci::EndpointOptions endpoint;
};

struct Node {
  std::unique_ptr<Counters> counters = std::make_unique<Counters>();
  std::unique_ptr<SeededEntropy> entropy;
  std::shared_ptr<cci::MemoryTable> memory;
  std::unique_ptr<Endpoint> endpoint;
  bool frozen = false;   // not turned: a process that was stopped
  bool collects = true;  // takes its events after each turn; an application that does not makes buffers run out
  std::deque<Event> events;

  void collect();
  // The oldest event of that type, taken out.
  std::optional<Event> take(EventType type);
  [[nodiscard]] size_t count(EventType type) const;
  [[nodiscard]] bool has(EventType type) const { return count(type) > 0; }
};

class Lab {
 public:
  virtual ~Lab() = default;
  virtual Node& add(const NodeOptions& options = {}) = 0;
  // Turns the nodes until `done` holds; false: it did not within `limit` of the lab's time. `done` may issue operations.
  virtual bool run(const std::function<bool()>& done, Duration limit = std::chrono::seconds(20)) = 0;
  // Time passes, the nodes are turned.
  virtual void pass(Duration duration) = 0;
  // A URI at which nobody listens.
  [[nodiscard]] virtual std::string dead_uri() = 0;
  // Names of groups (multicast), a different one for each number. "": the transport of this lab has none.
  [[nodiscard]] virtual std::string group(uint32_t /*number*/) { return {}; }
  // Connections cross a router, whose bounds are its own.
  [[nodiscard]] virtual bool routed() const { return false; }
  // Unreliable messages get lost.
  [[nodiscard]] virtual bool lossy() const { return false; }
  [[nodiscard]] virtual size_t hops() const { return 1; }  // of every connection
  // What was done to a simulated card that no program may do: there must be none.
  [[nodiscard]] virtual std::vector<std::string> violations() const { return {}; }
};

// Fails the case at its end if there was a violation.
class ViolationWatch {
 public:
  explicit ViolationWatch(const Lab& lab) : lab_(lab) {}
  ~ViolationWatch();
  ViolationWatch(const ViolationWatch&) = delete;
  ViolationWatch& operator=(const ViolationWatch&) = delete;

 private:
  const Lab& lab_;
};

// What the transports of a lab whose ends prove who they are are made with; nullptr for others.
[[nodiscard]] std::shared_ptr<connection::HopTrust> lab_trust(bool secured);

// CCIXFER_LABS chooses some of them: "native" (but for sockets), "sockets", "routed", or names ("udp,routed-udp"). One empty name
// where it chooses none.
[[nodiscard]] std::vector<std::string> lab_names(bool routed = true);
[[nodiscard]] std::unique_ptr<Lab> make_lab(const std::string& name);

// A connection with both its ends.
struct Pair {
  Node& dialler;
  Node& acceptor;
  Connection at_dialler;
  Connection at_acceptor;
};
[[nodiscard]] Pair connect(Lab& lab, Node& dialler, Node& acceptor, const cci::ConnectOptions& options = {});

// The send event with this context, at `node`: how it ended, and its status alone.
[[nodiscard]] ports::OperationResult wait_ending(Lab& lab, Node& node, uint64_t context);
[[nodiscard]] Status wait_send(Lab& lab, Node& node, uint64_t context);
[[nodiscard]] std::optional<Event> wait_event(Lab& lab, Node& node, EventType type);

// Its OS handle becomes readable within this time: there is something to do.
[[nodiscard]] bool readable(const Node& node, int timeout_ms);

[[nodiscard]] std::vector<std::byte> pattern(size_t size, uint32_t seed);

// A number as a message, as long as the number lives; and the number of a message that came.
[[nodiscard]] inline Bytes bytes_of(const uint32_t& value) { return {reinterpret_cast<const std::byte*>(&value), sizeof value}; }
[[nodiscard]] uint32_t number_of(const Event& event);

}  // namespace ccixfer::contract

// Every case starts with one of these: `lab` is a lab of each kind in turn. The native labs only: what routed connections bound or
// do otherwise; each such case says why.
#define EVERY_LAB(lab) CCIXFER_LABS(lab, true)
#define EVERY_NATIVE_LAB(lab) CCIXFER_LABS(lab, false)
#define CCIXFER_LABS(lab, routed)                                                                        \
  const std::string lab_name = GENERATE(from_range(::ccixfer::contract::lab_names(routed)));             \
  if (lab_name.empty()) return;                                                                          \
  CAPTURE(lab_name);                                                                                     \
  const std::unique_ptr<::ccixfer::contract::Lab> lab##_owner = ::ccixfer::contract::make_lab(lab_name); \
  const ::ccixfer::contract::ViolationWatch lab##_watch(*lab##_owner);                                   \
  ::ccixfer::contract::Lab& lab = *lab##_owner
