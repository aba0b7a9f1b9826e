// Where the worlds of several senders are: those who send stand on one side, those who receive on the other, with a router between
// them or not, and each of them may crash. What all these worlds have alike is here.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "app/simulate/site.h"
#include "transports/sim/sim_net.h"
#include "transports/sim/world.h"

namespace ccixfer::testing {

inline constexpr Duration down_max = std::chrono::seconds(2);        // of a node that crashed and comes back
inline constexpr Duration mended_within = std::chrono::seconds(60);  // a killed sender's session is given up by then

using Allowed = std::map<std::string, std::set<std::string>>;  // contents that a file may have, by path

struct TwoSides {
  TwoSides(uint64_t seed, const sim::WorldOptions& options, const sim::LinkOptions& link, bool has_router);

  [[nodiscard]] std::unique_ptr<simulate::Site> source(size_t number);
  [[nodiscard]] std::unique_ptr<simulate::Site> destination(size_t number, const sim::FileSystemOptions& disk = {});
  // At a time of chance, of which a quarter of `within` is the mean.
  void sometime(Duration within, std::function<void()> action);
  // Streams are no more reset by chance after 20 s: then everything must come to a good end.
  void plan_mending(const sim::LinkOptions& link);
  // "": `ended` holds. Else what is wrong; `whoever`: who has not ended.
  [[nodiscard]] std::string run(const std::function<bool()>& ended, const std::string& whoever);

  sim::World world;
  sim::Random random;
  sim::Fabric fabric;

 private:
  [[nodiscard]] std::unique_ptr<simulate::Site> site(const char* kind, uint32_t side, size_t number,
                                                     const sim::FileSystemOptions& disk);

  std::unique_ptr<simulate::Site> router_site_;  // none: there is one network
  std::unique_ptr<simulate::RouterProcess> router_;
};

// As `ccixfer send -a` makes it.
[[nodiscard]] simulate::DialPlan archive_plan(const std::string& uri, const std::string& path, uint16_t lanes);

// "": every regular file there has a content that it may have.
[[nodiscard]] std::string foreign_content(const sim::Tree& tree, const Allowed& allowed);

}  // namespace ccixfer::testing
