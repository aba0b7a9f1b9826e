// A scenario of `ccixfer sim`: refused with one line that names the file, or a world within its bounds, of defined names.
#include <algorithm>

#include "app/simulate/scenario.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto scenario = simulate::parse_scenario("file.toml", std::string(as_text(fuzz::bytes_of(data, size))));
  if (!scenario) {
    const std::string& words = scenario.error().message;
    fuzz::must(scenario.error().kind == ErrorKind::usage && words.starts_with("file.toml:"));
    for (const char c : words) fuzz::must(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
    return 0;
  }
  const auto is_link = [&](const std::string& name) {
    return std::any_of(scenario->links.begin(), scenario->links.end(), [&](const auto& link) { return link.name == name; });
  };
  const auto is_host = [&](const std::string& name) {
    return std::any_of(scenario->nodes.begin(), scenario->nodes.end(),
                       [&](const auto& node) { return node.name == name && !node.is_router; });
  };
  fuzz::must(scenario->links.size() + scenario->nodes.size() <= 2 * simulate::scenario_places_max);
  fuzz::must(scenario->transfers.size() <= simulate::scenario_transfers_max);
  fuzz::must(scenario->faults.size() <= simulate::scenario_faults_max);
  for (const auto& link : scenario->links) {
    const sim::LinkOptions& options = link.options;
    fuzz::must(Duration::zero() <= options.delay_min && options.delay_min <= options.delay_max);
    fuzz::must(options.dial_failure_chance >= 0 && options.dial_failure_chance <= 1);
  }
  for (const auto& node : scenario->nodes) {
    fuzz::must(!node.links.empty() && std::all_of(node.links.begin(), node.links.end(), is_link));
  }
  for (const auto& transfer : scenario->transfers) fuzz::must(is_host(transfer.from) && is_host(transfer.to));
  for (const auto& fault : scenario->faults) {
    fuzz::must(fault.at >= Duration::zero() && (fault.link.empty() || is_link(fault.link)));
  }
  return 0;
}
