#include "tests/contract/datagram_lab.h"

#include <fmt/core.h>

#include "tests/contract/sim_lab.h"
#include "transports/datagram/datagram_transport.h"

namespace ccixfer::contract {
namespace {

class DatagramLab final : public WorldLab {
 public:
  // The even seeds have the other congestion control.
  DatagramLab(uint64_t seed, bool secured)
      : WorldLab(seed),
        fabric_(world(), mild_link()),
        congestion_(seed % 2 == 0 ? reliability::Congestion::bbr : reliability::Congestion::new_reno),
        secured_(secured) {}
  ~DatagramLab() override { end_all(); }
  std::string dead_uri() override { return "sim-datagram://m1:999"; }
  bool lossy() const override { return true; }
  std::string group(uint32_t number) override { return secured_ ? "" : fmt::format("sim-datagram://group.{}:7", number); }

 private:
  [[nodiscard]] std::unique_ptr<ports::Transport> make_transport(sim::NodeId id, const std::string& name,
                                                                 const ports::TransportOptions& options, Node& node) override {
    return std::make_unique<datagram::DatagramTransport>(datagram::DatagramOptions{options, congestion_},
                                                         std::make_unique<sim::SimDatagramNet>(fabric_, id, name, uint16_t{1}),
                                                         *node.entropy, *node.counters, lab_trust(secured_));
  }

  sim::DatagramFabric fabric_;
  const reliability::Congestion congestion_;
  const bool secured_;
};

}  // namespace

sim::DatagramLinkOptions mild_link() {
  sim::DatagramLinkOptions link;
  link.loss_chance = 0.01;
  link.duplicate_chance = 0.01;
  link.corrupt_chance = 0.005;
  link.reorder_chance = 0.02;
  link.partial_chance = 0.1;
  link.fail_chance = 0.005;
  return link;
}

std::unique_ptr<Lab> make_datagram_lab(uint64_t seed, bool secured) { return std::make_unique<DatagramLab>(seed, secured); }

}  // namespace ccixfer::contract
