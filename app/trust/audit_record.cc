#include "app/trust/audit_record.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/units.h"
#include "core/base/utf8.h"

namespace ccixfer::policy {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t text_bytes_max = 4096;  // of each member: of a peer's words no more than that

std::string words(const std::string& text) {
  const std::string_view part = std::string_view(text).substr(0, text_bytes_max);
  return is_utf8(part) ? std::string(part) : printable(part);
}

const char* name_of(AuditRecord::Event event) {
  switch (event) {
    case AuditRecord::Event::session:
      return "session";
    case AuditRecord::Event::refused:
      return "refused";
    case AuditRecord::Event::admitted:
      return "admitted";
    case AuditRecord::Event::connection:
      return "connection";
  }
  return "";
}

Json members(const AuditRecord& record, int64_t wall_ms) {
  Json json;
  json["time"] = rfc3339(wall_ms);
  json["event"] = name_of(record.event);
  json["peer"] = words(record.peer);
  json["name"] = words(record.name);
  json["address"] = words(record.address);
  json["direction"] = words(record.direction);
  if (record.of_router) {
    json["to"] = words(record.to);
  } else {
    json["path"] = words(record.path);
    if (!is_utf8(record.path)) json["escaped"] = true;
    json["files"] = record.files;
  }
  json["bytes"] = record.bytes;
  json["outcome"] = error_row(record.outcome).name;
  json["exit"] = exit_code(record.outcome);
  if (!record.reason.empty()) json["reason"] = words(record.reason);
  json["seconds"] = std::round(record.seconds * 1000) / 1000;
  if (!record.of_router) json["transfer"] = words(record.transfer);
  if (record.left_out > 0) json["left_out"] = record.left_out;
  return json;
}

// For people, so without what a terminal would obey.
std::string message(const AuditRecord& record) {
  const std::string who = record.name.empty() ? record.peer : record.name;
  const std::string subject = fmt::format("{} from {}", who.empty() ? "a stranger" : printable(who), printable(record.address));
  const std::string kind = record.direction.empty() ? "attempt" : record.direction;
  const std::string what = record.of_router
                               ? fmt::format("{} to {}", kind, record.to.empty() ? "this router" : printable(record.to))
                               : fmt::format("{} of {}", kind, record.path.empty() ? "." : printable(record.path));
  const std::string counts =
      record.of_router ? fmt::format("{} bytes", record.bytes) : fmt::format("{} files, {} bytes", record.files, record.bytes);
  const bool has_counts = record.event == AuditRecord::Event::session || record.event == AuditRecord::Event::connection;
  std::string text = has_counts ? fmt::format("{}: {}: {}, {}", subject, what, counts, error_row(record.outcome).words)
                                : fmt::format("{}: {}: {}", name_of(record.event), subject, what);
  if (!record.reason.empty()) text += ": " + printable(words(record.reason));
  if (record.left_out > 0) text += fmt::format(" ({} refusals before it were left out)", record.left_out);
  return text;
}

}  // namespace

std::string rfc3339(int64_t wall_ms) {
  const std::chrono::sys_time<std::chrono::milliseconds> at{std::chrono::milliseconds(wall_ms)};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), time.hours().count(),
                     time.minutes().count(), time.seconds().count(), time.subseconds().count());
}

std::string audit_line(const AuditRecord& record, int64_t wall_ms) {
  return members(record, wall_ms).dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

JournalFields audit_fields(const AuditRecord& record, int64_t wall_ms) {
  constexpr const char* warning = "4";
  constexpr const char* information = "6";
  JournalFields fields;
  fields.emplace_back("MESSAGE", message(record));
  fields.emplace_back("PRIORITY", record.event == AuditRecord::Event::refused ? warning : information);
  fields.emplace_back("SYSLOG_IDENTIFIER", "ccixfer");
  const Json json = members(record, wall_ms);
  for (const auto& [key, value] : json.items()) {
    std::string name = "CCIXFER_";
    for (const char c : key) name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    fields.emplace_back(std::move(name), value.is_string() ? value.get<std::string>() : value.dump());
  }
  return fields;
}

}  // namespace ccixfer::policy
