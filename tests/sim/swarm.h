// A transfer S -> D through a simulated world, with faults drawn from the seed, and the checks of the invariants while it runs.
#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/simulate/site.h"
#include "app/simulate/tree.h"
#include "tests/sim/heap.h"

namespace ccixfer::testing {

using simulate::Dialler;
using simulate::DialPlan;
using simulate::Listener;
using simulate::ListenPlan;
using simulate::RouterPlan;
using simulate::RouterProcess;
using simulate::Routing;
using simulate::Site;
using simulate::TreeOptions;

inline const std::string source_root = "/src";
inline const std::string destination_root = "/dst";

struct SwarmOptions {
  sim::LinkOptions link;
  TreeOptions tree;
  sim::FileSystemOptions disk;
  bool older_files = false;          // the destination has older versions
  bool pull = false;                 // the destination dials
  unsigned destination_crashes = 0;  // a dialling one: the command is run again
  unsigned source_crashes = 0;
  // The destination crashes, once, before that call of its disk (counted from its start): the calls before are a prefix of what it
  // does.
  std::optional<uint64_t> destination_crash_at_call{};
  double slow_chance = 0;        // per job at either side: one call of the disk takes up to five minutes
  double disk_error_chance = 0;  // per call on the destination's disk
  double sync_error_chance = 0;  // per fsync and syncfs of the destination's disk: what was not on the disk is lost
  unsigned sync_errors_max = 1000;
  double close_error_chance = 0;        // per close of a file there, with the same effect
  bool ledger_syncs_fail = false;       // too
  Duration job_max = Duration(0);       // that a job of the destination's disk takes; 0: as ever
  Duration read_job_max = Duration(0);  // the same of the source's
  bool verify = false;                  // --verify
  bool second_disk = false;             // a file system of its own at one of the destination's directories
  uint64_t capacity_bytes = 0;          // of the destination's disk; 0: enough
  double read_error_chance = 0;         // per call on the source's disk
  double denied_chance = 0;             // of a file of the source: nobody may open it
  double refused_chance = 0;            // per call on the destination's disk that makes or changes a name or a mode: not permitted
  bool rival = false;                   // a second sender of the same names, with other content; push only
  unsigned changes = 0;                 // of source files, during the transfer
  unsigned routers = 0;                 // in a row between S and D
  bool parallel = false;                // each of them twice
  unsigned router_crashes = 0;
  unsigned router_stops = 0;                  // planned: SIGTERM, and a new process a while later
  unsigned router_hangs = 0;                  // as by SIGSTOP, for up to a minute
  unsigned router_cuts = 0;                   // of one of its two networks, for good
  std::optional<sim::LinkOptions> last_link;  // of the network of the destination
  uint32_t fragment_bytes = 64u << 10;        // of the routers
  unsigned resets = 0;                        // of all streams of a node
  unsigned cuts = 0;                          // of the receiver's address, for a while
  std::optional<recv::Asked> lie;             // pull: to the server something else was said
  unsigned administrator_acts = 0;  // on directories of the destination: moved, removed, replaced, and the root and its staging
  Duration faults_within = std::chrono::seconds(3);
  Duration link_calms_after = std::chrono::seconds(20);  // resets by chance end
  uint16_t lanes = 2;
  Duration timeout = std::chrono::seconds(300);  // of the command: without progress
  bool attributes = true;
  bool sealed = false;  // encrypted from end to end
};

struct SwarmResult {
  Error result;         // of the first run that was not cut off by a crash
  Error second_result;  // of a run after what failed it was mended; ok when none was needed
  Error rival_result{ErrorKind::ok, ""};
  std::string violation;  // the first broken invariant; empty: none
  uint64_t trace_hash = 0;
  uint64_t events = 0;
  Duration took{0};  // virtual
  uint64_t bytes_sent = 0;
  unsigned faults = 0;  // that happened before the end
  uint64_t corruptions = 0;
  uint64_t segments_resent = 0;
  bool raced = false;                      // the administrator acted after the last sync: nothing can be promised
  std::vector<uint64_t> lanes_of_routers;  // connections that each forwarded
  bool resumed = false;                    // I4 was checked, and there was something durable before
  size_t heap_bytes = 0;                   // the most that all processes had at one time, see look_at_heap
};

class Swarm {
 public:
  Swarm(uint64_t seed, const SwarmOptions& options);
  ~Swarm();
  SwarmResult run();

 private:
  struct RouterSite {
    std::unique_ptr<Site> site;
    RouterPlan plan;
    std::unique_ptr<RouterProcess> process;
  };

  void build();
  void build_routers();
  void build_rival();
  void mount_second_disk();
  void break_disks();
  [[nodiscard]] int sync_error(std::string_view call, std::string_view name);
  void deny_files();
  void mend();
  void plan_faults();
  void start_listener();
  void start_dialler();
  void start_rival();
  void crash(Site& site);
  void crash_router(size_t index);
  void stop_router(size_t index);
  void cut_router(size_t index, bool whole, Duration time);
  [[nodiscard]] const sim::LinkOptions& link_of(unsigned network) const;
  void change_a_file();
  // swarm_administrator.cc
  void plan_administrator();
  void act_as_administrator();
  [[nodiscard]] std::string some_directory();
  [[nodiscard]] bool administrator_raced() const { return acted_at_call_ >= last_sync_call_ && acted_at_call_ > 0; }
  [[nodiscard]] bool may_be_elsewhere(const std::string& path) const;
  sim::RunEnd run_transfer();
  void judge_end(const Error& result);
  [[nodiscard]] sim::Tree as_it_may_be() const;
  [[nodiscard]] bool may_have_forgotten() const;
  void judge_resends();
  void judge_denials(const Error& result);
  void judge_rivals(const Error& result);
  void judge_leaks();
  void count_older();
  void judge_tally(const Error& result);
  void watch_tally();
  void look_at_heap();
  [[nodiscard]] size_t disks_bytes() const;
  [[nodiscard]] program::Tally received() const;
  void power_cut();
  void count_sent();
  [[nodiscard]] Site& listening() { return options_.pull ? *source_ : *destination_; }
  [[nodiscard]] Site& dialling() { return options_.pull ? *destination_ : *source_; }

  void look_at_source();
  void watch(std::string_view call, const std::string& path);
  void check_names(const char* when);
  void violated(const std::string& what);

  const SwarmOptions options_;
  sim::World world_;
  sim::Random random_;  // the swarm's own draws
  sim::Fabric fabric_;
  std::unique_ptr<Site> source_, destination_, rival_;
  std::vector<RouterSite> routers_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Dialler> dialler_, rival_dialler_;
  std::string listener_uri_;
  sim::Tree wanted_;                                      // the source as it is
  std::map<std::string, std::set<std::string>> allowed_;  // content of each final name: the old one, or any that the source had
  std::string violation_;
  std::set<std::string> denied_;    // paths of the source that nobody may open
  std::set<std::string> put_back_;  // files that were changed and given their old time
  const Instant began_ = world_.now();
  uint64_t bytes_sent_ = 0;
  uint64_t segments_resent_ = 0;
  uint64_t durable_before_ = 0;  // bytes that the destination's processes before its last crash made durable
  unsigned faults_ = 0;
  unsigned sync_errors_ = 0;
  bool disks_broken_ = false;
  bool dialler_crashed_ = false;  // then a new process counts, and knows nothing of the one before
  uint64_t older_unchanged_ = 0;  // files that are at the destination already
  bool over_ = false;             // nothing restarts any more
  // Calls of the destination's disk; and the event in the middle of which the administrator acted: what that one job does then
  // may go anywhere.
  uint64_t acted_at_call_ = 0, last_sync_call_ = 0, act_at_call_ = ~uint64_t{0};
  uint64_t acted_in_event_ = ~uint64_t{0};
  unsigned acts_ = 0;
  std::set<std::string> moved_staging_;
  std::optional<HeapWatch> heap_;
  size_t disks_before_bytes_ = 0;
};

}  // namespace ccixfer::testing
