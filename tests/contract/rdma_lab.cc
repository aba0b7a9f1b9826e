#include "tests/contract/rdma_lab.h"

#include <fmt/format.h>

#include "tests/contract/sim_lab.h"
#include "transports/rdma/rdma_transport.h"

namespace ccixfer::contract {
namespace {

class RdmaLab final : public WorldLab {
 public:
  RdmaLab(uint64_t seed, bool secured) : WorldLab(seed), fabric_(world(), prompt_cards()), secured_(secured) {}
  ~RdmaLab() override { end_all(); }
  std::string dead_uri() override { return "sim-rdma://m1:999"; }
  [[nodiscard]] std::vector<std::string> violations() const override {
    std::vector<std::string> all = WorldLab::violations();
    for (std::string& refusal : refusals(fabric_)) all.push_back(std::move(refusal));
    return all;
  }

 private:
  [[nodiscard]] std::unique_ptr<ports::Transport> make_transport(sim::NodeId id, const std::string& name,
                                                                 const ports::TransportOptions& options, Node& node) override {
    return std::make_unique<rdma::RdmaTransport>(options, std::make_unique<sim::SimRdmaNet>(fabric_, id, name, uint16_t{1}),
                                                 *node.counters, lab_trust(secured_));
  }

  sim::RdmaFabric fabric_;
  const bool secured_;
};

}  // namespace

// Cards that let go of memory in time: what happens with others is no matter of CCI's (unit/rdma).
sim::RdmaLinkOptions prompt_cards() {
  sim::RdmaLinkOptions link;
  link.await_fails_chance = 0;
  return link;
}

std::vector<std::string> refusals(const sim::RdmaFabric& fabric) {
  if (fabric.totals().refused == 0) return {};
  return {fmt::format("a card refused {} accesses of a peer", fabric.totals().refused)};
}

std::unique_ptr<Lab> make_rdma_lab(uint64_t seed, bool secured) { return std::make_unique<RdmaLab>(seed, secured); }

}  // namespace ccixfer::contract
