#include "app/report/bench_event.h"

#include <nlohmann/json.hpp>

#include "app/report/json_line.h"
#include "core/base/units.h"

namespace ccixfer::report {

std::string bench_path_event(double t, const BenchPath& path) {
  Json json = begin("path", t);
  json["uri"] = printable(path.uri);
  json["wait"] = path.wait;
  json["peer_wait"] = path.peer_wait;
  json["path"] = Json::array();
  for (const Hop& hop : path.path) {
    Json item;
    item["transport"] = printable(hop.transport);
    item["node"] = printable(hop.node);
    if (!hop.subnet.empty()) item["subnet"] = hop.subnet;
    item["round_trip_s"] = hop.round_trip_s;
    json["path"].push_back(std::move(item));
  }
  return line(json);
}

std::string bench_event(double t, const BenchRow& row) {
  Json json = begin("bench", t);
  json["test"] = row.test;
  if (row.size_bytes > 0) json["size_bytes"] = row.size_bytes;
  json["depth"] = row.depth;
  json["connections"] = row.connections;
  json["count"] = row.count;
  json["seconds"] = row.seconds;
  if (!row.latency_of.empty()) {
    json[row.latency_of] = {{"min", row.min_s}, {"p50", row.p50_s}, {"p90", row.p90_s}, {"p99", row.p99_s}, {"p99_9", row.p99_9_s}};
  } else if (row.seconds > 0) {
    json["per_s"] = static_cast<double>(row.count) / row.seconds;
    json["bytes_per_s"] = static_cast<double>(row.count) * static_cast<double>(row.size_bytes) / row.seconds;
  }
  if (row.again > 0) json["again"] = row.again;
  if (row.reduction >= 0) json["reduction"] = row.reduction;
  if (row.reduction_paper > 0) json["reduction_paper"] = row.reduction_paper;
  return line(json);
}

}  // namespace ccixfer::report
