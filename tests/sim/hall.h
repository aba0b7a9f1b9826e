// A receiver and many who dial it, each on a node of its own, in one simulated network: what sessions beside and after one another
// do to each other. Faults are the test's own.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/simulate/site.h"
#include "app/simulate/tree.h"

namespace ccixfer::testing {

class Hall {
 public:
  struct Guest {
    std::unique_ptr<simulate::Site> site;
    std::unique_ptr<simulate::Dialler> dialler;
    sim::Tree tree;  // what it sends
    std::string path;
    Duration ended_at{0};
    bool waited = false;  // in the receiver's queue
  };

  explicit Hall(uint64_t seed, uint32_t receiver_buffers = 63, const sim::LinkOptions& link = {},
                const sim::WorldOptions& nodes = {});
  ~Hall();
  Hall(const Hall&) = delete;
  Hall& operator=(const Hall&) = delete;

  void listen(const simulate::ListenPlan& plan = {false, "/dst"});
  Guest& add_guest(const std::function<void(sim::SimFileSystem& files, size_t index)>& fill);
  // Sends its /src to /dst/gN.
  void start(Guest& guest, Duration timeout = std::chrono::seconds(120), std::optional<uint32_t> retries = std::nullopt);
  void start(Guest& guest, simulate::DialPlan dial);  // the rest of it: where from and where to
  void rest(Duration time);                           // the clock goes on also when nothing is to happen
  void crash_receiver();                              // at once; from an event of the world
  void restart_receiver();
  // false: not within `longest`.
  bool run_until(const std::function<bool()>& done, Duration longest);
  bool run_to_the_end(Duration longest);                        // of all that were started
  [[nodiscard]] std::string missing(const Guest& guest) const;  // "": its tree is there, as it is

  sim::World world;
  sim::Fabric fabric;
  simulate::Site receiver;
  std::unique_ptr<simulate::Listener> listener;
  std::vector<std::unique_ptr<Guest>> guests;
  simulate::ListenPlan plan;
};

}  // namespace ccixfer::testing
