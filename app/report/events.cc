#include "app/report/events.h"

#include <nlohmann/json.hpp>

#include "app/report/json_line.h"
#include "core/base/units.h"
#include "core/base/utf8.h"

namespace ccixfer::report {
namespace {

// Words of ours or of a peer: never a name that somebody looks up again, so no flag.
std::string words(std::string_view text) { return is_utf8(text) ? std::string(text) : printable(text); }

Json hops(const std::vector<Hop>& path) {
  Json list = Json::array();
  for (const Hop& hop : path) {
    Json item;
    item["transport"] = words(hop.transport);
    item["node"] = words(hop.node);
    if (!hop.subnet.empty()) item["subnet"] = hop.subnet;
    item["round_trip_s"] = hop.round_trip_s;
    if (hop.rate_bits_per_s > 0) item["rate_bits_per_s"] = hop.rate_bits_per_s;
    if (!hop.peer.empty()) item["peer"] = words(hop.peer);
    if (!hop.protection.empty()) item["protection"] = words(hop.protection);
    list.push_back(std::move(item));
  }
  return list;
}

}  // namespace

const char* name_of(Waits what) {
  switch (what) {
    case Waits::unknown:
      break;
    case Waits::source_disk:
      return "source_disk";
    case Waits::network:
      return "network";
    case Waits::destination_disk:
      return "destination_disk";
    case Waits::source_or_network:
      return "source_or_network";
    case Waits::bandwidth_limit:
      return "bwlimit";
  }
  return "";
}

std::string ready_event(double t, const std::vector<std::string>& uris) {
  Json json = begin("ready", t);
  json["uris"] = Json::array();
  for (const std::string& uri : uris) json["uris"].push_back(words(uri));
  return line(json);
}

std::string session_event(double t, const Session& session) {
  Json json = begin("session", t);
  json["transfer"] = session.transfer;
  json["peer"] = words(session.peer);
  if (!session.identity.empty()) json["identity"] = session.identity;
  json["path"] = hops(session.path);
  return line(json);
}

std::string progress_event(double t, const Progress& progress) {
  Json json = begin("progress", t);
  json["files"] = progress.files;
  json["bytes"] = progress.bytes;
  json["bytes_total"] = progress.bytes_total;
  json["bytes_per_s"] = std::round(progress.bytes_per_s);
  json["eta_s"] = progress.eta_s < 0 ? Json(nullptr) : Json(std::round(progress.eta_s * 10) / 10);
  if (progress.waiting.what != Waits::unknown) json["bottleneck"] = name_of(progress.waiting.what);
  if (!progress.waiting.hop.empty()) json["hop"] = words(progress.waiting.hop);
  if (progress.stalled_s > 0) json["stalled_s"] = std::round(progress.stalled_s * 10) / 10;
  return line(json);
}

std::string item_event(double t, const Item& item) {
  Json json = begin("item", t);
  const bool plain = is_utf8(item.name) && is_utf8(item.target);
  json["letters"] = item.letters;
  json["path"] = plain ? item.name : printable(item.name);
  if (!item.target.empty()) json["target"] = plain ? item.target : printable(item.target);
  if (!plain) json["escaped"] = true;
  return line(json);
}

std::string file_event(double t, const File& file) {
  Json json = begin("file", t);
  if (is_utf8(file.path)) {
    json["path"] = file.path;
  } else {
    json["path"] = printable(file.path);
    json["escaped"] = true;
  }
  json["bytes"] = file.bytes;
  json["status"] = file.status;
  if (!file.transfer.empty()) json["transfer"] = file.transfer;
  if (!file.reason.empty()) json["reason"] = words(file.reason);
  return line(json);
}

std::string retry_event(double t, std::string_view reason) {
  Json json = begin("retry", t);
  json["reason"] = words(reason);
  return line(json);
}

void put_counts(Json& json, const Counts& counts) {
  json["files"] = counts.files;
  json["files_unchanged"] = counts.files_unchanged;
  json["files_failed"] = counts.files_failed;
  json["bytes"] = counts.bytes;
  json["bytes_sent"] = counts.bytes_sent;
  json["segments_resent"] = counts.segments_resent;
}

std::string ended_event(double t, const Ended& ended) {
  const ErrorRow& row = error_row(ended.kind);
  Json json = begin("ended", t);
  json["transfer"] = ended.transfer;
  json["peer"] = words(ended.peer);
  json["path"] = words(ended.path);
  json["status"] = row.name;
  json["exit"] = row.exit_code;
  if (!ended.reason.empty()) json["reason"] = words(ended.reason);
  put_counts(json, ended.counts);
  return line(json);
}

namespace {

void put_transfer(Json& json, const Transfer& transfer) {
  const ErrorRow& row = error_row(transfer.kind);
  if (!transfer.transfer.empty()) json["transfer"] = transfer.transfer;
  json["peer"] = words(transfer.peer);
  if (!transfer.identity.empty()) json["identity"] = transfer.identity;
  json["direction"] = transfer.is_push ? "push" : "pull";
  json["path"] = words(transfer.path);
  json["status"] = row.name;
  json["exit"] = row.exit_code;
  if (!transfer.reason.empty()) json["reason"] = words(transfer.reason);
  put_counts(json, transfer.counts);
  json["began"] = transfer.began_s;
  json["finished"] = transfer.ended_s;
}

}  // namespace

std::string transfer_event(double t, const Transfer& transfer) {
  Json json = begin("transfer", t);
  put_transfer(json, transfer);
  return line(json);
}

std::string transfer_result(const Transfer& transfer) {
  Json json;
  put_transfer(json, transfer);
  return line(json);
}

std::string waiting_event(double t, std::string_view transfer, uint32_t before) {
  Json json = begin("waiting", t);
  json["transfer"] = words(transfer);
  json["before"] = before;
  return line(json);
}

std::string done_event(double t, const Done& done) {
  const ErrorRow& row = error_row(done.kind);
  Json json = begin("done", t);
  json["status"] = row.name;
  json["exit"] = row.exit_code;
  if (done.kind != ErrorKind::ok) json["reason"] = words(done.reason.empty() ? row.words : done.reason);
  put_counts(json, done.counts);
  json["seconds"] = std::round(done.seconds * 1e6) / 1e6;
  json["bytes_per_s"] = done.seconds > 0 ? std::round(static_cast<double>(done.counts.bytes) / done.seconds) : 0.0;
  if (done.counts.helped) json["helped"] = true;
  if (done.others.deleted > 0) json["deleted"] = done.others.deleted;
  if (!done.counters.empty()) {
    Json counters = Json::object();
    for (const auto& [name, value] : done.counters) counters[name] = value;
    json["counters"] = std::move(counters);
  }
  return line(json);
}

std::string ping_event(double t, const Ping& ping) {
  Json json = begin("ping", t);
  json["uri"] = words(ping.uri);
  json["max_send_bytes"] = ping.max_send_bytes;
  if (ping.fragment_bytes > 0) json["fragment_bytes"] = ping.fragment_bytes;
  json["path"] = hops(ping.path);
  if (ping.bottleneck) json["bottleneck"] = *ping.bottleneck + 1;
  json["round_trips_s"] = ping.round_trips_s;
  return line(json);
}

std::string router_event(double t, std::string_view name, const std::vector<std::string>& devices) {
  Json json = begin("router", t);
  json["name"] = words(name);
  json["devices"] = Json::array();
  for (const std::string& device : devices) json["devices"].push_back(words(device));
  return line(json);
}

std::string reloaded_event(double t, size_t devices, std::string_view reason) {
  Json json = begin("reloaded", t);
  json["status"] = reason.empty() ? "ok" : "usage";
  json["devices"] = devices;
  if (!reason.empty()) json["reason"] = words(reason);
  return line(json);
}

std::string workers_event(double t, const std::vector<WorkerLine>& workers) {
  Json json = begin("workers", t);
  json["workers"] = Json::array();
  for (const WorkerLine& worker : workers) {
    Json& one = json["workers"].emplace_back(Json::object());
    one["worker"] = worker.worker;
    one["connections"] = worker.connections;
    one["routed_connections"] = worker.routed_connections;
    one["routed_messages"] = worker.routed_messages;
    one["routed_bytes"] = worker.routed_bytes;
  }
  return line(json);
}

std::string route_event(double t, const RouteLine& route) {
  Json json = begin("route", t);
  json["from"] = route.from;
  json["to"] = route.to;
  json["subnets"] = route.subnets;
  Json cost = Json::object();
  for (size_t i = 0; i < route.metrics.size() && i < route.cost.size(); ++i) cost[route.metrics[i]] = route.cost[i];
  json["cost"] = std::move(cost);
  json["chosen"] = route.chosen;
  if (route.chosen) json["reason"] = words(route.reason);
  return line(json);
}

std::string device_event(double t, const DeviceLine& device) {
  Json json = begin("device", t);
  json["name"] = words(device.name);
  json["transport"] = words(device.transport);
  json["interface"] = words(device.interface);
  json["address"] = words(device.address);
  json["state"] = device.state;
  json["rate_bits_per_s"] = device.rate_bits_per_s == 0 ? Json(nullptr) : Json(device.rate_bits_per_s);
  json["subnet"] = device.subnet.empty() ? Json(nullptr) : Json(device.subnet);
  json["default"] = device.is_default;
  json["priority"] = device.priority;
  return line(json);
}

std::string transport_event(double t, const TransportLine& transport) {
  Json json = begin("transport", t);
  json["transport"] = transport.transport;
  json["usable"] = transport.usable;
  json["missing"] = words(transport.missing);
  json["remedy"] = words(transport.remedy);
  return line(json);
}

std::string identity_event(double t, const IdentityLine& identity) {
  Json json = begin("identity", t);
  json["id"] = identity.id;
  json["file"] = words(identity.file);
  if (!identity.subject.empty()) json["subject"] = words(identity.subject);
  return line(json);
}

std::string text_event(double t, std::string_view event, std::string_view key, std::string_view text) {
  Json json = begin(event, t);
  json[std::string(key)] = words(text);
  return line(json);
}

}  // namespace ccixfer::report
