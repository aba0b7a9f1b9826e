#include "app/report/status.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/report/json_line.h"
#include "core/base/units.h"
#include "core/base/utf8.h"

namespace ccixfer::report {
namespace {

// Names of peers and files, and what says where they are.
class Names {
 public:
  explicit Names(bool shown) : shown_(shown) {}
  void put(Json& json, const char* member, std::string_view text) const {
    if (shown_) json[member] = is_utf8(text) ? std::string(text) : printable(text);
  }
  [[nodiscard]] bool shown() const { return shown_; }

 private:
  const bool shown_;
};

Json number(double value, double unit = 1000) { return value < 0 ? Json(nullptr) : Json(std::round(value * unit) / unit); }
Json rate(double bytes_per_s) { return number(bytes_per_s, 1); }

const char* name_of(StatusTransfer::State state) {
  switch (state) {
    case StatusTransfer::State::waiting:
      return "waiting";
    case StatusTransfer::State::running:
      return "running";
    case StatusTransfer::State::ending:
      return "ending";
  }
  return "";
}

double eta_s(const StatusTransfer& transfer) {
  const bool known = transfer.total_known && transfer.bytes_per_s > 0 && transfer.bytes_total >= transfer.counts.bytes;
  return known ? static_cast<double>(transfer.bytes_total - transfer.counts.bytes) / transfer.bytes_per_s : -1;
}

Json transfer_of(const StatusTransfer& transfer, const Names& names) {
  Json json;
  json["transfer"] = transfer.transfer;
  names.put(json, "peer", transfer.peer);
  if (!transfer.identity.empty()) names.put(json, "identity", transfer.identity);
  names.put(json, "path", transfer.path);
  json["state"] = name_of(transfer.state);
  if (transfer.before) json["before"] = *transfer.before;
  if (transfer.counts.helped) json["helped"] = true;
  put_counts(json, transfer.counts);
  json["bytes_total"] = transfer.bytes_total;
  json["total_known"] = transfer.total_known;
  json["bytes_per_s"] = rate(transfer.bytes_per_s);
  json["eta_s"] = number(eta_s(transfer), 10);
  json["seconds"] = number(transfer.seconds);
  json["quiet_s"] = number(transfer.quiet_s);
  json["lanes"] = transfer.lanes;
  if (transfer.waiting.what != Waits::unknown) json["bottleneck"] = name_of(transfer.waiting.what);
  if (!transfer.waiting.hop.empty()) names.put(json, "hop", transfer.waiting.hop);
  return json;
}

Json ended_of(const std::vector<std::string>& lines, const Names& names) {
  Json list = Json::array();
  for (const std::string& line : lines) {
    Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("transfer")) continue;
    if (!names.shown()) {
      for (const char* member : {"peer", "identity", "path", "reason"}) json.erase(member);
    }
    list.push_back(std::move(json));
  }
  return list;
}

Json transfers_of(const StatusTransfers& transfers, const Names& names) {
  Json json;
  json["is_receiver"] = transfers.is_receiver;
  json["more"] = transfers.more;
  json["listed"] = Json::array();
  for (const StatusTransfer& transfer : transfers.listed) json["listed"].push_back(transfer_of(transfer, names));
  json["ended"] = ended_of(transfers.ended, names);
  return json;
}

Json device_of(const StatusDevice& device, const Names& names) {
  Json json;
  if (!device.name.empty()) json["device"] = device.name;
  json["subnet"] = device.subnet;
  names.put(json, "uri", device.uri);
  json["rate_bits_per_s"] = device.rate_bits_per_s == 0 ? Json(nullptr) : Json(device.rate_bits_per_s);
  json["latency_s"] = device.latency_s == 0 ? Json(nullptr) : number(device.latency_s, 1e6);
  json["wan"] = device.wan;
  return json;
}

Json connection_of(const StatusConnection& connection, const Names& names) {
  Json json;
  names.put(json, "from", connection.from);
  names.put(json, "to", connection.to);
  names.put(json, "destination", connection.destination);
  json["device_from"] = connection.device_from;
  json["device_to"] = connection.device_to;
  json["state"] = connection.state;
  json["bytes"] = connection.bytes;
  json["bytes_per_s"] = rate(connection.bytes_per_s);
  json["fragments"] = connection.fragments;
  json["buffers"] = connection.buffers;
  json["stands_s"] = number(connection.stands_s, 10);
  if (!connection.stands.empty()) json["stands"] = connection.stands;
  return json;
}

Json router_of(const StatusRouter& router, const Names& names) {
  Json json;
  json["router"] = router.router;
  json["draining"] = router.draining;
  json["devices"] = Json::array();
  for (const StatusDevice& device : router.devices) {
    Json& added = json["devices"].emplace_back(device_of(device, names));
    added["works"] = device.works;
    added["told"] = device.told;
  }
  json["links"] = Json::array();
  for (const StatusLink& link : router.links) {
    Json& added = json["links"].emplace_back();
    added["router"] = link.router;
    names.put(added, "peer", link.peer);
    added["device"] = link.device;
    added["open"] = link.open;
  }
  json["connections"] = {{"count", router.connections},
                         {"setting_up", router.setting_up},
                         {"closing", router.closing},
                         {"standing", router.standing},
                         {"more", router.more}};
  json["listed"] = Json::array();
  for (const StatusConnection& connection : router.listed) json["listed"].push_back(connection_of(connection, names));
  json["buffers"] = {{"used", router.buffers_used}, {"count", router.buffers_count}, {"bytes", router.fragment_bytes}};
  json["routers"] = Json::array();
  for (const StatusKnownRouter& known : router.routers) {
    Json& added = json["routers"].emplace_back();
    added["router"] = known.router;
    added["self"] = known.is_self;
    added["devices"] = Json::array();
    for (const StatusDevice& device : known.devices) added["devices"].push_back(device_of(device, names));
  }
  json["more_routers"] = router.more_routers;
  json["routes"] = Json::array();
  for (const StatusRoute& route : router.routes)
    json["routes"].push_back({{"from", route.from}, {"to", route.to}, {"subnets", route.subnets}});
  json["problems"] = names.shown() ? Json(router.problems) : Json::array();
  json["notes"] = router.notes;
  return json;
}

Json jobs_of(const StatusJobs& jobs, const Names& names) {
  Json json;
  json["runs"] = Json::array();
  for (const JobRun& run : jobs.runs) {
    Json& added = json["runs"].emplace_back();
    put_run(added, run);
    if (names.shown()) continue;
    for (const char* member : {"job", "destination", "reason"}) added.erase(member);
  }
  json["problem"] = jobs.problem.empty() ? Json(nullptr) : Json(jobs.problem);
  return json;
}

}  // namespace

std::string status_json(const Status& status) {
  const Names names(status.has_names);
  Json json;
  json["version"] = status.version;
  json["role"] = status.role;
  json["time"] = status.time_s;
  json["uptime_s"] = number(status.uptime_s);
  json["names"] = status.has_names;
  json["network"] = {{"bytes_in", status.bytes_in},
                     {"bytes_out", status.bytes_out},
                     {"in_per_s", rate(status.in_per_s)},
                     {"out_per_s", rate(status.out_per_s)}};
  if (status.transfers) json["transfers"] = transfers_of(*status.transfers, names);
  if (status.router) json["router"] = router_of(*status.router, names);
  json["jobs"] = jobs_of(status.jobs, names);
  return line(json);
}

}  // namespace ccixfer::report
