// Several sources and several destinations at once: each source has its own tree and disk, sends several SRC of it to one or more
// receivers by a command each, beside the others or into the same directory as another one. Nodes crash and streams are reset.
#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/simulate/tree.h"
#include "tests/sim/two_sides.h"

namespace ccixfer::testing {

struct CrowdOptions {
  size_t sources = 3, destinations = 2;
  double both_chance = 0.3;   // that a source sends to one more destination
  double rival_chance = 0.2;  // that a source sends to where another one does
  bool router = false;        // between the sources and the destinations
  unsigned crashes = 0, resets = 0;
  Duration faults_within = std::chrono::seconds(2);
  sim::LinkOptions link;
  simulate::TreeOptions tree;
  sim::FileSystemOptions disk;
  uint16_t lanes = 2;
};

struct CrowdResult {
  std::string violation;  // the first; empty: none
  unsigned commands = 0, rivals = 0, failed_at_first = 0, faults = 0;
  uint64_t events = 0;
};

class Crowd {
 public:
  Crowd(uint64_t seed, const CrowdOptions& options);
  ~Crowd();
  CrowdResult run();

 private:
  struct Source {
    std::unique_ptr<simulate::Site> site;
    sim::Tree arrives;  // what a directory that it sends to has of it
  };
  struct Destination {
    std::unique_ptr<simulate::Site> site;
    std::unique_ptr<simulate::Listener> listener;
    Allowed allowed;
  };
  struct Command {
    size_t source, destination;
    std::string path;
    bool is_rival = false;
    std::unique_ptr<simulate::Dialler> dialler;
    std::optional<Error> result;
  };

  void build();
  void add_source(size_t index);
  void add_commands(size_t source);
  void start(Command& command);
  void listen(Destination& destination);
  void crash_source(size_t index);
  void crash_destination(size_t index);
  void plan_faults();
  bool run_commands();
  void judge();
  void check_names(const Destination& destination, const char* when);
  void violated(const std::string& what);

  const CrowdOptions options_;
  TwoSides sides_;
  sim::World& world_ = sides_.world;
  sim::Random& random_ = sides_.random;
  std::vector<Source> sources_;
  std::vector<Destination> destinations_;
  std::vector<Command> commands_;
  std::string violation_;
  unsigned faults_ = 0;
  bool over_ = false;
};

}  // namespace ccixfer::testing
