#include "app/simulate/scenario.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <toml.hpp>

#include "app/config/toml_reader.h"
#include "app/session/limits.h"
#include "core/base/check.h"
#include "core/base/units.h"

namespace ccixfer::simulate {
namespace {

using Value = program::TomlValue;

class Reader : program::TomlReader {
 public:
  Reader(const std::string& file, Scenario& out) : TomlReader(file), out_(out) {}

  void read(const Value& top) {
    for (const auto& [key, value] : top.as_table()) {
      if (key == "seed") {
        out_.seed = whole(key, value, 0, INT64_MAX);
      } else if (key == "time_max") {
        out_.time_max = duration(key, value);
      } else if (key == "events_max") {
        out_.events_max = whole(key, value, 1, INT64_MAX);
      } else if (key == "link") {
        for (const auto& [name, link] : table(key, value)) read_link(name, link);
      } else if (key == "node") {
        for (const auto& [name, node] : table(key, value)) read_node("node." + name, name, node, false);
      } else if (key == "router" || key == "transfer" || key == "fault") {
        continue;  // they name links and nodes: after these
      } else {
        bad(value, key, "unknown key", "seed, time_max, events_max, link, node, router, transfer and fault are known");
      }
    }
    if (out_.links.empty()) bad(top, "link", "is missing", "a world has at least one [link.NAME]");
    if (top.contains("router")) {
      for (const auto& [name, node] : table("router", top.at("router"))) read_node("router." + name, name, node, true);
    }
    check_places(top);
    if (!top.contains("transfer")) bad(top, "transfer", "is missing", "write at least one [[transfer]]");
    const auto& transfers = list("transfer", top.at("transfer"), scenario_transfers_max);
    for (size_t i = 0; i < transfers.size(); ++i) read_transfer(i, transfers[i]);
    if (top.contains("fault")) {
      for (const Value& fault : list("fault", top.at("fault"), scenario_faults_max)) read_fault(fault);
    }
  }

 private:
  const std::vector<Value>& list(std::string_view key, const Value& value, size_t most) const {
    const std::vector<Value>& items = TomlReader::list(key, value);
    if (items.empty()) bad(value, key, "is empty", "name at least one");
    if (items.size() > most) bad(value, key, "is too long", fmt::format("at most {} are allowed", most));
    return items;
  }
  std::string text(std::string_view key, const Value& value, std::string_view example) const {
    std::string given = TomlReader::text(key, value, example);
    if (given.empty()) bad(value, key, "is empty", fmt::format("write {} = {}", printable(key), example));
    return given;
  }
  double chance(std::string_view key, const Value& value) const {
    const double number = value.is_floating()  ? value.as_floating()
                          : value.is_integer() ? static_cast<double>(value.as_integer())
                                               : -1;
    if (!(number >= 0 && number <= 1)) bad(value, key, "bad value", "give a chance from 0 to 1");
    return number;
  }
  Duration duration(std::string_view key, const Value& value, Duration low = Duration(0)) const {
    const auto parsed = parse_duration(text(key, value, "\"20ms\""));
    if (!parsed || *parsed < low || *parsed > scenario_time_max)
      bad(value, key, "bad value", "give a time such as \"50us\", \"20ms\" or \"2s\"");
    return *parsed;
  }
  void name(std::string_view key, const Value& at, const std::string& word) const {
    const auto fine = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
    if (word.empty() || word.size() > 64 || word.front() == '.' || !std::all_of(word.begin(), word.end(), fine)) {
      bad(at, key, fmt::format("'{}' is no name", printable(word)), "use at most 64 letters, digits, '-', '_' and '.'");
    }
  }

  const ScenarioLink* find_link(const std::string& wanted) const {
    const auto found = std::find_if(out_.links.begin(), out_.links.end(), [&](const auto& link) { return link.name == wanted; });
    return found == out_.links.end() ? nullptr : &*found;
  }
  const ScenarioNode* find_node(const std::string& wanted) const {
    const auto found = std::find_if(out_.nodes.begin(), out_.nodes.end(), [&](const auto& node) { return node.name == wanted; });
    return found == out_.nodes.end() ? nullptr : &*found;
  }
  std::string link_name(std::string_view key, const Value& value) const {
    std::string word = text(key, value, "\"LINK\"");
    if (find_link(word) == nullptr) bad(value, key, fmt::format("there is no link '{}'", printable(word)), "define [link.NAME]");
    return word;
  }
  std::string node_name(std::string_view key, const Value& value, bool host_only) const {
    std::string word = text(key, value, "\"NODE\"");
    const ScenarioNode* node = find_node(word);
    if (node == nullptr) bad(value, key, fmt::format("there is no node '{}'", printable(word)), "define [node.NAME]");
    if (host_only && node->is_router) bad(value, key, fmt::format("'{}' is a router", printable(word)), "name a node");
    return word;
  }

  void read_link(const std::string& link_name, const Value& values) {
    const std::string prefix = "link." + link_name;
    name(prefix, values, link_name);
    ScenarioLink link;
    link.name = link_name;
    std::optional<uint32_t> as, subnet;
    for (const auto& [key, value] : table(prefix, values)) {
      const std::string full = prefix + "." + key;
      sim::LinkOptions& options = link.options;
      if (key == "as") {
        as = static_cast<uint32_t>(whole(full, value, 0, UINT32_MAX));
      } else if (key == "subnet") {
        subnet = static_cast<uint32_t>(whole(full, value, 0, UINT32_MAX));
      } else if (key == "wan") {
        link.wan = boolean(full, value);
      } else if (key == "between") {
        for (const Value& item : list(full, value, scenario_places_max))
          link.between.push_back(static_cast<uint32_t>(whole(full, item, 0, UINT32_MAX)));
      } else if (key == "delay") {
        read_delay(full, value, options);
      } else if (key == "rate") {
        options.rate_bytes_per_s = rate_bits_per_s(full, value, 8) / 8;
      } else if (key == "window") {
        options.window_bytes = static_cast<uint32_t>(size_bytes(full, value, 1, 1u << 30));
      } else if (key == "reset_mean") {
        options.reset_mean = duration(full, value, Duration(1));
      } else if (key == "dial_failure") {
        options.dial_failure_chance = chance(full, value);
      } else if (key == "half_open") {
        options.half_open_chance = chance(full, value);
      } else if (key == "corruption") {
        options.corrupt_chance = chance(full, value);
      } else {
        bad(value, full, "unknown key",
            "as, subnet, wan, between, delay, rate, window, reset_mean, dial_failure, half_open and corruption are known");
      }
    }
    if (link.wan && (as || !subnet))
      bad(values, prefix + ".wan", "a WAN is of no AS, and each numbers it so", "give subnet and no as");
    if (!link.wan && as.has_value() != subnet.has_value()) bad(values, prefix, "as and subnet go together", "give both or none");
    if (!link.wan && !link.between.empty()) bad(values, prefix + ".between", "only a WAN lies between AS", "write wan = true");
    if (link.wan) link.wan_subnet = *subnet;
    if (as) link.subnet = routing::SubnetId{*as, *subnet};
    for (const ScenarioLink& other : out_.links) {
      const bool numbers = (link.wan && other.subnet && other.subnet->subnet == link.wan_subnet) ||
                           (other.wan && link.subnet && link.subnet->subnet == other.wan_subnet) ||
                           (link.wan && other.wan && link.wan_subnet == other.wan_subnet);
      if (numbers || (link.subnet && other.subnet == link.subnet))
        bad(values, prefix + ".subnet", fmt::format("link {} has it too", other.name), "number one anew");
    }
    out_.links.push_back(std::move(link));
  }
  void read_delay(const std::string& key, const Value& value, sim::LinkOptions& options) const {
    if (!value.is_array()) {
      options.delay_min = options.delay_max = duration(key, value);
      return;
    }
    if (value.as_array().size() != 2) bad(value, key, "bad value", "give one time, or the least and the most");
    options.delay_min = duration(key, value.as_array()[0]);
    options.delay_max = duration(key, value.as_array()[1]);
    if (options.delay_max < options.delay_min) bad(value, key, "the least is more than the most", "give [least, most]");
  }

  void read_node(const std::string& prefix, const std::string& node_name, const Value& values, bool is_router) {
    name(prefix, values, node_name);
    if (find_node(node_name) != nullptr) bad(values, prefix, "a node has this name", "name it otherwise");
    ScenarioNode node;
    node.name = node_name;
    node.is_router = is_router;
    for (const auto& [key, value] : table(prefix, values)) {
      const std::string full = prefix + "." + key;
      if (key == "links") {
        for (const Value& item : list(full, value, scenario_places_max)) {
          node.links.push_back(link_name(full, item));
          if (std::count(node.links.begin(), node.links.end(), node.links.back()) > 1)
            bad(item, full, "named twice", "name each once");
        }
      } else if (key == "address") {
        node.address = text(full, value, "\"10.0.0.2\"");
        in_addr parsed{};
        if (inet_pton(AF_INET, node.address.c_str(), &parsed) != 1)
          bad(value, full, "is no IPv4 address", "write for instance \"10.0.0.2\"");
      } else if (key == "buffers" && !is_router) {
        node.buffers = static_cast<uint32_t>(whole(full, value, 4, 256));
      } else if (key == "disk" && !is_router) {
        node.disk_bytes = size_bytes(full, value, 64u << 10, uint64_t{1} << 40);
      } else if (key == "fragment" && is_router) {
        node.fragment_bytes = static_cast<uint32_t>(size_bytes(full, value, 4096, 4u << 20));
      } else if (key == "memory" && is_router) {
        node.memory_bytes = size_bytes(full, value, 64u << 10, 1u << 30);
      } else if (key == "metric" && is_router) {
        node.metric.clear();
        for (const Value& item : list(full, value, 4)) {
          node.metric.push_back(one_of(full, item, std::array{"bandwidth", "capabilities", "latency", "hops"}));
          if (std::count(node.metric.begin(), node.metric.end(), node.metric.back()) > 1)
            bad(item, full, "named twice", "name each once");
        }
      } else {
        bad(value, full, "unknown key",
            is_router ? "links, address, fragment, memory and metric are known" : "links, address, buffers and disk are known");
      }
    }
    if (node.links.size() < (is_router ? 2u : 1u))
      bad(values, prefix + ".links", "is missing or too short",
          is_router ? "a router is on two links or more" : "name the link it is on");
    if (is_router) {
      read_as(prefix, values, node);
    }
    where_.push_back(&values);
    out_.nodes.push_back(std::move(node));
  }

  // A router's AS is that of its links; on a WAN it is there for its own.
  void read_as(const std::string& prefix, const Value& values, ScenarioNode& node) const {
    std::optional<uint32_t> as;
    for (const std::string& link : node.links) {
      const ScenarioLink& on = *find_link(link);
      if (on.wan) continue;
      if (!on.subnet) bad(values, prefix + ".links", fmt::format("link {} has no subnet", link), "give it as and subnet");
      if (as && *as != on.subnet->as)
        bad(values, prefix + ".links", fmt::format("link {} is of AS {}, another is of AS {}", link, on.subnet->as, *as),
            "between two AS put two routers and a link with wan = true");
      as = on.subnet->as;
    }
    if (!as) bad(values, prefix + ".links", "only WANs: the router is of no AS", "put it on a link of its AS too");
    node.as = *as;
    for (const std::string& link : node.links) {
      const auto& between = find_link(link)->between;
      if (!between.empty() && std::find(between.begin(), between.end(), node.as) == between.end())
        bad(values, prefix + ".links", fmt::format("link {} is not for AS {}", link, node.as),
            "leave it out, or add the AS to between");
    }
  }

  // Addresses that are not given are chosen here.
  void check_places(const Value& top) {
    if (out_.links.size() + out_.nodes.size() > scenario_places_max) {
      bad(top, "node", fmt::format("more than {} links, nodes and routers", scenario_places_max), "describe a smaller world");
    }
    std::map<std::string, std::string> taken;  // address on a link: by whom
    for (size_t i = 0; i < out_.nodes.size(); ++i) {
      const ScenarioNode& node = out_.nodes[i];
      if (node.address.empty()) continue;
      for (const std::string& link : node.links) {
        const auto [entry, inserted] = taken.try_emplace(link + " " + node.address, node.name);
        if (!inserted)
          bad(*where_[i], node.name + ".address", fmt::format("{} has it too on link {}", entry->second, link), "give another");
      }
    }
    std::set<std::string> used;  // chosen ones are met once in the whole world
    for (const ScenarioNode& node : out_.nodes) used.insert(node.address);
    unsigned last = 1;
    for (ScenarioNode& node : out_.nodes) {
      while (node.address.empty()) {
        std::string address = fmt::format("10.0.0.{}", last++);
        if (used.insert(address).second) node.address = std::move(address);
      }
    }
  }

  void read_transfer(size_t index, const Value& values) {
    ScenarioTransfer transfer;
    transfer.name = fmt::format("transfer{}", index + 1);
    transfer.tree.links = false;
    transfer.tree.odd_names = false;
    std::optional<bool> routed;
    std::set<std::string> seen;
    for (const auto& [key, value] : table("transfer", values)) {
      const std::string full = "transfer." + key;
      seen.insert(key);
      if (key == "name") {
        transfer.name = text(full, value, "\"NAME\"");
        name(full, value, transfer.name);
      } else if (key == "from") {
        transfer.from = node_name(full, value, true);
      } else if (key == "to") {
        transfer.to = node_name(full, value, true);
      } else if (key == "routed") {
        routed = boolean(full, value);
      } else if (key == "start") {
        transfer.start = duration(full, value);
      } else if (key == "entries") {
        transfer.tree.entries_min = transfer.tree.entries_max = static_cast<size_t>(whole(full, value, 0, 100'000));
      } else if (key == "entry_size") {
        transfer.tree.file_bytes_max = static_cast<size_t>(size_bytes(full, value, 1, 4u << 20));
      } else if (key == "large") {
        transfer.tree.large_bytes_min = transfer.tree.large_bytes_max =
            static_cast<size_t>(size_bytes(full, value, 1, scenario_large_bytes_max));
        transfer.tree.large_chance = 1;
      } else if (key == "odd_names") {
        transfer.tree.odd_names = boolean(full, value);
      } else if (key == "archive") {
        transfer.archive = boolean(full, value);
      } else if (key == "lanes") {
        transfer.lanes = static_cast<uint16_t>(whole(full, value, 1, session::lanes_max));
      } else if (key == "timeout") {
        transfer.timeout = duration(full, value, std::chrono::milliseconds(1));
      } else {
        bad(value, full, "unknown key",
            "name, from, to, routed, start, entries, entry_size, large, odd_names, archive, lanes and timeout are known");
      }
    }
    for (const char* key : {"from", "to"}) {
      if (!seen.contains(key)) bad(values, fmt::format("transfer.{}", key), "is missing", "a transfer goes from a node to a node");
    }
    if (transfer.from == transfer.to) bad(values.at("to"), "transfer.to", "is where it comes from", "name another node");
    if (!seen.contains("entries") && !seen.contains("large"))
      bad(values, "transfer.entries", "is missing", "say what is sent: entries = N, large = SIZE, or both");
    if (!seen.contains("entries")) transfer.tree.entries_min = transfer.tree.entries_max = 0;
    check_way(values, transfer, routed);
    for (const ScenarioTransfer& other : out_.transfers) {
      if (other.name == transfer.name) bad(values, "transfer.name", "another transfer has this name", "name it otherwise");
    }
    out_.transfers.push_back(std::move(transfer));
  }
  // Direct when both are on one link, unless said otherwise; a direct one needs that link.
  void check_way(const Value& values, ScenarioTransfer& transfer, std::optional<bool> routed) const {
    const ScenarioNode& from = *find_node(transfer.from);
    const ScenarioNode& to = *find_node(transfer.to);
    const bool share = std::any_of(from.links.begin(), from.links.end(), [&](const std::string& link) {
      return std::find(to.links.begin(), to.links.end(), link) != to.links.end();
    });
    transfer.routed = routed.value_or(!share);
    if (!transfer.routed && !share)
      bad(values, "transfer.routed", "the nodes share no link", "leave it out, or put both on one link");
    if (!transfer.routed) {  // a name is looked up on the links of the dialler in their order
      for (const std::string& link : from.links) {
        if (std::find(to.links.begin(), to.links.end(), link) != to.links.end()) return;
        for (const ScenarioNode& other : out_.nodes) {
          if (other.address == to.address && std::find(other.links.begin(), other.links.end(), link) != other.links.end()) {
            bad(values, "transfer.to", fmt::format("{} has its address too on link {}", other.name, link),
                "give one of them another address");
          }
        }
      }
      return;
    }
    for (const ScenarioNode* end : {&from, &to}) {
      if (!find_link(end->links.front())->subnet) {
        bad(values, "transfer.routed", fmt::format("link {}, the first of {}, has no subnet", end->links.front(), end->name),
            "give it as and subnet");
      }
    }
  }

  void read_fault(const Value& values) {
    ScenarioFault fault;
    std::set<std::string> seen;
    for (const auto& [key, value] : table("fault", values)) {
      const std::string full = "fault." + key;
      seen.insert(key);
      if (key == "at") {
        fault.at = duration(full, value);
      } else if (key == "kind") {
        const std::string kind = one_of(full, value, std::array{"crash", "reset", "partition", "stop"});
        for (const FaultKind known : {FaultKind::crash, FaultKind::reset, FaultKind::partition, FaultKind::stop}) {
          if (fault_name(known) == kind) fault.kind = known;
        }
      } else if (key == "node") {
        fault.node = node_name(full, value, false);
      } else if (key == "link") {
        fault.link = link_name(full, value);
      } else if (key == "for") {
        fault.lasts = duration(full, value);
      } else {
        bad(value, full, "unknown key", "at, kind, node, link and for are known");
      }
    }
    for (const char* key : {"at", "kind"}) {
      if (!seen.contains(key)) bad(values, fmt::format("fault.{}", key), "is missing", "a fault has at and kind");
    }
    const bool ends = fault.kind == FaultKind::crash || fault.kind == FaultKind::stop;
    if (fault.node.empty() && (fault.link.empty() || ends)) bad(values, "fault.node", "is missing", "name what it happens to");
    if (ends && !fault.link.empty()) bad(values.at("link"), "fault.link", "a link does not crash or stop", "leave it out");
    if (fault.kind == FaultKind::stop && !find_node(fault.node)->is_router)
      bad(values.at("node"), "fault.node", "is no router: routers are stopped as planned",
          "write kind = \"crash\", or name a router");
    if (fault.kind == FaultKind::reset && fault.lasts) bad(values.at("for"), "fault.for", "a reset does not last", "leave it out");
    if (fault.kind == FaultKind::reset && !fault.node.empty() && !fault.link.empty())
      bad(values.at("link"), "fault.link", "a reset is of a node or of a link", "leave one out");
    if (!fault.node.empty() && !fault.link.empty()) {
      const auto& links = find_node(fault.node)->links;
      if (std::find(links.begin(), links.end(), fault.link) == links.end())
        bad(values.at("link"), "fault.link", fmt::format("{} is not on it", fault.node), "name a link of the node");
    }
    out_.faults.push_back(std::move(fault));
  }

  Scenario& out_;
  std::vector<const Value*> where_;  // by node
};

}  // namespace

const char* fault_name(FaultKind kind) {
  switch (kind) {
    case FaultKind::crash:
      return "crash";
    case FaultKind::reset:
      return "reset";
    case FaultKind::partition:
      return "partition";
    case FaultKind::stop:
      return "stop";
  }
  CHECK(false);
  return "";
}

std::optional<Duration> parse_duration(std::string_view text) {
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  double ns = 0;
  for (const auto& [name, scale] : {std::pair{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 6e10}, {"h", 3.6e12}}) {
    if (unit == name) ns = scale;
  }
  if (ns == 0 || number * ns > 9e18) return std::nullopt;
  return Duration(std::llround(number * ns));
}

Result<Scenario> parse_scenario(const std::string& file, const std::string& text) {
  const Result<Value> top = program::parse_toml(file, text);
  if (!top) return tl::unexpected<Error>(top.error());
  Scenario scenario;
  scenario.file = file;
  try {
    Reader(file, scenario).read(*top);
  } catch (const program::TomlMistake& problem) {
    return fail(ErrorKind::usage, problem.line);
  }
  return scenario;
}

Result<Scenario> load_scenario(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  const auto unreadable = [&](std::string_view what) {
    return fail(ErrorKind::usage, fmt::format("cannot read the scenario: {}: {}", printable(file), what));
  };
  if (!stream) return unreadable("give a file that exists and is readable");
  std::string text(scenario_bytes_max + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) return unreadable("give a regular file");
  text.resize(static_cast<size_t>(stream.gcount()));
  if (text.size() > scenario_bytes_max) return unreadable("it is too large: give a scenario");
  return parse_scenario(file, text);
}

}  // namespace ccixfer::simulate
