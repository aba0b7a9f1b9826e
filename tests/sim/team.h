// A team under faults: several nodes see the same tree, as one does on a parallel file system, and a process on each of them sends
// a part of it (--part) to one receiver, through a router or not. Nodes crash, processes are interrupted, streams are reset, the
// receiver dies, and files change while they are sent. Here are the worlds; what must hold in them is in judge().
#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/simulate/tree.h"
#include "tests/sim/mounted_disk.h"
#include "tests/sim/two_sides.h"

namespace ccixfer::testing {

struct TeamOptions {
  uint16_t members = 3;
  uint16_t seconds = 0;  // receivers that share the root of the first: the members have one of all of them in turn
  bool router = false;   // between the members and the receivers
  unsigned crashes = 0, receiver_crashes = 0, interrupts = 0, resets = 0, changes = 0;
  double returns_chance = 0.5;  // that a member whose node crashed is started again
  Duration faults_within = std::chrono::seconds(2);
  Duration starts_within = std::chrono::milliseconds(500);
  sim::LinkOptions link;
  simulate::TreeOptions tree;
  unsigned more_large = 0;  // files of two pieces, besides the tree
  recv::TeamLimits limits;
  uint16_t lanes = 2;
  sim::WorkPoolOptions receiver_work;  // how long its disk takes
  unsigned second_crashes = 0;         // of second receivers
  sim::WorkPoolOptions second_work;    // how long the disk takes there
};

struct TeamResult {
  std::string violation;  // the first; empty: none
  unsigned faults = 0, again = 0;
  unsigned senders = 0;     // processes that sent content
  uint64_t bytes = 0;       // of the tree's files
  uint64_t bytes_sent = 0;  // by all processes
  uint64_t bytes_to_seconds = 0;
  Duration took{};  // from the first start to the last end
  uint64_t events = 0;
};

class TeamWorld {
 public:
  TeamWorld(uint64_t seed, const TeamOptions& options);
  ~TeamWorld();
  TeamResult run();

 private:
  struct Member {
    std::unique_ptr<simulate::Site> site;
    std::unique_ptr<simulate::Dialler> dialler;
    std::optional<Error> result;  // of its last run
    bool is_gone = false;         // its node crashed, and nobody starts it again
    uint64_t bytes_sent = 0;      // of the runs before
    uint64_t bytes_to_second = 0;
  };
  struct Second {
    std::unique_ptr<MountedDisk> disk;
    std::unique_ptr<simulate::Site> site;
    std::unique_ptr<simulate::Listener> receiver;
    std::string uri;
  };

  void build();
  void add_member(uint16_t number, uint64_t tree_seed);
  void listen();
  void add_second(uint16_t number);
  void listen(Second& second);
  void crash_second(size_t index);
  void check_write(int fd);
  void start(size_t index);
  void take_end(Member& member);
  void plan_faults();
  void crash_member(size_t index);
  void crash_receiver();
  void interrupt(size_t index);
  void change_a_file();
  bool run_members();
  void check_names(const char* when);
  void judge();
  void violated(const std::string& what);
  [[nodiscard]] bool is_quiet() const;  // nothing went wrong that a member's end may be blamed on

  const TeamOptions options_;
  TwoSides sides_;
  sim::World& world_ = sides_.world;
  sim::Random& random_ = sides_.random;
  std::unique_ptr<simulate::Site> receiver_site_;
  std::unique_ptr<simulate::Listener> receiver_;
  std::string uri_;
  std::vector<Second> seconds_;
  std::vector<Member> members_;
  Allowed allowed_;
  std::string violation_;
  unsigned faults_ = 0, changes_ = 0;
  bool over_ = false;
};

}  // namespace ccixfer::testing
