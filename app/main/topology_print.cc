// The topology in the forms that people and Graphviz read.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "app/main/topology.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

constexpr size_t table_columns_max = 120;

std::map<std::string, std::string> labels_of(const Topology& topology, uint32_t as) {
  std::map<std::string, std::string> labels;
  for (const TopologySubnet& subnet : topology.subnets) {
    if (subnet.id.as == as) labels[name_of(subnet.id)] = subnet.label;
  }
  return labels;
}

std::string quoted(const std::string& text) {
  std::string all = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') all += '\\';
    all += c;
  }
  return all + "\"";
}

}  // namespace

std::vector<std::string> topology_table(const Topology& topology) {
  std::vector<std::string> lines;
  std::map<uint32_t, std::vector<const TopologySubnet*>> by_as;
  for (const TopologySubnet& subnet : topology.subnets) by_as[subnet.id.as].push_back(&subnet);
  for (auto& [as, subnets] : by_as) {
    // As in the paper: the subnets inside first, then the ways out.
    std::stable_partition(subnets.begin(), subnets.end(), [](const TopologySubnet* subnet) { return !subnet->wan; });
    const auto labels = labels_of(topology, as);
    std::map<std::pair<std::string, std::string>, std::vector<const TopologyRoute*>> cells;
    for (const TopologyRoute& route : topology.routes) cells[{route.from, route.to}].push_back(&route);
    const auto heading = [](const TopologySubnet& subnet) { return subnet.wan ? subnet.label : "SN" + subnet.label; };
    std::vector<std::vector<std::string>> rows(1, {""});
    for (const TopologySubnet* column : subnets) rows[0].push_back(heading(*column));
    for (const TopologySubnet* from : subnets) {
      rows.push_back({heading(*from)});
      for (const TopologySubnet* to : subnets) {
        std::string cell = "-";
        for (const TopologyRoute* route : cells[{name_of(from->id), name_of(to->id)}]) {
          if (!route->chosen) continue;
          std::vector<std::string> names;
          for (const std::string& name : route->subnets) names.push_back(labels.count(name) > 0 ? labels.at(name) : name);
          cell = fmt::format("{}", fmt::join(names, ","));
        }
        rows.back().push_back(cell);
      }
    }
    std::vector<size_t> widths(rows[0].size());
    size_t columns = 0;
    for (const auto& row : rows) {
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    for (const size_t width : widths) columns += width + 2;
    lines.push_back(fmt::format("routes of AS {}", as));
    if (columns > table_columns_max) {
      lines.push_back(fmt::format("  {} subnets: too wide for a table; see the list", subnets.size()));
      continue;
    }
    for (const auto& row : rows) {
      std::string line = " ";
      for (size_t i = 0; i < row.size(); ++i) line += fmt::format(" {:<{}}", row[i], widths[i] + (i + 1 < row.size() ? 1 : 0));
      line.erase(line.find_last_not_of(' ') + 1);
      lines.push_back(line);
    }
  }
  return lines;
}

std::vector<std::string> topology_text(const Topology& topology) {
  std::vector<std::string> lines;
  for (const TopologyRouter& router : topology.routers) {
    lines.push_back(fmt::format("router {}", printable(router.name)));
    for (const std::string& device : router.devices) lines.push_back("  " + device);
  }
  for (const TopologySubnet& subnet : topology.subnets) {
    lines.push_back(fmt::format("subnet {}{}: {}", name_of(subnet.id), subnet.wan ? " (" + subnet.label + ")" : "", subnet.about));
  }
  for (std::string& line : topology_table(topology)) lines.push_back(std::move(line));
  lines.push_back(fmt::format("routes, cheapest first (cost: {}), * is taken", fmt::join(topology.metrics, ", ")));
  for (const TopologyRoute& route : topology.routes) {
    lines.push_back(fmt::format("{} {} -> {}: {} (cost {}){}", route.chosen ? "*" : " ", route.from, route.to,
                                fmt::join(route.subnets, " > "), fmt::join(route.cost, ", "),
                                route.chosen ? ": " + route.reason : ""));
  }
  if (topology.routes.empty()) lines.push_back("  none");
  for (const std::string& note : topology.notes) lines.push_back("note: " + note);
  return lines;
}

// Routers are boxes, subnets ellipses; the frame is an AS.
std::vector<std::string> topology_dot(const Topology& topology) {
  std::vector<std::string> lines{"graph ccixfer {", "  overlap = false;", "  node [fontname = \"sans-serif\"];"};
  std::map<uint32_t, std::vector<std::string>> by_as;
  for (const TopologySubnet& subnet : topology.subnets) {
    by_as[subnet.id.as].push_back(fmt::format(
        "{} [shape = ellipse, style = {}, label = {}];", quoted("s" + name_of(subnet.id)), subnet.wan ? "dashed" : "solid",
        quoted(name_of(subnet.id) + (subnet.wan ? " " + subnet.label : "") + ", " + subnet.about)));
  }
  std::vector<std::string> edges;
  for (size_t i = 0; i < topology.routers.size(); ++i) {
    const TopologyRouter& router = topology.routers[i];
    const std::string node = quoted(fmt::format("r{}", i));
    const uint32_t as = router.subnets.empty() ? 0 : router.subnets.front().as;
    by_as[as].push_back(fmt::format("{} [shape = box, label = {}];", node, quoted(router.name)));
    for (const routing::SubnetId subnet : router.subnets)
      edges.push_back(fmt::format("  {} -- {};", node, quoted("s" + name_of(subnet))));
  }
  for (const auto& [as, nodes] : by_as) {
    lines.push_back(fmt::format("  subgraph cluster_{} {{", as));
    lines.push_back(fmt::format("    label = \"AS {}\";", as));
    for (const std::string& node : nodes) lines.push_back("    " + node);
    lines.push_back("  }");
  }
  lines.insert(lines.end(), edges.begin(), edges.end());
  lines.push_back("}");
  return lines;
}

}  // namespace ccixfer::program
