// A transfer S -> D through a simulated world, with faults drawn from the seed, and the checks of the invariants while it runs.
#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/site.h"
#include "tests/sim/tree.h"

namespace ccixfer::testing {

struct SwarmOptions {
  sim::LinkOptions link;
  TreeOptions tree;
  sim::FileSystemOptions disk;
  bool older_files = false;  // the destination has older versions
  unsigned receiver_crashes = 0;
  unsigned sender_crashes = 0;  // the command is run again
  unsigned routers = 0;         // in a row between S and D
  bool parallel = false;        // each of them twice
  unsigned router_crashes = 0;
  uint32_t fragment_bytes = 64u << 10;  // of the routers
  unsigned resets = 0;                  // of all streams of a node
  unsigned cuts = 0;                    // of the receiver's address, for a while
  Duration faults_within = std::chrono::seconds(3);
  Duration link_calms_after = std::chrono::seconds(20);  // resets by chance end
  uint16_t lanes = 2;
  bool attributes = true;
};

struct SwarmResult {
  Error result;
  std::string violation;  // the first broken invariant; empty: none
  uint64_t trace_hash = 0;
  uint64_t events = 0;
  Duration took{0};  // virtual
  uint64_t bytes_sent = 0;
  unsigned faults = 0;  // that happened before the end
};

class Swarm {
 public:
  Swarm(uint64_t seed, const SwarmOptions& options);
  ~Swarm();
  SwarmResult run();

 private:
  void build();
  void plan_faults();
  void build_routers();
  void crash_router(size_t index);
  void crash_receiver();
  void start_receiver();
  void crash_sender();
  void start_sender();
  void watch(std::string_view call, const std::string& path);
  void check_names(const char* when);
  void violated(const std::string& what);

  const SwarmOptions options_;
  sim::World world_;
  sim::Random random_;  // the swarm's own draws
  sim::Fabric fabric_;
  std::unique_ptr<Site> source_, destination_;
  struct RouterSite {
    std::unique_ptr<Site> site;
    RouterPlan plan;
    std::unique_ptr<RouterProcess> process;
  };
  std::vector<RouterSite> routers_;
  std::unique_ptr<Receiver> receiver_;
  std::unique_ptr<Sender> sender_;
  sim::Tree wanted_;
  std::map<std::string, std::set<std::string>> allowed_;  // content of each final name: the old, the new
  std::string violation_;
  uint64_t bytes_sent_ = 0;
  unsigned faults_ = 0;
  std::string receiver_uri_;
  bool receiver_done_ = false;
};

}  // namespace ccixfer::testing
