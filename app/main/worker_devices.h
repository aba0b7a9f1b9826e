// The devices of a further worker of a router: their endpoints, which only dial, and the transports of theirs to which connections
// may move.
// In: the configuration, and what the router is to have. Out: the endpoints, to the router.
// Guarantees: a device is one of ours from when the router has its endpoint. Of a change that failed nothing is left.
// Ownership: the router has the endpoints and keeps them for as long as it lives.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/config/config.h"
#include "app/devices/node.h"
#include "routing/router/router.h"
#include "transports/stream/stream_transport.h"

namespace ccixfer::program {

// The settings of all devices in the order in which worker 0 has them: its names and URIs. The map numbers devices so, and a worker
// that missed a change, and gets several new ones at once, must number them so, too.
[[nodiscard]] std::vector<routing::RouterDevice> in_order_of(const std::vector<std::pair<std::string, std::string>>& worker_0,
                                                             std::vector<routing::RouterDevice> settings);

class WorkerDevices {
 public:
  using MakeNode = std::function<Result<Node>(const DeviceConfig& device)>;
  using Give = std::function<Result<void>(std::vector<routing::RouterDevice> devices)>;
  explicit WorkerDevices(MakeNode make_node) : make_node_(std::move(make_node)) {}

  // Makes an endpoint of each device that is not ours yet, and gives all to the router. Each has its part of `config`.
  // Errors: those of `make_node` and of `give`.
  [[nodiscard]] Result<void> change(const Config& config, std::vector<routing::RouterDevice> devices, const Give& give);

  [[nodiscard]] std::set<std::string> movable() const;  // the names of those to which connections may move
  // The last change succeeded. Else a connection may have to leave by a device that we lack.
  [[nodiscard]] bool is_current() const { return is_current_; }
  [[nodiscard]] stream::StreamTransport& mover(const std::string& device) const;  // of one of these

 private:
  const MakeNode make_node_;
  std::map<std::string, stream::StreamTransport*> movers_;  // of each device; nullptr: its connections do not move
  bool is_current_ = true;
};

}  // namespace ccixfer::program
